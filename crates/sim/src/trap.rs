/// What counts as a mistake on demand, though it is none: to see what is done with a simulation
/// that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// A statement is cancelled while some server process stands still.
    CancelInFreeze,
}

impl Trap {
    /// What is said of it.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Self::CancelInFreeze => "a cancel hits while another server process stands still",
        }
    }
}
