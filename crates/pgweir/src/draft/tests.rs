use std::path::Path;

use pgweir_config::{Config, Secret, Url};

use super::{general, pool};
use crate::cli::Listen;

/// Whatever names and passwords hold, they are read as they were.
#[test]
fn what_is_written_is_read() {
    for odd in ["plain", "a \"b\" \\c", "é\u{1F511}", "line\nbreak\t\u{7f}\u{85}", "# ]= '''"] {
        let url = Url {
            host: "db".to_owned(),
            port: 6000,
            database: odd.to_owned(),
            user: format!("{odd} user"),
            password: Some(Secret::new(format!("{odd} password"))),
            connect_timeout_s: Some(7),
        };
        let head = general(&url, &Listen { host: "::1".to_owned(), port: 7000 });
        let body = pool(&url, odd, "", "replica");
        let text = format!("config_version = 1\n{head}{body}");
        let config = Config::parse(&text, Path::new("draft"));
        let config = config.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!((config.general.host.as_str(), config.general.port), ("::1", 7000));
        assert_eq!(config.general.connect_timeout.as_secs(), 7);
        let read = &config.pools[0];
        assert_eq!((read.name.as_str(), read.shards[0].database.as_str()), (odd, odd));
        assert_eq!(read.users[0].username, url.user);
        assert_eq!(Some(&read.users[0].password), url.password.as_ref());
        assert_eq!(read.served().map(|(_, server)| server.port), Some(6000));
        assert_eq!(config.warnings, []);
    }
}
