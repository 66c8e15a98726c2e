//! Inputs that are text.

use crate::Seed;

pub(crate) fn catalogue() -> Vec<Seed> {
    let rows = |name, rows: &[&str]| (name, rows.join("\n").into_bytes());
    vec![
        rows("function", &["f\t16384\tpublic\tf\tsql\t0\tSELECT set_config('a.b', 'x', false)"]),
        rows(
            "plpgsql",
            &[
                "f\t16385\tpublic\tg\tplpgsql\t0\tBEGIN PERFORM f(); RETURN 1; END",
                "f\t16384\tpublic\tf\tsql\t0\tSELECT nextval('s')",
                "f\t16385\tf\t16384\ta\tx",
            ],
        ),
        rows(
            "trigger",
            &[
                "r\t16390\tpublic\tr\t\t0\t",
                "f\t16385\tpublic\tg\tplpgsql\t0\tBEGIN EXECUTE 'LISTEN x'; END",
                "r\t16390\tf\t16385\tw\ttrigger t",
            ],
        ),
        rows(
            "pieces",
            &[
                "f\t16384\tpublic\tf\tsql\t1\tadvisory_lock(1)",
                "f\t16384\tpublic\tf\tsql\t0\tSELECT pg_",
            ],
        ),
        rows(
            "perl",
            &[
                "f\t16386\tpublic\th\tplperl\t0\tspi_exec_query('SET a = b')",
                "f\t16387\tpublic\tquiet\tplperl\t0\tspi_exec_query('SET a = b')",
                "f\t16388\tpublic\tc\tc\t0\tdblink",
                "f\t16389\tpublic\ta\tinternal\t0\tset_config",
            ],
        ),
        rows(
            "operator",
            &[
                "u\t0\t\t\t\t0\t",
                "f\t16384\tpublic\tf\tsql\t0\tSELECT set_config('a.b', 'x', false)",
                "u\t0\tf\t16384\ta\toperator +",
                "t\t16391\tpublic\tt\t\t0\t",
                "t\t16391\tf\t16384\ta\tcheck c",
            ],
        ),
    ]
}

pub(crate) fn sql() -> Vec<Seed> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        text("select", "select abalance from pgbench_accounts where aid = 1"),
        text("set", "set search_path = 'a', b; set local x = 1; set session x.y to 'z'"),
        text("transaction", "begin; set transaction read only; commit and chain"),
        text("temporary", "create temp table t on commit drop as select 1; select 1 into temp u"),
        text("calls", "select pg_catalog.set_config('seed', '1', false), nextval('s'), lastval()"),
        text("locks", "select pg_advisory_lock(1), pg_advisory_xact_lock(2)"),
        text("cursor", "declare c insensitive cursor with hold for select 1"),
        text("prepare", "prepare p as select 1; prepare transaction 'x'; listen c; load 'x'"),
        text(
            "quotes",
            "select 'it''s', E'\\'', \"a\"\"b\", $$ set x = 1 $$, $a$ $b$ $a$, U&'\\0041'",
        ),
        text("backslash", "select 'a\\'; set x = 1 --'"),
        text("comments", "/* a /* b */ */ set -- c\n x = 1; select 1 +-- d\n 2 */*e*/ 3"),
        text("continued", "select 'a'\n  'b' set"),
        text("unicode_name", "select U&\"set\\005fconfig\"('a', 'b', false)"),
        text("atomic", "create function f() returns int begin atomic select 1; select 2; end"),
        text("insert", "insert into t select * from temp on conflict (a) do update set b = 1"),
        ("not_utf8", b"select '\x81\x5c', \x81$a$ \xff $a$".to_vec()),
        text("block", "do $$ begin perform set_config('a.b', 'c', true); execute 'x'; end $$"),
        text("foreign_block", "do language plpython3u 'x'; do 'begin end' language plpgsql"),
        text("deallocate", "deallocate prepare \"p\"; "),
        text("time_zone", "set session time zone 'UTC'"),
        text("reset", "reset session authorization;"),
        text("discard", "discard all"),
        text("chain", "rollback work and no chain"),
        ("long_tag", [b"select $", &[b'a'; 70][..], b"$ x"].concat()),
    ]
}

pub(crate) fn config() -> Vec<Seed> {
    let file = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        file(
            "world",
            &include_str!("../../src/world.toml")
                .replace("$MODE", "transaction")
                .replace("$PIPELINING", "2x4"),
        ),
        file(
            "small",
            "[pools.app.users.0]\nusername = \"alice\"\npassword = \"secret\"\n\
             [pools.app.shards.0]\nservers = [[\"10.0.0.1\", 5432, \"primary\"]]\n\
             database = \"app\"\n",
        ),
        file(
            "general",
            "[general]\nhost = \"::1\"\nport = 6432\nworker_threads = 2\nmax_clients = 10\n\
             connect_timeout = 5000\nquery_wait_timeout = 0\nidle_timeout = 1\n\
             server_lifetime = 0\nshutdown_timeout = 0\nauth_type = \"scram-sha-256\"\n\
             admin_username = \"admin\"\nadmin_password = \"adminpw\"\n\
             tcp_keepalives_idle = 0\ntcp_user_timeout = 0\nautoreload = 15000\n",
        ),
        file(
            "wrong",
            "[general]\nhost = 1\nport = 0\nworker_thread = 2\nconnect_timeout = \"5s\"\n\
             [pools.app]\npool_mode = \"transactoin\"\n[pools.app.users.first]\n\
             username = \"\"\n[pools.pgbouncer]\n[pools.\"\".shards.00]\nservers = [[]]\n",
        ),
        file("not_toml", "[general\nhost = \"a\nport = \n"),
        file("inline", "pools = { app = { users = { 0 = { username = 'a' } }, shards = 1 } }\n"),
        file("flat", include_str!("../../../config/tests/files/flat.toml")),
        file("own_dialect", include_str!("../../../config/tests/files/own_dialect.toml")),
        file("sums", include_str!("../../../config/tests/files/sums.toml")),
    ]
}

