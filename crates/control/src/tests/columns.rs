//! Columns, as whoever reads PgBouncer's expects them.

use super::said;

/// The types are those of PgBouncer's src/admin.c and src/stats.c, a letter for each column.
#[test]
fn columns_are_pgbouncers() {
    let types = |request: &str| {
        let reply = said(request);
        let header = reply.lines().next().expect("a RowDescription");
        let columns = header.split(' ').skip(1);
        columns.filter_map(|column| column.split('/').nth(1)).collect::<String>()
    };
    assert_eq!(types("SHOW POOLS"), "ssiiiiiiiiiiiiisssiiiiqqiii", "the last ten are ours");
    assert_eq!(types("SHOW CLIENTS"), "ssssssisissiiississiis", "the last is ours");
    assert_eq!(types("SHOW SERVERS"), "ssssssisissiiississiis", "the last is ours");
    assert_eq!(types("SHOW STATS"), "sNNNNNNNNNNNNNNNNNNNNNNNN");
    assert_eq!(types("SHOW STATS_TOTALS"), "sNNNNNNNNNNNN");
    assert_eq!(types("SHOW STATS_AVERAGES"), "sNNNNNNNNNNNN");
    assert_eq!(types("SHOW TOTALS"), "sN");
    assert_eq!(types("SHOW DATABASES"), "ssissiiiissiiiiii");
    assert_eq!(types("SHOW USERS"), "ssssiiii");
    assert_eq!(types("SHOW LISTS"), "si");
    assert_eq!(types("SHOW CONFIG"), "ssss");
    assert_eq!(types("SHOW STATE"), "ss");
    assert_eq!(types("SHOW MEM"), "sqqqq", "int4 with PgBouncer, where memory is below 2 GB");
}

/// The names are those of the same sources, after 1.25.
#[test]
fn columns_are_named_as_pgbouncers() {
    let names = |request: &str| -> Vec<String> {
        let reply = said(request);
        let header = reply.lines().next().expect("a RowDescription");
        let columns = header.split(' ').skip(1);
        columns.filter_map(|column| Some(column.split('/').next()?.to_owned())).collect()
    };
    let connections = [
        "type",
        "user",
        "database",
        "replication",
        "state",
        "addr",
        "port",
        "local_addr",
        "local_port",
        "connect_time",
        "request_time",
        "wait",
        "wait_us",
        "close_needed",
        "ptr",
        "link",
        "remote_pid",
        "tls",
        "application_name",
        "prepared_statements",
        "id",
    ];
    assert_eq!(names("SHOW SERVERS"), [&connections[..], &["queue"]].concat());
    assert_eq!(names("SHOW CLIENTS"), [&connections[..], &["pins"]].concat());
    let stats = [
        "database",
        "total_server_assignment_count",
        "total_xact_count",
        "total_query_count",
        "total_received",
        "total_sent",
        "total_xact_time",
        "total_query_time",
        "total_wait_time",
        "total_client_parse_count",
        "total_server_parse_count",
        "total_bind_count",
        "total_client_login_count",
        "avg_server_assignment_count",
        "avg_xact_count",
        "avg_query_count",
        "avg_recv",
        "avg_sent",
        "avg_xact_time",
        "avg_query_time",
        "avg_wait_time",
        "avg_client_parse_count",
        "avg_server_parse_count",
        "avg_bind_count",
        "avg_client_login_count",
    ];
    assert_eq!(names("SHOW STATS"), stats);
    let totals = [
        "database",
        "server_assignment_count",
        "xact_count",
        "query_count",
        "bytes_received",
        "bytes_sent",
        "xact_time",
        "query_time",
        "wait_time",
        "client_parse_count",
        "server_parse_count",
        "bind_count",
        "client_login_count",
    ];
    assert_eq!(names("SHOW STATS_TOTALS"), totals);
    let averages = [
        "database",
        "server_assignment_count",
        "xact_count",
        "query_count",
        "bytes_received",
        "bytes_sent",
        "xact_time",
        "query_time",
        "wait_time",
        "avg_client_parse_count",
        "avg_server_parse_count",
        "avg_bind_count",
        "avg_client_login_count",
    ];
    assert_eq!(names("SHOW STATS_AVERAGES"), averages);
    assert_eq!(names("SHOW TOTALS"), ["name", "value"]);
    let sums = said("SHOW TOTALS");
    let rows = sums.lines().filter_map(|line| line.strip_prefix("D ")?.split('|').next());
    let sums: Vec<_> = rows.collect();
    let expected = [
        "total_server_assignment_count",
        "total_xact_count",
        "total_query_count",
        "total_client_bytes",
        "total_server_bytes",
        "total_xact_time",
        "total_query_time",
        "total_wait_time",
        "total_ps_client_parse_count",
        "total_ps_server_parse_count",
        "total_ps_bind_count",
        "total_client_login_count",
        "avg_server_assignment_count",
        "avg_xact_count",
        "avg_query_count",
        "avg_client_bytes",
        "avg_server_bytes",
        "avg_xact_time",
        "avg_query_time",
        "avg_wait_time",
        "avg_ps_client_parse_count",
        "avg_ps_server_parse_count",
        "avg_ps_bind_count",
        "avg_client_login_count",
        // Ours.
        "total_contained_servers",
    ];
    assert_eq!(sums, expected);
}
