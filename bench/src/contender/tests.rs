use super::*;

#[test]
fn pgweir_takes_its_configuration_without_a_warning() {
    for pools in [1, 2, 16] {
        let text = pgweir_toml("6432", "5432", 4, pools);
        let config = pgweir_config::Config::parse(&text, Path::new("pgweir.toml")).unwrap();
        assert_eq!(config.warnings, []);
        assert_eq!(config.pools.len(), pools as usize);
        assert_eq!(config.pools[0].users[0].pool_size, POOL_SIZE);
    }
}

#[test]
fn contenders_are_named_by_their_names() {
    for contender in Contender::ALL {
        assert_eq!(Contender::named(contender.name()), Some(contender));
    }
}
