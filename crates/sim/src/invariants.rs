//! What a simulation holds pgweir to. Each failure begins with the name of what was broken; the
//! names stand in the table of docs/simulation.md, too.

use std::fmt;

macro_rules! invariants {
    ($($(#[doc = $says:literal])+ $name:ident,)+) => {
        /// What always holds, whatever the order of events. It is looked at wherever something
        /// happens that could break it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Invariant {
            $($(#[doc = $says])+ $name,)+
        }

        impl Invariant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What it says.
            pub fn says(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($says,)+).trim_ascii(),)+
                }
            }
        }
    };
}

invariants! {
    /// A client hears what a server of its own would have said, byte for byte.
    OwnReplies,
    /// A client gets whole messages.
    WholeMessages,
    /// Nothing follows a client's last words.
    LastWords,
    /// A server never says what nobody is owed.
    RepliesAreOwed,
    /// A statement is carried out once.
    RunOnce,
    /// The statements of a client begin in the order in which it has sent them.
    OwnOrder,
    /// What was refused is not carried out.
    RefusedIsNotRun,
    /// What a client was told is committed, or undone, is just that.
    ToldIsTrue,
    /// No statement comes into somebody else's transaction, but reads into one in which nothing but
    /// reads is.
    OwnTransaction,
    /// A server that is lent has nothing that somebody else left in its session.
    CleanServer,
    /// A client works with the settings that it has asked for.
    OwnSettings,
    /// A client knows what the server that it works on reports.
    ToldSettings,
    /// A client works in its own database, on a server and as a user that its pool has.
    OwnHome,
    /// A client runs the statements that it has prepared, and no other's.
    OwnStatements,
    /// What functions have planned for one client, and keep, is no other's.
    OwnPlans,
    /// Only who listens is notified: of everything, once, and in order.
    OwnNotifications,
    /// A COPY is fed with its own client's data.
    OwnCopyData,
    /// A cancel hits the statement of whoever has asked for it, or nobody.
    AskedCancel,
    /// A cancel that was asked for arrives, within seconds, as long as faults leave it a way.
    CancelArrives,
    /// A statement is interrupted for a reason that there is.
    RightInterrupt,
    /// A client loses its server only if one has failed it, and one client for each.
    LossHasCause,
    /// What a lost server costs is what docs/failures.md says.
    RightLoss,
    /// A connection ends with a word why.
    EndIsSaid,
    /// An error of pgweir's own is one that there is a reason for.
    RightRefusal,
    /// A login goes as the protocol has it, on both sides.
    RightLogin,
    /// A server is sent nothing that its kind does not speak.
    RightProtocol,
    /// No limit is exceeded.
    LimitsHold,
    /// However long a message is and however slow its reader, little of it is kept, and of names no
    /// more than were given.
    BoundedMemory,
    /// A reserve is used for who has waited for so long only.
    ReserveInNeed,
    /// Each client that waits for a server has an attempt to connect under way, as far as sizes and
    /// limits allow: not one for all.
    ColdBurst,
    /// Whoever asks first is served first.
    FirstComeFirstServed,
    /// A timeout that is over shows within a second, where it is looked at.
    TimesHold,
    /// Where others may stand behind it, what a client sends up to a ReadyForQuery waits for no
    /// longer than the brake leaves one statement.
    BrakeHolds,
    /// When all is quiet each pool has its smallest size.
    SmallestSize,
    /// A client is handed over once.
    HandedOverOnce,
    /// No two clients that are there have the same number.
    OwnNumber,
    /// All clients and servers of a pool meet on one worker.
    OneWorker,
    /// Each line of the log is written once and in its order, or is counted as lost.
    WholeLog,
    /// A configuration that is right is accepted.
    RightIsAccepted,
    /// When nothing fails any more everything comes to its end.
    AllEnds,
    /// In the end nobody holds anything: no connection, no client, no letter.
    NothingLeft,
    /// What an engine asserts of itself (`Engine::check`, and wherever it stands) holds.
    EngineState,
    /// The same seed gives the same simulation.
    SameAgain,
}

impl Invariant {
    /// What is told when it is broken.
    pub(crate) fn broken(self, how: impl fmt::Display) -> String {
        format!("{self}: {how}")
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
