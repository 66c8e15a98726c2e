use super::*;
use crate::marks::tests::took;

fn startup(interner: &mut Interner, pairs: &[(&str, &str)]) -> Rc<Settings> {
    let pairs = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
    interner.of_startup(pairs).unwrap().settings
}

fn replay(from: &[(&str, &str)], to: &[(&str, &str)]) -> String {
    let mut interner = Interner::new();
    let from = startup(&mut interner, from);
    let to = startup(&mut interner, to);
    String::from_utf8(from.replay(&to, None, None)).unwrap()
}

#[test]
fn equal_settings_are_one_value() {
    let mut interner = Interner::new();
    let a = startup(&mut interner, &[("user", "a"), ("TimeZone", "UTC"), ("DateStyle", "ISO")]);
    let b = startup(&mut interner, &[("datestyle", "ISO"), ("timezone", "UTC"), ("user", "b")]);
    let c = startup(&mut interner, &[("datestyle", "ISO")]);
    assert!(Rc::ptr_eq(&a, &b));
    assert!(!Rc::ptr_eq(&a, &c));
    assert!(Rc::ptr_eq(&startup(&mut interner, &[("user", "b")]), &interner.none()));
}

#[test]
fn settings_that_nobody_uses_are_forgotten() {
    let mut interner = Interner::new();
    let kept = startup(&mut interner, &[("application_name", "kept")]);
    for n in 0..5_000 {
        startup(&mut interner, &[("application_name", &n.to_string())]);
    }
    assert!(interner.known.len() <= PRUNE_ABOVE + 1);
    assert!(took(Mark::SettingsForgotten));
    assert!(Rc::ptr_eq(&kept, &startup(&mut interner, &[("application_name", "kept")])));
}

#[test]
fn replay_takes_back_what_differs_and_then_sets_it() {
    assert_eq!(
        replay(&[("a", "1"), ("b", "2"), ("c", "3")], &[("a", "1"), ("b", "x"), ("d", "4")]),
        "SELECT ARRAY[pg_catalog.set_config('b', NULL, false), \
         pg_catalog.set_config('c', NULL, false), pg_catalog.set_config('b', 'x', false), \
         pg_catalog.set_config('d', '4', false)] IS NULL"
    );
}

/// It is what it was, whether the statement succeeds or not.
#[test]
fn a_brake_that_stays_is_left_alone() {
    let mut interner = Interner::new();
    let mut settings = |pairs: &[(&str, &str)]| startup(&mut interner, pairs);
    let (from, to) = (settings(&[("a", "1")]), settings(&[("a", "2")]));
    let timed = settings(&[("statement_timeout", "9")]);
    let brake = Some(Duration::from_millis(50));
    let text = |from: &Settings, to: &Settings, then| {
        String::from_utf8(from.replay(to, brake, then)).unwrap()
    };
    assert_eq!(
        text(&from, &to, brake),
        "SELECT ARRAY[pg_catalog.set_config('a', NULL, false), \
         pg_catalog.set_config('a', '2', false)] IS NULL"
    );
    assert!(text(&from, &to, None).contains("'statement_timeout', NULL"));
    assert!(text(&timed, &from, brake).ends_with("'statement_timeout', '50', false)] IS NULL"));
}

/// Under another role, or in other words, a unit is another one before anybody hears of it.
#[test]
fn settings_that_decide_what_is_done_are_not_foreseen() {
    let mut interner = Interner::new();
    let none = interner.none();
    for (name, is_foreseen) in [
        ("TimeZone", true),
        ("search_path", true),
        ("app.tenant", true),
        ("role", false),
        ("row_security", false),
        ("standard_conforming_strings", false),
        ("client_encoding", false),
    ] {
        let one = startup(&mut interner, &[(name, "1")]);
        let other = startup(&mut interner, &[(name, "2"), ("datestyle", "ISO")]);
        let with_more = startup(&mut interner, &[(name, "1"), ("work_mem", "1MB")]);
        assert_eq!(Settings::foresees(&one, &other), is_foreseen, "{name}");
        assert_eq!(Settings::foresees(&none, &one), is_foreseen, "{name}");
        assert_eq!(Settings::foresees(&one, &none), is_foreseen, "{name}");
        assert!(Settings::foresees(&one, &with_more), "{name}");
    }
}

#[test]
fn a_role_comes_off_first_and_on_last() {
    assert_eq!(
        replay(&[("a", "1"), ("role", "low"), ("z", "1")], &[("role", "low"), ("z", "2")]),
        "SELECT ARRAY[pg_catalog.set_config('role', NULL, false), \
         pg_catalog.set_config('a', NULL, false), pg_catalog.set_config('z', NULL, false), \
         pg_catalog.set_config('z', '2', false), \
         pg_catalog.set_config('role', 'low', false)] IS NULL"
    );
}

#[test]
fn replay_quotes_for_either_kind_of_string() {
    assert_eq!(
        replay(&[], &[("application_name", r"it's \ a")]),
        r"SELECT ARRAY[pg_catalog.set_config('application_name', E'it''s \\ a', false)] IS NULL"
    );
}

/// In SJIS, for one, the two bytes from 0x81 on are one character.
#[test]
fn replay_is_read_alike_in_every_encoding() {
    assert_eq!(
        replay(&[], &[("é", "Á\\'")]),
        "SELECT ARRAY[pg_catalog.set_config(pg_catalog.convert_from(\
         pg_catalog.decode('c3a9', 'hex'), pg_catalog.getdatabaseencoding()), \
         pg_catalog.convert_from(pg_catalog.decode('c3815c27', 'hex'), \
         pg_catalog.getdatabaseencoding()), false)] IS NULL"
    );
}

