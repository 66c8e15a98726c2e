use super::Encoding;

#[test]
fn encodings_of_databases_are_supersets_of_ascii() {
    let names = "UTF8 SQL_ASCII MULE_INTERNAL EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 KOI8R KOI8U \
                 LATIN1 LATIN2 LATIN10 WIN866 WIN874 WIN1250 WIN1258 ISO_8859_5 ISO_8859_8";
    for name in names.split_whitespace() {
        assert_eq!(Encoding::named(name.as_bytes()), Encoding::Superset, "{name}");
    }
}

#[test]
fn encodings_of_clients_and_unknown_names_are_not() {
    let names = "SJIS BIG5 GBK UHC GB18030 JOHAB SHIFT_JIS_2004 LATIN LATINX utf8 WIN";
    for name in names.split_whitespace() {
        assert_eq!(Encoding::named(name.as_bytes()), Encoding::ClientOnly, "{name}");
    }
    assert_eq!(Encoding::named(b""), Encoding::ClientOnly);
}
