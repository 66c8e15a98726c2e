//! The words of what a target reads, which no change of single bytes finds soon. Those that a table
//! knows are taken from there.

use pgweir_config::{Fallback, Kind, PIN_KINDS, SETTINGS};

/// What inputs of a target are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rows of cells, with SQL in some.
    Catalogue,
    /// TOML, with the names of settings.
    Config,
    /// Commands of the console.
    Console,
    /// Messages of the protocol.
    Messages,
    /// Messages, and what the statements in them say to a server of ours.
    Scripts,
    /// Messages of SCRAM, and what is stored for it.
    Scram,
    /// SQL.
    Sql,
    /// The URL of a server.
    Url,
}

/// The words of a language, in an order that is always the same; there are some.
pub fn words(language: Language) -> Vec<Vec<u8>> {
    let all = |lists: &[&[&[u8]]]| lists.concat().into_iter().map(<[u8]>::to_vec).collect();
    let mut words: Vec<Vec<u8>> = match language {
        Language::Catalogue => [all(&[CATALOGUE]), sql()].concat(),
        Language::Config => settings(),
        Language::Console => all(&[CONSOLE]),
        Language::Messages => all(&[MESSAGES]),
        Language::Scripts => [all(&[MESSAGES]), sql()].concat(),
        Language::Scram => {
            let characters = CHARACTERS.iter().map(|text| text.as_bytes().to_vec());
            all(&[SCRAM]).into_iter().chain(characters).collect()
        }
        Language::Sql => sql(),
        Language::Url => all(&[URL]),
    };
    words.retain(|word| !word.is_empty());
    words.sort_unstable();
    words.dedup();
    words
}

/// The names of settings and of sections, the words that they take, and what TOML has around them.
fn settings() -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = TOML.iter().map(|word| word.to_vec()).collect();
    let mut add = |word: &str| words.push(word.as_bytes().to_vec());
    PIN_KINDS.iter().copied().for_each(&mut add);
    for setting in SETTINGS {
        add(&format!("{} = ", setting.name));
        match setting.kind {
            Kind::Word(choices) | Kind::Words(choices) => {
                choices.iter().for_each(|word| add(&format!("\"{word}\"")));
            }
            Kind::Any
            | Kind::Flag
            | Kind::Host
            | Kind::Integer(..)
            | Kind::Mode
            | Kind::Name
            | Kind::Period(_)
            | Kind::Pipelining
            | Kind::Secret
            | Kind::Section(_)
            | Kind::Sections(_)
            | Kind::SectionsByNumber(_)
            | Kind::Servers
            | Kind::Share
            | Kind::Size
            | Kind::SocketFolder
            | Kind::Sql
            | Kind::Text
            | Kind::Time(..) => {}
        }
        if let Fallback::Text(value) = setting.pgcat.fallback {
            add(value);
        }
    }
    words
}

/// The words that the classifier knows, and the marks between which they stand.
fn sql() -> Vec<Vec<u8>> {
    let marks = SQL_MARKS.iter().map(|word| word.to_vec());
    let others = SQL_WORDS.split_ascii_whitespace();
    let known = pgweir_sql::words().chain(others);
    marks.chain(known.map(|word| format!("{word} ").into_bytes())).collect()
}

/// What rows of a catalogue are made of.
const CATALOGUE: &[&[u8]] = &[
    b"\nf\t16384\tpublic\tf\tsql\t0\t",
    b"\nf\t16385\tpublic\tg\tplpgsql\t0\t",
    b"\nf\t16386\tpublic\th\tplperl\t0\t",
    b"\nf\t16387\tpublic\ti\tinternal\t0\t",
    b"\nf\t16388\tpublic\tj\tc\t0\t",
    b"\nf\t16384\tpublic\tf\tsql\t1\t",
    b"\nf\t1000\tpg_catalog\tk\tinternal\t0\t",
    b"\nr\t16390\tpublic\tr\t\t0\t",
    b"\nt\t16391\tpublic\tt\t\t0\t",
    b"\nu\t0\t\t\t\t0\t",
    b"\nr\t16390\tf\t16384\tw\ttrigger x",
    b"\nr\t16390\tf\t16385\ta\trule x",
    b"\nu\t0\tf\t16384\ta\toperator +",
    b"\nt\t16391\tf\t16385\ta\tcheck x",
    b"\nf\t16384\tr\t16390\ta\tx",
    b"set_config",
    b"nextval",
    b"currval",
    b"lastval",
    b"pg_advisory_lock",
    b"plpy.execute",
    b"spi_exec_query",
    b"SD[",
    b"dblink",
    b"perform ",
    b"return ",
    b"declare ",
    b"begin ",
    b"end; ",
];

