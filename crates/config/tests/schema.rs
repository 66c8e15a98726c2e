//! `docs/pgweir.schema.json` is true: it takes what pgweir takes, and refuses what pgweir refuses,
//! as far as one value shows it. What settings say of each other, and the longest times, are more
//! than it knows.

use std::collections::BTreeSet;
use std::path::Path;

use pgweir_config::{Config, Problem, settings_schema};
use regex_lite::Regex;
use serde_json::{Map, Value as Json};

const SAMPLE: &str = include_str!("../../../config/pgweir.toml");

/// A small file: where each section begins, and what has to be there.
const SECTIONS: [(&str, &str); 4] = [
    ("general", "auth_type = 'trust'\n"),
    ("pools.app", ""),
    ("pools.app.users.0", "username = 'alice'\n"),
    ("pools.app.shards.0", "servers = [['db', 5432, 'primary']]\ndatabase = 'app'\n"),
];

/// Values of which each setting takes some, as a file has them.
const VALUES: [&str; 62] = [
    "true",
    "false",
    "-1",
    "0",
    "1",
    "5",
    "127",
    "128",
    "1024",
    "1025",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "1.5",
    "2026-01-01",
    "{}",
    "[]",
    "[[]]",
    "[['db', 5432]]",
    "[['db', 5432, 'primary']]",
    "[['10.0.0.1', 5432, 'REPLICA'], ['/run', 1, 'Primary']]",
    "[['db', 5432, 'chief']]",
    "[['db', 0, 'primary']]",
    "[['db', '5432', 'primary']]",
    "[['', 5432, 'primary']]",
    "[['a b', 5432, 'primary']]",
    "''",
    "'x'",
    "'a b'",
    "'é'",
    "'::1'",
    "'/run'",
    "'@run'",
    "'@'",
    "'0'",
    "'5'",
    "'0770'",
    "'00777'",
    "'1777'",
    "'0788'",
    "'off'",
    "'OFF'",
    "'0s'",
    "'0ms'",
    "'5s'",
    "'05s'",
    "'5 s'",
    "'5S'",
    "'2min'",
    "'1h'",
    "'1500ms'",
    "'2000ms'",
    "'0B'",
    "'16kB'",
    "'64MB'",
    "'64mb'",
    "'trust'",
    "'SCRAM-SHA-256'",
    "'Session'",
    "'debug'",
    "'JSON'",
];

/// The small file with something else in one of its sections.
fn file(section: &str, content: &str) -> String {
    let text = |(name, own): (&str, &str)| {
        format!("[{name}]\n{}\n", if name == section { content } else { own })
    };
    format!("config_version = 1\n{}", SECTIONS.map(text).concat())
}

fn schema() -> Json {
    serde_json::from_str(&settings_schema()).expect("it is JSON")
}

