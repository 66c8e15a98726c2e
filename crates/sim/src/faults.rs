use crate::random::Dice;

/// Everything that goes wrong by itself in a simulation, with how often it does.
///
/// A value is a probability for each occasion named, unless it says otherwise. A seed draws them
/// anew, most of them as zero: a fault that is always there hides what happens without it.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// A delivery brings only a part of the bytes under way, down to a single one.
    pub split: f64,
    /// A delivery takes up to 200 ms instead of some microseconds.
    pub stall: f64,
    /// A connection's direction has room for 1 to 512 bytes instead of 64 KB.
    pub small_buffer: f64,
    /// A client reads little, and seldom.
    pub slow_reader: f64,
    /// A client's life ends at a random byte of what it sends: by closing, by a reset, by ending
    /// its own direction only, or by taking no notice of anything any more.
    pub client_cut: f64,
    /// A client takes up to four seconds to say who it is.
    pub slow_login: f64,
    /// A client sends bytes that are no message, once; or somebody comes with it who is not to be
    /// let in.
    pub client_hostile: f64,
    /// A client asks for the cancel of a unit that it has sent.
    pub cancel: f64,
    /// The server's postmaster acts on a cancel up to a second late, or up to eight.
    pub cancel_late: f64,
    /// An attempt to connect to a server is refused.
    pub connect_refused: f64,
    /// An attempt to connect takes up to twice the time that pgweir gives it.
    pub connect_slow: f64,
    /// A login is answered with an error.
    pub login_refused: f64,
    /// A login is never answered.
    pub login_hung: f64,
    /// A worker of pgweir reads its mail up to 100 ms late, and ends its turn up to a millisecond
    /// late, instead of some microseconds.
    pub worker_late: f64,
    /// Times in a minute that some server's connection is reset.
    pub server_reset: f64,
    /// Times in a minute that some server process is told to end (FATAL 57P01).
    pub server_killed: f64,
    /// Times in a minute that some server process stands still for up to eight seconds.
    pub server_frozen: f64,
    /// A server process ends without a word at some step of its work.
    pub server_dies: f64,
    /// A server process has been idle for too long when something comes, and begins nothing of it.
    pub server_idles: f64,
    /// Times in a minute that a server is full (53300), for up to five seconds.
    pub server_full: f64,
    /// The same, refusing each login.
    pub server_refusing: f64,
    /// The same, answering no login.
    pub server_silent: f64,
    /// Times in a minute that a server's configuration changes, which its processes report.
    pub server_reload: f64,
    /// Times in a minute that pgweir stands still for up to four seconds, and then finds all that
    /// has happened meanwhile.
    pub paused: f64,
    /// Times in a minute that nobody takes what pgweir's log says, for up to five seconds.
    pub log_held: f64,
    /// Times in a minute that there is no room for it, for up to five seconds.
    pub log_full: f64,
    /// Times in a minute that pgweir is given another configuration.
    pub reconfigured: f64,
    /// Times in a minute that a whole server crashes and is away for up to three seconds.
    pub server_crash: f64,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        split: 0.0,
        stall: 0.0,
        small_buffer: 0.0,
        slow_reader: 0.0,
        client_cut: 0.0,
        slow_login: 0.0,
        client_hostile: 0.0,
        cancel: 0.0,
        cancel_late: 0.0,
        connect_refused: 0.0,
        connect_slow: 0.0,
        login_refused: 0.0,
        login_hung: 0.0,
        worker_late: 0.0,
        server_reset: 0.0,
        server_killed: 0.0,
        server_frozen: 0.0,
        server_dies: 0.0,
        server_idles: 0.0,
        server_full: 0.0,
        server_refusing: 0.0,
        server_silent: 0.0,
        server_reload: 0.0,
        paused: 0.0,
        log_held: 0.0,
        log_full: 0.0,
        reconfigured: 0.0,
        server_crash: 0.0,
    };

    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let mut rarely = |most: f64| {
            let on = dice.chance(0.35);
            let part = dice.below(1_000) as f64 / 1_000.0;
            if on { most * part } else { 0.0 }
        };
        Self {
            split: rarely(0.9),
            stall: rarely(0.03),
            small_buffer: rarely(0.6),
            slow_reader: rarely(0.5),
            client_cut: rarely(0.6),
            slow_login: rarely(0.4),
            client_hostile: rarely(0.2),
            cancel: rarely(0.4),
            cancel_late: rarely(0.8),
            connect_refused: rarely(0.4),
            connect_slow: rarely(0.2),
            login_refused: rarely(0.3),
            login_hung: rarely(0.1),
            worker_late: rarely(0.5),
            server_reset: rarely(30.0),
            server_killed: rarely(30.0),
            server_frozen: rarely(10.0),
            server_dies: rarely(0.004),
            server_idles: rarely(0.01),
            server_full: rarely(6.0),
            server_refusing: rarely(4.0),
            server_silent: rarely(4.0),
            server_reload: rarely(60.0),
            paused: rarely(6.0),
            log_held: rarely(12.0),
            log_full: rarely(12.0),
            reconfigured: rarely(60.0),
            server_crash: rarely(4.0),
        }
    }

    /// Whether the network moves much in no time.
    pub(crate) fn is_roomy(&self) -> bool {
        self.small_buffer == 0.0 && self.split == 0.0 && self.slow_reader == 0.0
    }

    /// What is left of them when everything is to come to its end: the network stays as unkind
    /// as it was, but nothing is taken away any more.
    pub(crate) fn healed(&self) -> Self {
        Self {
            split: self.split,
            small_buffer: self.small_buffer,
            slow_reader: self.slow_reader,
            cancel: self.cancel,
            worker_late: self.worker_late,
            ..Self::NONE
        }
    }
}