pub(crate) fn secret() -> Vec<Seed> {
    let keys = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let lines = |name, user: &str, stored: &str, sent: &str| {
        (name, format!("{user}\n{stored}\n{sent}").into_bytes())
    };
    vec![
        lines("password", "alice", "pencil", "pencil"),
        lines("empty", "alice", "", ""),
        lines("md5", "alice", "md5ee69efad287c7423caf0b3229d71f567", "pencil"),
        lines("md5_response", "alice", "pencil", "md537cba386e8b90f1e3941a0e792722253"),
        lines("scram", "alice", &format!("SCRAM-SHA-256$16:c2FsdA==${keys}:{keys}"), "pencil"),
        lines("prepared", "alice", "\u{ac00}\u{11a8}e\u{301}\u{fb01}\u{ad}", "\u{a0}"),
        lines("right_to_left", "alice", "\u{5d0}1\u{5d1}", "\u{5d0}\u{660}a"),
        lines("few_marks", "alice", &marks(9), &marks(3)),
        lines("some_marks", "alice", &marks(19), &marks(20)),
        lines("many_marks", "alice", &marks(33), &marks(70)),
        lines("cut_short", "alice", "SCRAM-SHA-256$4096:c2FsdA==$AAEC", "pencil"),
    ]
}

/// A letter and so many marks on it, in no order.
fn marks(n: u32) -> String {
    let mark = |at: u32| char::from_u32(0x300 + (at * 29) % 0x4f).expect("a mark");
    std::iter::once('a').chain((0..n).map(mark)).collect()
}

pub(crate) fn url() -> Vec<Seed> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        text("whole", "postgresql://app:\u{1}@db:6000/shop?connect_timeout=5&sslmode=prefer"),
        text("parameters", "postgres:///?host=db&port=6000&user=app&password=\u{1}&dbname=shop"),
        text("decoded", "postgres://a%40b:p%3Aw%2F%25%C3%A9@db%2D1/my%20shop"),
        text("ipv6", "postgres://app@[::1]:6000"),
        text("tls", "postgres://app@db?sslmode=verify-full"),
        text("slip", "postgres://app@db?dbnam=shop"),
        text("misplaced", "postgres://app:\u{1}"),
        text("other", "mysql://app:\u{1}@db"),
    ]
}

pub(crate) fn console() -> Vec<Seed> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        text("pools", "SHOW POOLS;"),
        text("stats", "show stats"),
        text("clients", "show clients"),
        text("servers", "show \"servers\""),
        text("version", "/* c */ SHOW VERSION -- d"),
        text("help", "SHOW HELP"),
        text("config", "SHOW CONFIG"),
        text("shutdown", "SHUTDOWN wait_for_clients"),
        text("setting", "SHOW client_encoding"),
        text("set", "SET extra_float_digits = '3'"),
        text("slip", "SHOW POOLZ"),
        text("elsewhere", "PAUSE app"),
        text("nothing", ";"),
        text("select", "SELECT version"),
    ]
}

pub(crate) fn scram_server() -> Vec<Seed> {
    let nonce = "CQkJCQkJCQkJCQkJCQkJCQkJ";
    let proof = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let text = |text: String| text.into_bytes();
    vec![
        ("wrong_proof", text(format!("n,,n=,r=abc\nc=biws,r=abc{nonce},p={proof}"))),
        ("not_offered", text(format!("y,,n=,r=abc\nc=eSws,r=abc{nonce},p={proof}"))),
        ("binding_mismatch", text(format!("y,,n=,r=abc\nc=biws,r=abc{nonce},p={proof}"))),
        ("extension", text(format!("n,,n=,r=abc,x=1\nc=biws,r=abc{nonce},x=1,p={proof}"))),
        ("short_proof", text(format!("n,,n=,r=abc\nc=biws,r=abc{nonce},p=AAAA"))),
        ("binding", text("p=tls-unique,,n=,r=abc".to_owned())),
        ("identity", text("n,a=bob,n=,r=abc".to_owned())),
        ("mandatory", text("n,,m=x,n=,r=abc".to_owned())),
        ("longest_nonce", text(format!("n,,n=,r={}", "a".repeat(512)))),
    ]
}

pub(crate) fn scram_client() -> Vec<Seed> {
    let nonce = "CQkJCQkJCQkJCQkJCQkJCQkJ";
    let signature = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let text = |text: String| text.into_bytes();
    vec![
        ("wrong_signature", text(format!("r={nonce}xyz,s=c2FsdA==,i=4096\nv={signature}"))),
        ("few_iterations", text(format!("r={nonce}xyz,s=QUFB,i=1\nv={signature}"))),
        ("many_iterations", text(format!("r={nonce}xyz,s=QUFB,i=2147483647"))),
        ("refused", text(format!("r={nonce}xyz,s=c2FsdA==,i=4096\ne=other-error"))),
        ("same_nonce", text(format!("r={nonce},s=c2FsdA==,i=4096"))),
        ("other_nonce", text("r=abc,s=c2FsdA==,i=4096".to_owned())),
        ("mandatory", text(format!("m=x,r={nonce}xyz,s=c2FsdA==,i=4096"))),
        ("empty_salt", text(format!("r={nonce}xyz,s=,i=2\nv={signature},x=1"))),
    ]
}
