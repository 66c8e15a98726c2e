//! What PostgreSQL brings along: functions that do no more than compute and read, those that do
//! more, and what of its grammar stands in front of a `(`.
//!
//! `builtins/quiet.txt` has the names of all functions of `pg_catalog` that can be called, but for
//! those of [`EXCEPTIONS`] and for types' own ones. A name is there if every function of that name
//! may be. The test `builtins` of crates/pgweir compares both with a server; names that only other
//! versions have stand there too. What is missing is not shared, and nothing worse.

use std::sync::LazyLock;

#[cfg(test)]
mod tests;

/// What a name of PostgreSQL's own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// A function that does no more than compute and read, whatever its arguments.
    Quiet,
    /// The same, but it gives its transaction a number, as a lock on rows does: its end is written,
    /// and may wait for a standby.
    Numbers,
    /// A function or view of [`EXCEPTIONS`].
    Exception,
    /// A word of the grammar that may stand in front of a `(`, and is no function there.
    Grammar,
}

/// Functions and views of PostgreSQL's that need a server alone.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Why, in one sentence.
    pub why: &'static str,
    /// Their names in lower case, with spaces between.
    names: &'static str,
}

impl Exception {
    /// Their names in lower case.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_ascii_whitespace()
    }
}

/// The names of PostgreSQL's functions that do no more than compute and read.
pub fn quiet_functions() -> impl Iterator<Item = &'static str> {
    QUIET.split_ascii_whitespace()
}

/// What a name in any case is.
#[inline(never)] // Of few words a question.
pub(crate) fn builtin(name: &[u8]) -> Option<Builtin> {
    INDEX.find(name)
}