#[test]
fn settings_that_do_nothing_at_login_are_left_out() {
    let mut interner = Interner::new();
    let settings = [("options", "-c seed=0.5"), ("session_authorization", "someone")];
    assert!(Rc::ptr_eq(&startup(&mut interner, &settings), &interner.none()));
}

#[test]
fn a_search_path_with_temporary_tables_pins() {
    let mut interner = Interner::new();
    let mut pins = |path: &str| startup(&mut interner, &[("search_path", path)]).pins();
    assert_eq!(pins("public"), Pins::NONE);
    for path in ["pg_temp", "nowhere, \"pg_temp\"", "PG_TEMP_3"] {
        assert_eq!(pins(path), pgweir_sql::PinReason::TempTable.into(), "{path}");
    }
    let by_switch = startup(&mut interner, &[("options", "-c search-path=pg_temp")]);
    assert_eq!(by_switch.pins(), pgweir_sql::PinReason::TempTable.into());
}

/// Switches are split at white space and unescaped, not searched for `-c`.
#[test]
fn options_are_taken_apart_as_postgresql_does() {
    let options = |text: &str| {
        switches(text.as_bytes()).map(|pairs| {
            pairs
                .iter()
                .map(|(n, v)| format!("{}={}", n.escape_ascii(), v.escape_ascii()))
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(options("").unwrap(), [""; 0]);
    assert_eq!(options("-c a=b").unwrap(), ["a=b"]);
    assert_eq!(options("  -ca=b\t--search-path=x,y ").unwrap(), ["a=b", "search_path=x,y"]);
    assert_eq!(options(r"-c a=b\ c\\d").unwrap(), [r"a=b c\\d"]);
    assert_eq!(options(r"-c a=-c\ b=c").unwrap(), ["a=-c b=c"]);
    assert_eq!(options("-c A=").unwrap(), ["a="]);
    for bad in ["-c", "a=b", "-c novalue", "--novalue"] {
        assert!(options(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_switch_of_a_session_is_understood() {
    let options = |text: &str| {
        let pairs = switches(text.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(pairs.iter().map(|(n, v)| format!("{}={}", text(n), text(v))).collect::<Vec<_>>())
    };
    for (text, expected) in [
        ("-S 64 -eS65 -nc a=b", &["work_mem=64", "datestyle=euro", "work_mem=65", "a=b"][..]),
        ("-fs -f index", &["enable_seqscan=false", "enable_indexscan=false"]),
        ("-tpa -te", &["log_parser_stats=true", "log_executor_stats=true"]),
        ("-bEjnTv 3 -Cx -D -r --", &[]),
        ("-d -1 -dx", &["log_min_messages=notice", "log_min_messages=notice"]),
        (
            "-d 4x",
            &[
                "log_min_messages=debug4",
                "log_statement=all",
                "debug_print_parse=true",
                "debug_pretty_print=true",
            ],
        ),
    ] {
        assert_eq!(options(text).unwrap(), expected, "{text}");
    }
    for (text, complaint) in [
        ("-fz", "-fz"),
        ("-f z", "z"),
        ("-tp", "-tp"),
        ("-n -xe", "-n"),
        ("-xe", "postgres"),
        ("-e word -xe", "word"),
        ("word -x", "-x"),
        ("word1 word2 -e", "word1"),
        ("-e -- word", "word"),
        ("-n -", "-"),
        ("-nS", "-nS"),
    ] {
        assert_eq!(options(text), Err(BadStartup::Invalid(complaint.into())), "{text}");
    }
}

#[test]
fn the_packet_wins_over_its_options() {
    let mut interner = Interner::new();
    let both = startup(&mut interner, &[("options", "-c a=1 -c b=2"), ("a", "3")]);
    assert_eq!(both.value(b"a"), Some(&b"3"[..]));
    assert_eq!(both.value(b"b"), Some(&b"2"[..]));
    let twice = startup(&mut interner, &[("options", "-c a=1 --a=2")]);
    assert_eq!(twice.value(b"a"), Some(&b"2"[..]));
}

/// It is no setting of a server's, whether it is asked for by itself or among the `options`.
#[test]
fn what_is_asked_of_us_is_kept_apart() {
    let mut interner = Interner::new();
    let mut asked = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        interner.of_startup(pairs).map(|wishes| (wishes.settings.is_empty(), wishes.choice))
    };
    fn of_options(options: &str) -> [(&str, &str); 1] {
        [("options", options)]
    }
    assert_eq!(asked(&[]), Ok((true, Choice::Auto)));
    assert_eq!(asked(&[("PgWeir.Pipelining", "OFF")]), Ok((true, Choice::Off)));
    assert_eq!(asked(&of_options("-c pgweir.pipelining=off")), Ok((true, Choice::Off)));
    assert_eq!(asked(&of_options("--pgweir.pipelining=auto")), Ok((true, Choice::Auto)));
    let both = [("options", "-c pgweir.pipelining=off"), ("pgweir.pipelining", "auto")];
    assert_eq!(asked(&both), Ok((true, Choice::Auto)), "the packet's own wins");
    for wrong in ["on", "", "3x8"] {
        let refused = Err(BadStartup::Choice(wrong.into()));
        assert_eq!(asked(&[("pgweir.pipelining", wrong)]), refused);
        let options = format!("-cpgweir.pipelining={wrong}");
        assert_eq!(asked(&of_options(&options)), refused);
    }
}
