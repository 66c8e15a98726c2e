use super::*;

#[test]
fn settings_by_which_literals_are_read_are_seen_in_a_text() {
    for text in [
        "SET LOCAL TimeZone = 'UTC'",
        "set local time  zone 'UTC'",
        "SELECT set_config('DATESTYLE', $1, true)",
        "SET LOCAL IntervalStyle TO iso_8601",
        "SET LOCAL array_nulls = off",
        "SET LOCAL lc_monetary = 'C'",
        "SET XML OPTION DOCUMENT",
        "SET LOCAL U&\"time\\007aone\" = 'UTC'",
        "SET LOCAL bytea_output = escape",
        "UPDATE pg_settings SET setting = $1 WHERE name = $2",
    ] {
        assert!(may_change_reading(text.as_bytes()), "{text}");
    }
    for text in [
        "SET LOCAL statement_timeout = 5",
        "SELECT set_config('app.tenant', $1, true)",
        "SET LOCAL ROLE web",
        "SET LOCAL search_path = a",
    ] {
        assert!(!may_change_reading(text.as_bytes()), "{text}");
    }
}

#[test]
fn literals_are_seen_in_a_statement() {
    for text in [
        "SELECT * FROM t WHERE ts > '2024-01-01'",
        "SELECT $$2024-01-01$$::date",
        "SELECT $a$2024-01-01$a$::date",
        "SELECT * FROM t WHERE a = NULL",
        "SELECT 0.1::float8::text",
    ] {
        assert!(has_literals(text.as_bytes()), "{text}");
    }
    for text in ["SELECT * FROM t WHERE id = $1 AND a > 5", "SELECT $1", "", "$"] {
        assert!(!has_literals(text.as_bytes()), "{text}");
    }
}
