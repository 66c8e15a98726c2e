//! What has been read last.

use crate::pins::PinReason;

/// The token before, as far as it gives the next one a meaning.
#[derive(Clone, Copy, Default)]
pub(super) enum Last {
    /// No word.
    #[default]
    Sign,
    /// A word that gives no meaning.
    Word,
    /// The `.` behind a name.
    Dot,
    /// The name of a function behind that: a call, unless another `.` follows. That of a column,
    /// says PostgreSQL where there is none, is the name of a function: `x.setseed`.
    Member(PinReason),
    /// The name of a function, if `(` follows.
    Call(PinReason),
    /// The name of a function whose first argument is the name of a setting, if `(` follows.
    SettingCall(PinReason),
    /// The word of a [`Form::Cast`], if `(` follows.
    Cast(PinReason),
    /// The `(` of a [`Form::SettingCall`].
    SettingArgument,
    /// A literal there that names a harmless setting, if it is the whole argument.
    SettingName,
    /// `CREATE`, `OR REPLACE`, with or without `LOCAL` or `GLOBAL`.
    Create,
    /// `INTO`, with or without those, of what is no INSERT or MERGE.
    Into,
    /// `INSERT` or `MERGE`
    Insert,
    /// `CURSOR`
    Cursor,
    /// `CURSOR WITH`
    CursorWith,
    /// `ON`
    On,
    /// `ON COMMIT`
    OnCommit,
    /// A literal.
    Literal,
    /// The `.` that selects a field of an expression, or calls a function on it.
    Field,
    /// The name behind it.
    Selected,
}
