//! The settings that sessions have, and what PostgreSQL thinks of their values.

use super::State;

/// Those of which a frontend is told nothing.
pub(super) const UNREPORTED: [&str; 2] = ["temp_buffers", BORN];

/// One that is as it was at a session's start for as long as it lasts.
pub(crate) const BORN: &str = "ignore_system_indexes";

/// Settings that a client may ask for at startup: name as it is reported, and default.
pub(super) const SETTINGS: [(&str, &str); 5] = [
    ("application_name", ""),
    ("DateStyle", "ISO, MDY"),
    ("temp_buffers", "8MB"),
    ("TimeZone", "GMT"),
    (BORN, "off"),
];

/// A setting that only a server's configuration can set, and that is reported. Each new
/// configuration has another value of it.
pub(crate) const VERSION: &str = "sim.version";

/// A statement_timeout under which a session does not come to say what it is set to.
pub(crate) const HASTY: &str = "1ms";

impl State {
    pub(crate) fn default_of(name: &str) -> &'static str {
        let setting = SETTINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        setting.map_or("", |(_, value)| value)
    }

    /// Whether PostgreSQL would refuse this value.
    pub(crate) fn is_valid(name: &str, value: &str) -> bool {
        match value {
            "Nowhere" => !name.eq_ignore_ascii_case("TimeZone"),
            "perhaps" => name != BORN,
            _ => true,
        }
    }
}
