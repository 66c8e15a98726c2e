use std::process::Command;

use super::*;
use crate::results::tests::TestFolder;

#[test]
fn pgweir_takes_its_configuration_without_a_warning() {
    let address = Address { port: "6432", server_port: "5432", pool_size: 12 };
    for (pools, pipelining) in [(1, PIPELINING), (2, "off"), (16, "3x16")] {
        let text = pgweir_toml(&address, 4, pools, pipelining);
        let config = pgweir_config::Config::parse(&text, Path::new("pgweir.toml")).unwrap();
        assert_eq!(config.warnings, []);
        assert_eq!(config.pools.len(), pools as usize);
        assert_eq!(config.pools[0].users[0].pool_size, 12);
    }
}

#[test]
fn keepalive_is_on_at_the_kernels_times_in_both_poolers() {
    let address = Address { port: "6432", server_port: "5432", pool_size: POOL_SIZE };
    let text = pgweir_toml(&address, 1, 1, PIPELINING);
    let tcp = pgweir_config::Config::parse(&text, Path::new("pgweir.toml")).unwrap().general.tcp;
    let times = [tcp.keepalives_idle, tcp.keepalives_interval, tcp.user_timeout];
    assert_eq!((times, tcp.keepalives_count), ([None; 3], None));
    let ini = pgbouncer_ini(&address, "userlist.txt");
    let zero = ["tcp_keepidle", "tcp_keepintvl", "tcp_keepcnt", "tcp_user_timeout"];
    assert!(zero.iter().all(|key| ini.contains(&format!("\n{key} = 0\n"))));
    assert!(ini.contains("\ntcp_keepalive = 1\n"));
}

#[test]
fn scripts_look_for_pgbouncer_in_the_same_places() {
    let folder = TestFolder::of("pgbouncer");
    let program = folder.0.join("bin/pgbouncer");
    let usual = format!("{}:/usr/bin:/bin", folder.0.join("bin").display());
    let by_scripts = || {
        let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/lib.sh");
        let mut shell = Command::new("bash");
        shell.args(["-c", ". \"$0\" && pgbouncer_program", library]);
        let output = shell.env("PATH", &usual).env_remove("PGBOUNCER").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = String::from_utf8(output.stdout).unwrap();
        (!found.is_empty()).then(|| PathBuf::from(found.trim_end()))
    };
    let by_us = || usual_pgbouncer(Some(OsStr::new(&usual)));
    let where_debian_has_it = || Some(by_us()).filter(|program| is_program(program));

    assert_ne!(by_us(), program);
    assert_eq!(by_scripts(), where_debian_has_it());
    // One that cannot be run is none.
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "").unwrap();
    assert_ne!(by_us(), program);
    assert_eq!(by_scripts(), where_debian_has_it());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(by_us(), program);
    assert_eq!(by_scripts(), Some(program));
}

#[test]
fn contenders_are_named_by_their_names() {
    for contender in Contender::ALL.into_iter().chain([Contender::Fixed(Pair::of(3, 16))]) {
        assert_eq!(Contender::named(&contender.name()), Some(contender));
        assert_eq!(Contender::try_from(String::from(contender)), Ok(contender));
    }
    assert_eq!(Contender::named("pgweir-3"), None);
}
