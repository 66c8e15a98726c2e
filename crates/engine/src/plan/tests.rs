use std::path::Path;

use pgweir_auth::VerifierKind;
use pgweir_config::Config;

use super::Plan;
use crate::Engine;

const CONFIG: &str = "
    [general]
    host = '127.0.0.1'
    port = 6000
    auth_type = 'AUTH'
    admin_auth_type = 'AUTH'
    admin_username = 'admin'
    admin_password = 'secret'
    [pools.db]
    pool_mode = 'transaction'
    [pools.db.users.0]
    username = 'user'
    password = 'password'
    pool_size = 1
    [pools.db.shards.0]
    servers = [['127.0.0.1', 5432, 'primary']]
    database = 'db'
";

/// Whoever knows the name of a user, also that of the console's, would cost a millisecond else.
#[test]
fn keys_are_derived_before_anybody_asks() {
    for (auth, kind) in [("scram-sha-256", VerifierKind::Scram), ("password", VerifierKind::Plain)]
    {
        let config = Config::parse(&CONFIG.replace("AUTH", auth), Path::new("plan.toml"));
        let plan = Plan::new(&config.expect("a configuration"), "0.1.0", [6; 32]).expect("a plan");
        let engine = Engine::new(plan, [7; 32]);
        let admin = engine.plan.admin_verifier.as_ref().expect("an administrator");
        assert_eq!(admin.kind(), kind, "{auth}");
        let (_, pool) = engine.pools.iter().next().expect("a pool");
        assert_eq!(pool.spec.verifier.kind(), kind, "{auth}");
    }
}
