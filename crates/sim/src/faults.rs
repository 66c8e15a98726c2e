use crate::random::Dice;

/// Makes [`Faults`] from a row for each: how often at most, and whether it goes on when everything
/// is to come to its end.
macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $name:ident: at most $most:literal, $end:ident;)+) => {
        /// Everything that goes wrong by itself in a simulation, with how often it does.
        ///
        /// A value is a probability for each occasion named, unless it says otherwise. A seed draws
        /// them anew, most of them as zero: a fault that is always there hides what happens without
        /// it.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Faults {
            $($(#[doc = $doc])+ pub $name: f64,)+
        }

        impl Faults {
            /// Nothing goes wrong.
            pub const NONE: Self = Self { $($name: 0.0),+ };

            /// What they are called.
            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// How often each of them strikes.
            pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, f64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// The same without the one of this name.
            pub(crate) fn without(mut self, name: &str) -> Self {
                $(if name == stringify!($name) {
                    self.$name = 0.0;
                })+
                self
            }

            pub(crate) fn draw(dice: &mut Dice) -> Self {
                let mut rarely = |most: f64| {
                    let on = dice.chance(0.35);
                    let part = dice.below(1_000) as f64 / 1_000.0;
                    if on { most * part } else { 0.0 }
                };
                Self { $($name: rarely($most)),+ }
            }

            /// What is left of them when everything is to come to its end: the network stays as
            /// unkind as it was, but nothing is taken away any more.
            pub(crate) fn healed(&self) -> Self {
                Self { $($name: faults!(@$end self.$name)),+ }
            }
        }
    };
    (@stays $value:expr) => { $value };
    (@heals $value:expr) => { 0.0 };
}

faults! {
    /// A delivery brings only a part of the bytes under way, down to a single one.
    split: at most 0.9, stays;
    /// A delivery takes up to 200 ms instead of some microseconds.
    stall: at most 0.03, heals;
    /// A connection's direction has room for 1 to 512 bytes at first, instead of 64 KB.
    small_buffer: at most 0.6, stays;
    /// A client reads little, and seldom.
    slow_reader: at most 0.5, stays;
    /// A client's life ends at a random byte of what it sends: by closing, by a reset, by ending
    /// its own direction only, or by taking no notice of anything any more.
    client_cut: at most 0.6, heals;
    /// A client takes up to four seconds to say who it is.
    slow_login: at most 0.4, heals;
    /// A client waits for up to half a second in the middle of what it sends, if that is split.
    client_hesitates: at most 0.2, heals;
    /// A client sends bytes that are no message, once; or somebody comes with it who is not to be
    /// let in.
    client_hostile: at most 0.2, heals;
    /// A client asks for the cancel of a unit that it has sent.
    cancel: at most 0.4, stays;
    /// The server's postmaster acts on a cancel up to a second late, or up to eight.
    cancel_late: at most 0.8, heals;
    /// The connection of a cancel is reset, whether or not the postmaster has acted on it.
    cancel_broken: at most 0.3, heals;
    /// An attempt to connect to a server is refused.
    connect_refused: at most 0.4, heals;
    /// An attempt to connect takes up to twice the time that pgweir gives it.
    connect_slow: at most 0.2, heals;
    /// A login is answered with an error.
    login_refused: at most 0.3, heals;
    /// A login is never answered.
    login_hung: at most 0.1, heals;
    /// A worker of pgweir reads its mail up to 100 ms late, and ends its turn up to a millisecond
    /// late, instead of some microseconds.
    worker_late: at most 0.5, stays;
    /// Times in a minute that some server's connection is reset.
    server_reset: at most 30.0, heals;
    /// Times in a minute that some server process is told to end (FATAL 57P01).
    server_killed: at most 30.0, heals;
    /// Times in a minute that some server process stands still for up to eight seconds.
    server_frozen: at most 20.0, heals;
    /// A server process stands still for up to eight seconds at what pgweir asks it of its own
    /// accord, or ends without a word, or refuses what it is to be set to next where it is shared.
    server_balks: at most 0.04, heals;
    /// A server process ends without a word when it has a notification to say.
    server_mute: at most 0.05, heals;
    /// A server process ends without a word at some step of its work.
    server_dies: at most 0.004, heals;
    /// A server process ends without a word at the first thing that it is asked.
    server_stillborn: at most 0.2, heals;
    /// A server process has been idle for too long when something comes, and begins nothing of it.
    server_idles: at most 0.01, heals;
    /// Times in a minute that a server is full (53300), for up to five seconds.
    server_full: at most 6.0, heals;
    /// The same, refusing each login.
    server_refusing: at most 4.0, heals;
    /// The same, answering no login.
    server_silent: at most 4.0, heals;
    /// Times in a minute that a server's configuration changes, which its processes report.
    server_reload: at most 60.0, heals;
    /// Times in a minute that pgweir stands still for up to four seconds, or twenty, and then finds
    /// all that has happened meanwhile.
    paused: at most 6.0, heals;
    /// Times in a minute that nobody takes what pgweir's log says, for up to five seconds.
    log_held: at most 12.0, heals;
    /// Times in a minute that there is no room for it, for up to five seconds.
    log_full: at most 12.0, heals;
    /// Times in a minute that pgweir is given another configuration.
    reconfigured: at most 60.0, heals;
    /// Times in a minute that a whole server crashes and is away for up to three seconds.
    server_crash: at most 4.0, heals;
    /// Times in a minute that a whole server is told to restart, for up to four seconds.
    server_restart: at most 4.0, heals;
    /// An attempt to connect for a cancel takes up to twice the time that pgweir gives it.
    cancel_slow: at most 1.0, heals;
    /// A server process takes up to 20 ms until it reads on in the data of a COPY, needed or not.
    copy_slow: at most 0.5, heals;
    /// A server process ends without a word in the middle of a long message that it sends, or is
    /// sent.
    server_breaks_off: at most 0.04, heals;
    /// A server process that was told to end takes up to two seconds for that, behind its last
    /// words.
    server_lingers: at most 0.5, heals;
    /// Times in a minute that up to 40 come at once who are not to be let in.
    rush: at most 6.0, heals;
}

impl Faults {
    /// Whether the network moves much in no time.
    pub(crate) fn is_roomy(&self) -> bool {
        self.small_buffer == 0.0 && self.split == 0.0 && self.slow_reader == 0.0
    }
}