/// What is found in the protocol.
const MESSAGES: &[&[u8]] = &[
    b"\0\0\0\x04",
    b"\0\0\0\x08",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x3f\xff\xff\xfe",
    b"\0\x03\0\0",
    b"\0\x03\0\x02",
    b"\x04\xd2\x16\x2e",
    b"\x04\xd2\x16\x2f",
    b"user\0",
    b"database\0",
    b"options\0",
    b"_pq_.x\0",
    b"replication\0",
    b"S\0\0\0\x04",
    b"H\0\0\0\x04",
    b"X\0\0\0\x04",
    b"c\0\0\0\x04",
    b"d\0\0\0\x06a\n",
    b"f\0\0\0\x06x\0",
    b"Q\0\0\0\x05\0",
    b"Q\0\0\0\x0aBEGIN\0",
    b"Q\0\0\0\x0bCOMMIT\0",
    b"Q\0\0\0\x0aERROR\0",
    b"Q\0\0\0\x0cCOPY IN\0",
    b"Q\0\0\0\x0dCOPY OUT\0",
    b"Q\0\0\0\x0aSLEEP\0",
    b"Q\0\0\0\x0eSET x = 1\0",
    b"Q\0\0\0\x15COPY IN;COPY OUT\0",
    b"P\0\0\0\x10\0SELECT 1\0\0\0",
    b"P\0\0\0\x11s\0SELECT 1\0\0\0",
    b"P\0\0\0\x0f\0COPY IN\0\0\0",
    b"P\0\0\0\x0d\0DEFER\0\0\0",
    b"P\0\0\0\x0c\0MANY\0\0\0",
    b"B\0\0\0\x0c\0\0\0\0\0\0\0\0",
    b"B\0\0\0\x0d\0s\0\0\0\0\0\0\0",
    b"D\0\0\0\x06P\0",
    b"D\0\0\0\x06S\0",
    b"C\0\0\0\x06S\0",
    b"C\0\0\0\x07Ss\0",
    b"E\0\0\0\x09\0\0\0\0\0",
    b"E\0\0\0\x09\0\0\0\0\x01",
    b"F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0",
    b"Z\0\0\0\x05I",
    b"Z\0\0\0\x05T",
    b"Z\0\0\0\x05E",
    b"1\0\0\0\x04",
    b"2\0\0\0\x04",
    b"3\0\0\0\x04",
    b"n\0\0\0\x04",
    b"s\0\0\0\x04",
    b"t\0\0\0\x06\0\0",
    b"I\0\0\0\x04",
    b"C\0\0\0\x0dSELECT 1\0",
    b"D\0\0\0\x0b\0\x01\0\0\0\x011",
    b"T\0\0\0\x06\0\0",
    b"E\0\0\0\x13SERROR\0C42601\0\0",
    b"E\0\0\0\x13SFATAL\0C57P01\0\0",
    b"N\0\0\0\x14SNOTICE\0C00000\0\0",
    b"S\0\0\0\x08a\0b\0",
    b"A\0\0\0\x0c\0\0\0\x01c\0p\0",
    b"G\0\0\0\x07\0\0\0",
    b"H\0\0\0\x07\0\0\0",
    b"W\0\0\0\x07\0\0\0",
    b"V\0\0\0\x08\xff\xff\xff\xff",
    b"R\0\0\0\x08\0\0\0\0",
    b"K\0\0\0\x0c\0\0\0\x01abcd",
];

/// What is found in SCRAM, and in what is stored for a password.
const SCRAM: &[&[u8]] = &[
    b"n,,",
    b"y,,",
    b"p=tls-unique,,",
    b"r=",
    b",s=c2FsdA==",
    b",i=4096",
    b"c=biws,",
    b",p=",
    b"v=",
    b"m=x,",
    b"SCRAM-SHA-256$",
    b"md5",
    b":",
    b"$",
    b"=",
    b"\n",
];