/// A file as JSON.
fn json(text: &str) -> Json {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn problems(text: &str) -> Vec<Problem> {
    let errors = Config::parse(text, Path::new("pgweir.toml")).err();
    errors.map(|errors| errors.problems().to_vec()).unwrap_or_default()
}

#[test]
fn the_sample_fits() {
    assert!(fits(&schema(), &json(SAMPLE)));
}

#[test]
fn each_value_of_each_setting_is_judged_alike() {
    let schema = schema();
    let pool = &schema["properties"]["pools"]["additionalProperties"];
    let sections = [
        &schema["properties"]["general"],
        pool,
        &pool["properties"]["users"]["additionalProperties"],
        &pool["properties"]["shards"]["patternProperties"]["^[0-9]+$"],
    ];
    for ((section, _), its) in SECTIONS.into_iter().zip(sections) {
        let is_section = |key: &str| section == "pools.app" && ["users", "shards"].contains(&key);
        let settings = object(&its["properties"]).iter().filter(|(key, _)| !is_section(key));
        let settings: Vec<(&String, &Json)> = settings.collect();
        for value in VALUES {
            let lines = settings.iter().map(|(key, _)| format!("{key} = {value}\n"));
            let text = file(section, &lines.collect::<String>());
            let refused = problems(&text).into_iter().filter(|it| it.message.contains(", found "));
            let refused: BTreeSet<String> = refused.map(|problem| problem.key).collect();
            let value_of = json(&format!("it = {value}"));
            for (key, setting) in &settings {
                let taken = !refused.contains(&format!("{section}.{key}"));
                assert_eq!(fits(setting, &value_of["it"]), taken, "[{section}] {key} = {value}");
            }
        }
    }
}

#[test]
fn each_section_is_judged_alike() {
    let whole = file("", "");
    let without = |line: &str| whole.replace(line, "");
    let cases = [
        (whole.clone(), true),
        (whole.replace("users.0", "users.of_the_house"), true),
        (whole.replace("shards.0", "shards.00"), true),
        (whole.replace("shards.0", "shards.first"), false),
        (without("username = 'alice'\n"), false),
        (without("[pools.app.users.0]\nusername = 'alice'\n"), false),
        (without("database = 'app'\n"), false),
        (without("servers = [['db', 5432, 'primary']]\n"), false),
        ("config_version = 1\n[general]\n".to_owned(), false),
        (whole.replace("config_version = 1", "config_version = 2"), false),
        (whole.replace("config_version = 1", "config_version = 1\nnonsense = 1"), false),
    ];
    let strangers = SECTIONS.map(|(name, own)| (file(name, &format!("{own}nonsense = 1")), false));
    for (text, expected) in cases.into_iter().chain(strangers) {
        let taken = problems(&text).is_empty();
        assert_eq!((taken, fits(&schema(), &json(&text))), (expected, expected), "{text}");
    }
}

/// Whether a value is as a schema has it. Of JSON Schema's keywords only those are known that ours
/// has.
fn fits(schema: &Json, value: &Json) -> bool {
    let (items, fields, text) = (value.as_array(), value.as_object(), value.as_str());
    object(schema).iter().all(|(keyword, argument)| match keyword.as_str() {
        "$schema" | "default" | "description" | "title" => true,
        "additionalProperties" => fields.is_none_or(|fields| {
            others(schema, fields).all(|other| match argument {
                Json::Bool(allowed) => *allowed,
                schema => fits(schema, other),
            })
        }),
        "anyOf" => list(argument).iter().any(|schema| fits(schema, value)),
        "enum" => list(argument).contains(value),
        "items" => items.is_none_or(|items| items.iter().all(|item| fits(argument, item))),
        "maxItems" => items.is_none_or(|items| items.len() <= count(argument)),
        "maximum" => value.as_f64() <= argument.as_f64() || !value.is_number(),
        "minItems" => items.is_none_or(|items| items.len() >= count(argument)),
        "minLength" => text.is_none_or(|text| text.chars().count() >= count(argument)),
        "minProperties" => fields.is_none_or(|fields| fields.len() >= count(argument)),
        "minimum" => value.as_f64() >= argument.as_f64() || !value.is_number(),
        "pattern" => text.is_none_or(|text| matches(argument.as_str().expect("text"), text)),
        "patternProperties" => object(argument).iter().all(|(pattern, schema)| {
            let mut fields = fields.into_iter().flatten();
            fields.all(|(name, value)| !matches(pattern, name) || fits(schema, value))
        }),
        "prefixItems" => {
            let mut pairs = list(argument).iter().zip(items.into_iter().flatten());
            pairs.all(|(schema, item)| fits(schema, item))
        }
        "properties" => object(argument).iter().all(|(name, schema)| {
            fields.and_then(|fields| fields.get(name)).is_none_or(|value| fits(schema, value))
        }),
        "required" => fields.is_none_or(|fields| {
            list(argument).iter().all(|name| fields.contains_key(name.as_str().expect("text")))
        }),
        "type" => match argument.as_str().expect("text") {
            "array" => value.is_array(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "object" => value.is_object(),
            "string" => value.is_string(),
            other => panic!("the type {other} is not known here"),
        },
        other => panic!("the keyword {other} is not known here"),
    })
}

/// The values that a schema has neither a name nor a pattern for.
fn others<'a>(schema: &Json, fields: &'a Map<String, Json>) -> impl Iterator<Item = &'a Json> {
    let names = |keyword: &str| {
        let known = schema.get(keyword).into_iter().flat_map(object);
        known.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let (named, patterns) = (names("properties"), names("patternProperties"));
    let known =
        move |name: &String| named.contains(name) || patterns.iter().any(|it| matches(it, name));
    fields.iter().filter(move |(name, _)| !known(name)).map(|(_, value)| value)
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).expect("a pattern").is_match(text)
}

#[track_caller]
fn object(json: &Json) -> &Map<String, Json> {
    json.as_object().expect("an object")
}

#[track_caller]
fn list(json: &Json) -> &Vec<Json> {
    json.as_array().expect("a list")
}

#[track_caller]
fn count(json: &Json) -> usize {
    json.as_u64().expect("a number").try_into().expect("a small one")
}
