use std::fmt::Display;

/// Turns what went wrong into the failure of the test that asked for it.
pub(crate) trait OrFail<T> {
    /// The value.
    ///
    /// # Panics
    /// With `doing` and the cause when there is none.
    fn or_fail(self, doing: impl Display) -> T;
}

impl<T, E: Display> OrFail<T> for Result<T, E> {
    #[track_caller]
    fn or_fail(self, doing: impl Display) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("testkit: {doing}: {error}"),
        }
    }
}

impl<T> OrFail<T> for Option<T> {
    #[track_caller]
    fn or_fail(self, doing: impl Display) -> T {
        match self {
            Some(value) => value,
            None => panic!("testkit: {doing}"),
        }
    }
}
