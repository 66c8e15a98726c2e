use std::path::Path;

use super::*;

fn config(general: &str) -> Config {
    named("app", general)
}

fn named(database: &str, general: &str) -> Config {
    let text = format!(
        "[general]\nhost = '127.0.0.1'\nworker_threads = 1\n{general}\n\
         [pools.'{database}'.users.0]\nusername = 'app'\npassword = 'secret'\npool_size = 50\n\
         reserve_pool_size = 10\n\
         [pools.'{database}'.shards.0]\nservers = [['db', 5432, 'primary']]\n\
         database = '{database}'\n"
    );
    Config::parse(&text, Path::new("test.toml")).unwrap()
}

#[test]
fn a_configuration_that_promises_too_much_is_refused() {
    let promises = config("max_clients = 1000");
    assert_eq!(most_clients(&promises, OWN + 1_060), Ok(1_000));
    let refused = most_clients(&promises, OWN + 1_059).unwrap_err();
    let expected = "max_clients (1000), up to 60 server connections and 104 of its own take 1164 \
                    file descriptors, and there are 1163";
    assert!(refused.starts_with(expected), "{refused}");
    for limit in ["max_server_connections", "max_db_connections", "max_user_connections"] {
        let limited = config(&format!("max_clients = 1000\n{limit} = 20"));
        assert_eq!(most_clients(&limited, OWN + 1_020), Ok(1_000), "{limit}");
    }
}

#[test]
fn clients_that_nobody_has_promised_anything_take_what_is_left() {
    assert_eq!(most_clients(&config(""), OWN + 1_060), Ok(1_000));
    assert_eq!(most_clients(&config(""), OWN + 61), Ok(1));
    let refused = most_clients(&config(""), OWN + 60).unwrap_err();
    assert!(refused.starts_with("one client, up to 60 server connections"), "{refused}");
    assert_eq!(most_clients(&config(""), 1 << 20), Ok(100_000));
}

#[test]
fn each_worker_takes_some() {
    let mut three = config("");
    three.general.worker_threads = Some(3);
    assert_eq!(most_clients(&three, OWN + 1_060), Ok(1_000 - 2 * 5));
}

/// Nobody knows how many servers there will be: they may be half of all.
#[test]
fn servers_without_limit_leave_clients_a_half() {
    let any = named("*", "");
    assert_eq!(most_clients(&any, OWN + 1_000), Ok(500));
    assert_eq!(most_clients(&any, OWN + 2), Ok(1));
    let limited = named("*", "max_server_connections = 100");
    assert_eq!(most_clients(&limited, OWN + 1_000), Ok(900));
}

#[test]
fn what_holds_is_said() {
    let text = "[general]\nworker_threads = 1\nmax_clients = 3\n[pools.app.users.0]\n\
                username = 'app'\npassword = 'secret'\n[pools.app.shards.0]\n\
                servers = [['db', 5432, 'primary']]\ndatabase = 'app'\n";
    for (text, own) in [(text.to_owned(), true), (text.replace("max_clients = 3\n", ""), false)] {
        let loaded = Config::parse_explained(&text, Path::new("test.toml"));
        let (mut config, mut explained) = loaded.unwrap();
        settle(&mut config, &mut explained).unwrap();
        let max_clients = config.general.max_clients.unwrap();
        let one = explained.iter().find(|one| one.key == "general.max_clients").unwrap();
        assert_eq!(one.value, Some(max_clients.to_string()));
        assert_eq!(max_clients == 3, own);
        assert_eq!(one.value == one.default, !own);
    }
}