/// Whether this is one of PostgreSQL's that waits, and does no more.
pub(crate) fn only_waits(name: &[u8]) -> bool {
    WAITS.split_ascii_whitespace().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

/// Those of [`EXCEPTIONS`] that wait.
const WAITS: &str = "pg_sleep pg_sleep_for pg_sleep_until pg_wal_replay_wait";

/// Those of [`QUIET`] that number their transaction.
const NUMBERS: &str = "pg_current_xact_id txid_current";

const QUIET: &str = include_str!("builtins/quiet.txt");

/// Functions and views of PostgreSQL's that need a server alone, by why they do.
pub static EXCEPTIONS: &[Exception] = &[
    Exception {
        why: "It tells of the session's settings: shared servers run with another \
              statement_timeout.",
        names: "\
            current_setting pg_settings pg_show_all_settings set_config",
    },
    Exception {
        why: "It tells of the process or the connection that serves the session.",
        names: "\
            current_query inet_client_addr inet_client_port inet_server_addr inet_server_port \
            pg_aios pg_backend_memory_contexts pg_backend_pid pg_conf_load_time pg_get_aios \
            pg_get_backend_memory_contexts pg_get_loaded_modules pg_get_process_memory_contexts \
            pg_jit_available pg_lock_status pg_locks pg_log_backend_memory_contexts \
            pg_stat_activity pg_stat_get_activity pg_stat_get_backend_activity \
            pg_stat_get_backend_activity_start pg_stat_get_backend_client_addr \
            pg_stat_get_backend_client_port pg_stat_get_backend_dbid pg_stat_get_backend_idset \
            pg_stat_get_backend_io pg_stat_get_backend_pid pg_stat_get_backend_start \
            pg_stat_get_backend_subxact pg_stat_get_backend_userid pg_stat_get_backend_wait_event \
            pg_stat_get_backend_wait_event_type pg_stat_get_backend_wal \
            pg_stat_get_backend_xact_start pg_stat_gssapi pg_stat_replication pg_stat_ssl \
            system_user",
    },
    Exception {
        why: "It reads or changes what the session keeps.",
        names: "\
            current_schemas currval lastval nextval pg_cursor pg_cursors pg_export_snapshot \
            pg_is_other_temp_schema pg_listening_channels pg_my_temp_schema pg_prepared_statement \
            pg_prepared_statements pg_stat_clear_snapshot pg_stat_force_next_flush \
            pg_stat_get_snapshot_timestamp pg_stat_get_xact_blocks_fetched \
            pg_stat_get_xact_blocks_hit pg_stat_get_xact_function_calls \
            pg_stat_get_xact_function_self_time pg_stat_get_xact_function_total_time \
            pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted \
            pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_hot_updated \
            pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_newpage_updated \
            pg_stat_get_xact_tuples_returned pg_stat_get_xact_tuples_updated \
            pg_stat_xact_all_tables pg_stat_xact_sys_tables pg_stat_xact_user_functions \
            pg_stat_xact_user_tables setseed setval",
    },
    Exception {
        why: "It takes or gives back locks that are not those of rows.",
        names: "\
            pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all \
            pg_advisory_unlock_shared pg_advisory_xact_lock pg_advisory_xact_lock_shared \
            pg_isolation_test_session_is_blocked pg_safe_snapshot_blocking_pids \
            pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock \
            pg_try_advisory_xact_lock_shared",
    },
    Exception { why: "It waits for as long as it is told.", names: WAITS },
    Exception {
        why: "It runs SQL that it is given as text, or reads a table, a cursor or a type that no \
              text names.",
        names: "\
            array_in currtid2 cursor_to_xml cursor_to_xmlschema database_to_xml \
            database_to_xml_and_xmlschema database_to_xmlschema domain_in domain_recv enum_in \
            multirange_in pg_get_partition_constraintdef pg_input_error_info pg_input_is_valid \
            query_to_xml query_to_xml_and_xmlschema query_to_xmlschema range_in record_in \
            satisfies_hash_partition schema_to_xml schema_to_xml_and_xmlschema schema_to_xmlschema \
            table_to_xml table_to_xml_and_xmlschema table_to_xmlschema ts_rewrite ts_stat",
    },
    Exception {
        why: "It reads or writes large objects.",
        names: "\
            lo_close lo_creat lo_create lo_export lo_from_bytea lo_get lo_import lo_lseek \
            lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate lo_truncate64 lo_unlink loread \
            lowrite",
    },
    Exception {
        why: "It reads the server's files.",
        names: "\
            pg_available_wal_summaries pg_current_logfile pg_file_settings \
            pg_get_wal_summarizer_state pg_hba_file_rules pg_ident_file_mappings \
            pg_ls_archive_statusdir pg_ls_dir pg_ls_logdir pg_ls_logicalmapdir \
            pg_ls_logicalsnapdir pg_ls_replslotdir pg_ls_summariesdir pg_ls_tmpdir pg_ls_waldir \
            pg_read_binary_file pg_read_file pg_read_file_old pg_show_all_file_settings \
            pg_stat_file pg_wal_summary_contents",
    },
    Exception {
        why: "It acts on the server or on other sessions.",
        names: "\
            pg_backup_start pg_backup_stop pg_cancel_backend pg_create_restore_point \
            pg_is_in_backup pg_log_standby_snapshot pg_notify pg_promote pg_reload_conf \
            pg_rotate_logfile pg_rotate_logfile_old pg_start_backup pg_stat_reset \
            pg_stat_reset_backend_stats pg_stat_reset_replication_slot pg_stat_reset_shared \
            pg_stat_reset_single_function_counters pg_stat_reset_single_table_counters \
            pg_stat_reset_slru pg_stat_reset_subscription_stats pg_stop_backup pg_switch_wal \
            pg_terminate_backend pg_wal_replay_pause pg_wal_replay_resume",
    },
    Exception {
        why: "It belongs to replication.",
        names: "\
            pg_copy_logical_replication_slot pg_copy_physical_replication_slot \
            pg_create_logical_replication_slot pg_create_physical_replication_slot \
            pg_drop_replication_slot pg_logical_emit_message pg_logical_slot_get_binary_changes \
            pg_logical_slot_get_changes pg_logical_slot_peek_binary_changes \
            pg_logical_slot_peek_changes pg_replication_origin_advance \
            pg_replication_origin_create pg_replication_origin_drop pg_replication_origin_progress \
            pg_replication_origin_session_is_setup pg_replication_origin_session_progress \
            pg_replication_origin_session_reset pg_replication_origin_session_setup \
            pg_replication_origin_status pg_replication_origin_xact_reset \
            pg_replication_origin_xact_setup pg_replication_slot_advance \
            pg_show_replication_origin_status pg_sync_replication_slots",
    },
    Exception {
        why: "It changes or checks the catalogue or an index.",
        names: "\
            amvalidate binary_upgrade_add_sub_rel_state binary_upgrade_create_empty_extension \
            binary_upgrade_logical_slot_has_caught_up binary_upgrade_replorigin_advance \
            binary_upgrade_set_missing_value binary_upgrade_set_next_array_pg_type_oid \
            binary_upgrade_set_next_heap_pg_class_oid binary_upgrade_set_next_heap_relfilenode \
            binary_upgrade_set_next_index_pg_class_oid binary_upgrade_set_next_index_relfilenode \
            binary_upgrade_set_next_multirange_array_pg_type_oid \
            binary_upgrade_set_next_multirange_pg_type_oid binary_upgrade_set_next_pg_authid_oid \
            binary_upgrade_set_next_pg_enum_oid binary_upgrade_set_next_pg_tablespace_oid \
            binary_upgrade_set_next_pg_type_oid binary_upgrade_set_next_toast_pg_class_oid \
            binary_upgrade_set_next_toast_pg_type_oid binary_upgrade_set_next_toast_relfilenode \
            binary_upgrade_set_record_init_privs brin_desummarize_range brin_summarize_new_values \
            brin_summarize_range fmgr_c_validator fmgr_internal_validator fmgr_sql_validator \
            gin_clean_pending_list pg_clear_attribute_stats pg_clear_relation_stats \
            pg_event_trigger_ddl_commands pg_event_trigger_dropped_objects \
            pg_event_trigger_table_rewrite_oid pg_event_trigger_table_rewrite_reason \
            pg_extension_config_dump pg_import_system_collations pg_nextoid \
            pg_restore_attribute_stats pg_restore_relation_stats pg_stop_making_pinned_objects \
            plpgsql_validator postgresql_fdw_validator",
    },
];

/// Words of the grammar, and names of types that take modifiers.
const GRAMMAR: &str = "\
    all and any array as asymmetric bernoulli between bit by case cast char character coalesce \
    conflict cube current_time current_timestamp dec decimal distinct else except exists extract \
    filter first float for from greatest group grouping having ilike in insert intersect interval \
    is join json json_array json_arrayagg json_exists json_object json_objectagg json_query \
    json_scalar json_serialize json_table json_value lateral least like limit localtime \
    localtimestamp materialized merge_action nchar next normalize not nullif numeric offset on \
    only operator or over overlaps overlay passing position repeatable rollup row second select \
    set sets similar some substring symmetric system then time timestamp to treat trim union \
    using values varbit varchar variadic varying when where within xmlattributes xmlconcat \
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable \
    zone";

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { slots: vec![EMPTY; SLOTS].into(), words: Vec::new() };
    let exceptions = EXCEPTIONS.iter().flat_map(Exception::names);
    exceptions.for_each(|name| index.add(name, Builtin::Exception));
    NUMBERS.split_ascii_whitespace().for_each(|name| index.add(name, Builtin::Numbers));
    quiet_functions().for_each(|name| index.add(name, Builtin::Quiet));
    GRAMMAR.split_ascii_whitespace().for_each(|word| index.add(word, Builtin::Grammar));
    index
});

