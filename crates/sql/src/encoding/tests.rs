use super::Encoding;

#[track_caller]
fn check(names: &str, expected: Encoding) {
    for name in names.split_whitespace() {
        assert_eq!(Encoding::named(name.as_bytes()), expected, "{name}");
    }
}

#[test]
fn every_encoding_of_postgresql_has_its_kind() {
    check("UTF8", Encoding::Exact);
    check(
        "SQL_ASCII MULE_INTERNAL EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 KOI8R KOI8U \
         LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN866 WIN874 \
         WIN1250 WIN1251 WIN1252 WIN1253 WIN1254 WIN1255 WIN1256 WIN1257 WIN1258 ISO_8859_5 \
         ISO_8859_6 ISO_8859_7 ISO_8859_8",
        Encoding::Superset,
    );
    check("SJIS BIG5 GBK UHC GB18030 JOHAB", Encoding::Overlapping);
    check("SHIFT_JIS_2004", Encoding::Opaque);
}

#[test]
fn names_are_those_of_the_catalogue_in_utf8_alone() {
    assert_eq!(Encoding::Exact.within(b"UTF8"), Encoding::Exact);
    for database in ["LATIN1", "SQL_ASCII", "EUC_JP", ""] {
        assert_eq!(Encoding::Exact.within(database.as_bytes()), Encoding::Superset);
    }
    for encoding in [Encoding::Superset, Encoding::Overlapping, Encoding::Opaque] {
        assert_eq!(encoding.within(b"LATIN1"), encoding);
        assert_eq!(encoding.within(b"UTF8"), encoding);
    }
}

#[test]
fn unknown_names_are_not_trusted() {
    check("LATIN LATINX WIN utf8 UTF-16 SJIS2", Encoding::Opaque);
    assert_eq!(Encoding::named(b""), Encoding::Opaque);
}

#[test]
fn what_may_be_part_of_another_character_obscures() {
    for (encoding, text, expected) in [
        (Encoding::Superset, b"\\\x81_".as_slice(), false),
        (Encoding::Overlapping, b"\x81_", false),
        (Encoding::Overlapping, b"\x95\\", true),
        (Encoding::Opaque, b"\x81_", true),
        (Encoding::Opaque, b"\\_", false),
    ] {
        assert_eq!(encoding.obscures(text), expected, "{encoding:?} {text:?}");
    }
}