/// What SASLprep changes, refuses, or looks at twice: a space that is none, what is left out, what
/// is composed with what stands before it or has another form, both directions of writing, what has
/// no place in a password, and marks that are put in order.
const CHARACTERS: &[&str] = &[
    "\u{a0}",
    "\u{ad}",
    "e\u{301}",
    "\u{1100}\u{1161}\u{11a8}",
    "\u{ac00}\u{11a8}",
    "\u{d4db}",
    "\u{fb01}",
    "\u{2fa1d}",
    "\u{212b}",
    "\u{958}",
    "\u{5d0}",
    "\u{660}",
    "\u{61b}",
    "\u{1}",
    "\u{7f}",
    "\u{e000}",
    "\u{fdd0}",
    "\u{fffd}",
    "\u{2ff0}",
    "\u{200e}",
    "\u{e0041}",
    "\u{221}",
    "\u{315}\u{301}\u{323}",
    "\u{345}\u{315}\u{301}\u{323}\u{5b0}\u{334}\u{3099}\u{31d}\u{360}\u{5b1}",
];

/// What is found between the words of SQL, and statements of several words.
const SQL_MARKS: &[&[u8]] = &[
    b"'",
    b"''",
    b"\"",
    b"$$",
    b"$a$",
    b"--",
    b"/*",
    b"*/",
    b"\\",
    b"\\'",
    b"U&\"",
    b"E'",
    b";",
    b"SET ",
    b"LOCAL ",
    b"set_config(",
    b"CREATE TEMP ",
    b" ON COMMIT DROP",
    b"LISTEN ",
    b"PREPARE ",
    b",",
    b"(",
    b")",
    b".",
    b"$1",
    b"::",
    b"=",
    b" ",
    b"\n",
    b"a",
    b"U&'",
    b"UESCAPE '!'",
    b"N'",
    b"X'",
];

/// Words that statements begin with or that have a meaning beside the rules.
const SQL_WORDS: &str = "all and atomic authorization begin chain characteristics declare else \
    elsif execute if language loop names operator perform plpgsql query query_canceled return \
    select sqlstate start strict table then time true using values while work xml zone";

/// What is found in TOML, and in a configuration around the names of settings.
const TOML: &[&[u8]] = &[
    b"[pools.app]\n",
    b"[pools.app.users.0]\n",
    b" = \"",
    b" = 0\n",
    b" = [[",
    b"# ",
    b"[pools.app.shards.0]\n",
    b"[general]\n",
    b"[query_router]\n",
    b"[user]\n",
    b"[shards.0]\n",
    b"config_version = 1\n",
    b"true",
    b"false",
    b"\"off\"",
    b"\"3x8\"",
    b"\"10%\"",
    b"\"5s\"",
    b"\"1h\"",
    b"\"16kB\"",
    b"\"1GB\"",
    b"[[\"::1\", 5432, \"primary\"]]",
    b"\"replica\"",
    b"\"*\"",
    b"SCRAM-SHA-256$",
    b"md5",
    b"postgres://a@h/d",
    b"{",
    b"}",
    b"]",
    b"\"",
    b"'''",
    b"\"\"\"",
    b"1979-05-27T07:32:00Z",
    b"0x1f",
    b"1.5",
    b"\n",
];

/// Commands.
const CONSOLE: &[&[u8]] = &[
    b"SHOW ",
    b"SET ",
    b"POOLS",
    b"RELOAD",
    b"SHUTDOWN",
    b" wait_for_clients",
    b";",
    b"--",
    b"/*",
    b"*/",
    b"\"",
    b"'",
    b"=",
];

/// What is found in URLs.
const URL: &[&[u8]] = &[
    b"postgres://",
    b"postgresql://",
    b"@",
    b":",
    b"/",
    b"?",
    b"&",
    b"=",
    b"%",
    b"%2F",
    b"[",
    b"]",
    b"host=",
    b"port=",
    b"user=",
    b"password=",
    b"dbname=",
    b"sslmode=",
    b"connect_timeout=",
];