/// A hash table with linear probing.
struct Index {
    /// For each slot a place in `words`.
    slots: Box<[u16]>,
    words: Vec<(&'static str, Builtin)>,
}

/// A power of two, several times the number of names.
const SLOTS: usize = 8192;

/// What a slot holds where there is no word.
const EMPTY: u16 = u16::MAX;

impl Index {
    /// A name that is there already stays what it is.
    fn add(&mut self, name: &'static str, is: Builtin) {
        let mut slot = slot(name.as_bytes());
        while let Some((known, _)) = self.words.get(usize::from(self.slots[slot])) {
            if *known == name {
                return;
            }
            slot = (slot + 1) % SLOTS;
        }
        // There are fewer words than slots, which a u16 can count.
        self.slots[slot] = self.words.len() as u16;
        self.words.push((name, is));
    }

    fn find(&self, name: &[u8]) -> Option<Builtin> {
        let mut slot = slot(name);
        while let Some((known, is)) = self.words.get(usize::from(self.slots[slot])) {
            if known.as_bytes().eq_ignore_ascii_case(name) {
                return Some(*is);
            }
            slot = (slot + 1) % SLOTS;
        }
        None
    }
}

/// Where a name in any case is looked for: 0x20 is what the cases of an ASCII letter differ by.
fn slot(name: &[u8]) -> usize {
    let length = name.len();
    let at = |place: usize| u64::from(name.get(place).map_or(0, |byte| byte | 0x20));
    let (half, quarter) = (length / 2, length / 4);
    let ends = at(0) | at(1) << 8 | at(length.wrapping_sub(1)) << 16;
    let inside = at(half) << 24 | at(quarter) << 32 | at(length - quarter) << 40;
    let mixed = (ends | inside | (length as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOTS.ilog2())) as usize
}
