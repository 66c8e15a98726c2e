use std::path::Path;

use super::*;

fn config(general: &str) -> Config {
    let text = format!(
        "[general]\nhost = '127.0.0.1'\n{general}\n\
         [pools.app.users.0]\nusername = 'app'\npassword = 'secret'\npool_size = 50\n\
         reserve_pool_size = 10\n\
         [pools.app.shards.0]\nservers = [['db', 5432, 'primary']]\ndatabase = 'app'\n"
    );
    Config::parse(&text, Path::new("test.toml")).unwrap()
}

#[test]
fn a_configuration_that_promises_too_much_is_refused() {
    let promises = config("max_clients = 1000");
    assert_eq!(fits(&promises, 1_076), Ok(()));
    let refused = fits(&promises, 1_075).unwrap_err();
    let expected = "max_clients (1000) and up to 60 server connections take 1076 file \
                    descriptors, and there are 1075";
    assert!(refused.starts_with(expected), "{refused}");
    assert_eq!(fits(&config("max_clients = 1000\nmax_server_connections = 20"), 1_036), Ok(()));
}

#[test]
fn clients_that_nobody_has_promised_anything_take_what_is_left() {
    assert_eq!(fits(&config(""), 77), Ok(()));
    assert!(fits(&config(""), 76).unwrap_err().starts_with("one client and up to 60"));
}

#[test]
fn limits_that_pools_share_count() {
    for limit in ["max_db_connections = 20", "max_user_connections = 20"] {
        assert_eq!(fits(&config(&format!("max_clients = 1000\n{limit}")), 1_036), Ok(()));
    }
    let text = "[general]\nhost = '127.0.0.1'\n[pools.'*'.users.0]\nusername = 'app'\n\
                password = 'secret'\npool_size = 50\n[pools.'*'.shards.0]\n\
                servers = [['db', 5432, 'primary']]\ndatabase = '*'\n";
    let any = Config::parse(text, Path::new("test.toml")).unwrap();
    assert_eq!(fits(&any, 18), Ok(()), "nobody is promised more");
}
