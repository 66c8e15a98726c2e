//! What a server is asked to learn what stands behind the names of its database.

use crate::parameters::Parameters;

/// What is read is of one moment, and nobody waits for it. All of it is one query string, which is
/// one transaction: what is set here is gone behind it. A temporary type may have any name, and is
/// looked for last. To compile the question takes ten times as long as to answer it, with a few
/// functions in the database; before PostgreSQL 11 there is no such setting.
const BEGIN: &str = "\
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; \
    SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL client_encoding = 'UTF8'; \
    SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '1min'; \
    SELECT FROM pg_catalog.pg_settings WHERE CASE WHEN name = 'jit' \
    THEN pg_catalog.set_config(name, 'off', true) IS NULL ELSE false END; ";

/// Functions, whatever has rows, and types whose checks or casts call functions. What users make
/// has an OID from 16384 on (`FirstNormalObjectId`, access/transam.h); of PostgreSQL's own only
/// those may matter that are not immutable; others that are have a kind of their own, `i`. Of
/// machine code the extension is said that it belongs to; of what is only another name for
/// something that PostgreSQL has, the names that this has there. Of the settings that a function
/// brings along, those that are not what they were behind it stand in its body; so does a
/// `search_path` by which even `current_schema` makes the schema of temporary tables: `pg_temp`
/// stands first there, or behind what there is not. Where that is so of a role's own, or a
/// database's, what makes a table makes a temporary one: for that stands a function which nobody
/// has made. (A role that is not the server's own is seen where its setting is for this database:
/// one of some other application is not to keep all others from sharing.) An event trigger stands
/// behind words. A body comes in pieces, since a message is read whole, and is not long then.
const OBJECTS: &str = "\
    SELECT k, o, s, n, l, part, substr(body, part * 3900 + 1, 3900) FROM (\
    SELECT CASE provolatile WHEN 'i' THEN 'i' ELSE 'f' END, p.oid, n.nspname, p.proname, \
        CASE WHEN p.prokind = 'a' AND p.oid >= 16384 THEN '' ELSE l.lanname END, \
        CASE WHEN p.oid < 16384 THEN '' WHEN l.lanname = 'internal' THEN \
            coalesce((SELECT string_agg(DISTINCT own.proname, ' ') FROM pg_catalog.pg_proc own \
            WHERE own.oid < 16384 AND own.prolang = p.prolang AND own.prosrc = p.prosrc), '') \
        WHEN l.lanname = 'c' THEN \
            coalesce((SELECT e.extname FROM pg_catalog.pg_depend d \
            JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid \
            WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid \
            AND d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.deptype = 'e'), '') \
        ELSE concat({body}, (SELECT string_agg(concat(E'\\n; SET LOCAL ', c), '') \
            FROM unnest(p.proconfig) AS c WHERE c ~* '^(seed=|[^=]*[.])' OR {temporary})) END \
    FROM pg_catalog.pg_proc p \
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
    WHERE p.oid >= 16384 OR p.provolatile <> 'i' \
    UNION ALL SELECT 'r', c.oid, n.nspname, c.relname, \
        CASE WHEN c.oid < 16384 THEN 'internal' WHEN c.relkind = 'f' THEN 'foreign' ELSE '' END, \
        '' \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c') \
    AND c.relpersistence <> 't' AND n.nspname <> 'pg_toast' \
    OR c.oid < 16384 AND c.relkind = 'v' \
    UNION ALL SELECT 't', t.oid, n.nspname, t.typname, '', '' \
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
    WHERE t.oid >= 16384 AND (t.typtype = 'd' OR EXISTS (SELECT FROM pg_catalog.pg_cast \
        WHERE castfunc >= 16384 AND t.oid IN (castsource, casttarget))) \
    UNION ALL SELECT 'r', o, '', w, '', '' \
    FROM {words} \
    UNION ALL SELECT 'f', 4294967295, '', 'pg_temp', 'sql', 'CREATE TEMP TABLE a ()' \
    WHERE EXISTS (SELECT FROM (\
        SELECT 'search_path=' || reset_val FROM pg_catalog.pg_settings \
        WHERE name = 'search_path' \
        UNION ALL SELECT unnest(setconfig) FROM pg_catalog.pg_db_role_setting \
        WHERE setdatabase = (SELECT oid FROM pg_catalog.pg_database \
            WHERE datname = pg_catalog.current_database())) AS setting(c) WHERE {temporary}) \
    UNION ALL SELECT 'u', 0, '', '', '', ''\
    ) AS object(k, o, s, n, l, body), \
    LATERAL pg_catalog.generate_series(0, (pg_catalog.length(body) - 1) / 3900) AS part; ";

/// Which of them calls which: `a` always, `w` when it is changed, `c` when its rows are but none
/// are made, `d` when a column is put to its default. In the trees of expressions and queries a
/// function, a table, a type is named by its OID.
///
/// - What is deferred, a trigger or a constraint, which has one inside, comes with the commit and
///   under no timeout: it may wait for as long as `pg_sleep`. A rule that is answered with rows
///   stands for that too: what it says cannot be said again.
/// - A query with a FOR UPDATE in it numbers its transaction, as `txid_current`.
/// - The one command that a rule may run is NOTIFY.
/// - What is computed for indexes, checks and statistics (`planned`) is looked at when any
///   statement on their table is planned, and what is immutable and needs no column is computed
///   then (`eval_const_expressions`, optimizer/util/clauses.c). A function needs one that has it
///   among its arguments, behind constants, as it is or with another label; but what one in SQL
///   calls may need none, and stands there in its place then. What looks after a foreign key asks
///   the other table.
/// - What says which rows an index has is asked again of what was found by it (the "Recheck Cond"
///   of a bitmap scan), and may stand for a condition that does not name its functions: `a > 0`
///   says that `f(a) OR a > 0`.
/// - REINDEX, VACUUM, ANALYZE and CLUSTER need not name the tables whose indexes they compute.
/// - Of a partition all that is above it says what may be in it. What is immutable in the key of a
///   partitioned table, and needs no column, is computed as soon as that is opened.
/// - TRUNCATE with CASCADE empties whatever refers to its table, through any foreign key, and fires
///   the triggers that stand there for it (`TRIGGER_TYPE_TRUNCATE`, catalog/pg_trigger.h: 32). They
///   stand behind the word, so that no other change of that table counts as one of those.
/// - The triggers of partitions that those of their tables stand for are internal before PostgreSQL
///   15, like those that look after foreign keys and deferred constraints, which are PostgreSQL's.
const USES: &str = "\
    WITH RECURSIVE above(child, parent) AS (\
    SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits \
    UNION SELECT child, inhparent FROM above JOIN pg_catalog.pg_inherits ON inhrelid = parent), \
    planned(o, through, t) AS (\
    SELECT conrelid, 'check ' || conname, conbin::text \
    FROM pg_catalog.pg_constraint WHERE conrelid >= 16384 AND conbin IS NOT NULL \
    UNION ALL SELECT indrelid, 'index', concat(indexprs::text, indpred::text) \
    FROM pg_catalog.pg_index WHERE indrelid >= 16384{statistics}), \
    keys(o, through, t) AS (\
    SELECT partrelid, 'partition key', partexprs::text \
    FROM pg_catalog.pg_partitioned_table WHERE partexprs IS NOT NULL \
    UNION ALL SELECT child, 'partition key', partexprs::text \
    FROM above JOIN pg_catalog.pg_partitioned_table ON partrelid = parent \
    WHERE partexprs IS NOT NULL), \
    constants(o, f, through) AS (\
    SELECT o, m[1]::oid, through FROM (TABLE planned UNION ALL TABLE keys) AS computed, \
        LATERAL pg_catalog.regexp_matches(t, ':(?:funcid|opfuncid) ([0-9]{5,}) \
            ([^{}]*(?:[{]CONST [^{}]*[}] )*(?:[{]RELABELTYPE [^{}]*)?[{]VAR )?', 'g') AS m \
    JOIN pg_catalog.pg_proc p ON p.oid = m[1]::oid \
    JOIN pg_catalog.pg_language l ON l.oid = prolang \
    WHERE p.oid >= 16384 AND provolatile = 'i' AND (m[2] IS NULL OR lanname = 'sql')), \
    fires(o, f, name, qual) AS (\
    SELECT tgrelid, tgfoid, tgname, tgqual FROM pg_catalog.pg_trigger \
    WHERE NOT tgisinternal OR tgconstraint = 0 OR tgfoid >= 16384 \
    UNION ALL SELECT word.o, tgfoid, tgname, tgqual FROM pg_catalog.pg_trigger, {words} \
    WHERE w = 'cascade' AND tgtype & 32 <> 0 \
    AND tgrelid IN (SELECT conrelid FROM pg_catalog.pg_constraint WHERE contype = 'f')), \
    tree(k, o, w, through, t) AS (\
    SELECT 'r', ev_class, CASE ev_type WHEN '1' THEN 'a' ELSE 'w' END, \
        CASE ev_type WHEN '1' THEN 'view' ELSE 'rule ' || rulename END, \
        concat(ev_action::text, ev_qual::text) \
    FROM pg_catalog.pg_rewrite WHERE ev_class >= 16384 \
    UNION ALL SELECT 'r', adrelid, CASE WHEN {generated} THEN 'w' ELSE 'd' END, 'default', \
        adbin::text FROM pg_catalog.pg_attrdef \
    UNION ALL SELECT 'r', attrelid, 'd', 'default of ' || typname, typdefaultbin::text \
    FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type t ON t.oid = atttypid \
    WHERE attrelid >= 16384 AND typdefaultbin IS NOT NULL \
    UNION ALL SELECT 'r', o, 'w', through, t FROM planned \
    UNION ALL SELECT 'r', indrelid, 'a', 'index', indpred::text \
    FROM pg_catalog.pg_index WHERE indrelid >= 16384 AND indpred IS NOT NULL \
    UNION ALL SELECT 'r', word.o, 'w', through, t FROM planned, {words} \
    WHERE is_unnamed AND through !~ '^check' \
    UNION ALL SELECT 't', contypid, 'a', 'check ' || conname, conbin::text \
    FROM pg_catalog.pg_constraint WHERE contypid >= 16384 \
    UNION ALL SELECT 'r', polrelid, 'a', 'policy ' || polname, \
        concat(polqual::text, polwithcheck::text) FROM pg_catalog.pg_policy \
    UNION ALL SELECT 'f', oid, 'a', 'argument', proargdefaults::text \
    FROM pg_catalog.pg_proc WHERE oid >= 16384 AND proargdefaults IS NOT NULL \
    UNION ALL SELECT 'r', o, 'a', through, t FROM keys \
    UNION ALL SELECT 'r', o, 'w', 'trigger ' || name, qual::text FROM fires \
    WHERE qual IS NOT NULL), \
    own(oid) AS (SELECT oid FROM pg_catalog.pg_proc WHERE oid < 16384 AND provolatile <> 'i' \
    UNION ALL SELECT oid FROM pg_catalog.pg_class WHERE oid < 16384 AND relkind = 'v'), \
    unnamed(f, through, own) AS (\
    SELECT oprcode, 'operator ' || oprname, oid >= 16384 FROM pg_catalog.pg_operator \
    UNION ALL SELECT v.f, 'operator ' || oprname, false FROM pg_catalog.pg_operator, \
        LATERAL (VALUES (oprrest), (oprjoin)) AS v(f) \
    UNION ALL SELECT amproc, 'operator class', false FROM pg_catalog.pg_amproc \
    UNION ALL SELECT castfunc, 'cast', oid >= 16384 FROM pg_catalog.pg_cast \
    UNION ALL SELECT conproc, 'conversion ' || conname, false FROM pg_catalog.pg_conversion \
    UNION ALL SELECT v.f, 'type ' || typname, false FROM pg_catalog.pg_type, \
        LATERAL (VALUES (typinput), (typoutput), (typreceive), (typsend), (typmodin), \
            (typmodout)) AS v(f) \
    UNION ALL SELECT v.f, 'range', false FROM pg_catalog.pg_range, \
        LATERAL (VALUES (rngcanonical), (rngsubdiff)) AS v(f) \
    UNION ALL SELECT v.f, 'text search template ' || tmplname, false \
    FROM pg_catalog.pg_ts_template, \
        LATERAL (VALUES (tmplinit), (tmpllexize)) AS v(f) \
    UNION ALL SELECT v.f, 'text search parser ' || prsname, false \
    FROM pg_catalog.pg_ts_parser, \
        LATERAL (VALUES (prsstart), (prstoken), (prsend), (prsheadline)) AS v(f)) \
    SELECT DISTINCT k, o, CASE m[1] WHEN 'relid' THEN 'r' WHEN 'resulttype' THEN 't' ELSE 'f' END, \
        m[2]::oid, w, through \
    FROM tree, LATERAL pg_catalog.regexp_matches(t, \
        ':(funcid|opfuncid|aggfnoid|winfnoid|relid|resulttype) ([0-9]+)', 'g') AS m \
    WHERE m[2]::oid >= 16384 OR m[2]::oid IN (SELECT oid FROM own) \
    UNION ALL SELECT k, o, 'f', 'pg_catalog.txid_current()'::regprocedure::oid, w, \
        through || ', for update' FROM tree WHERE t ~ ':rowMarks [(]' \
    UNION ALL SELECT 'r', o, 'f', f, 'a', through FROM constants \
    UNION ALL SELECT 'r', v.one, 'f', f, 'w', 'foreign key ' || conname || ', ' || through \
    FROM pg_catalog.pg_constraint, \
        LATERAL (VALUES (conrelid, confrelid), (confrelid, conrelid)) AS v(one, other) \
    JOIN constants ON o = other OR EXISTS (\
        SELECT FROM above WHERE parent = other AND child = o) \
    WHERE contype = 'f' \
    UNION ALL SELECT k, o, 'f', 'pg_catalog.pg_notify(text,text)'::regprocedure::oid, w, \
        through FROM tree WHERE through LIKE 'rule %' AND t ~ ':utilityStmt [{]' \
    UNION ALL SELECT k, o, 'f', 'pg_catalog.pg_sleep(double precision)'::regprocedure::oid, w, \
        through || ', rows' \
    FROM tree WHERE through LIKE 'rule %' AND t ~ '(^[(]|[}] )[{]QUERY :commandType 1 ' \
    UNION ALL SELECT 'r', o, 'f', f, 'w', 'trigger ' || name FROM fires \
    UNION ALL SELECT 'r', tgrelid, 'f', \
        'pg_catalog.pg_sleep(double precision)'::regprocedure::oid, 'w', 'deferred' \
    FROM pg_catalog.pg_trigger WHERE tginitdeferred \
    UNION ALL SELECT 'r', attrelid, 'f', 'pg_catalog.nextval(regclass)'::regprocedure::oid, 'd', \
        'identity' FROM pg_catalog.pg_attribute WHERE attidentity <> '' \
    UNION ALL SELECT 'r', confrelid, 'r', conrelid, \
        CASE WHEN 'd' IN (confdeltype, confupdtype) THEN 'w' ELSE 'c' END, \
        'foreign key ' || conname \
    FROM pg_catalog.pg_constraint WHERE contype = 'f' \
    AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd')) \
    UNION ALL SELECT 'r', inhparent, 'r', inhrelid, 'a', 'child' FROM pg_catalog.pg_inherits \
    UNION ALL SELECT 'r', attrelid, 't', atttypid, CASE typtype WHEN 'd' THEN 'w' ELSE 'a' END, \
        'type' FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type t ON t.oid = atttypid \
    WHERE atttypid >= 16384 AND attrelid >= 16384 \
    UNION ALL SELECT 'f', a.aggfnoid::oid, 'f', f::oid, 'a', 'aggregate' \
    FROM pg_catalog.pg_aggregate a, LATERAL (VALUES (aggtransfn), (aggfinalfn), (aggcombinefn), \
        (aggserialfn), (aggdeserialfn), (aggmtransfn), (aggminvtransfn), (aggmfinalfn)) AS v(f) \
    WHERE f::oid >= 16384 OR aggfnoid::oid >= 16384 AND f::oid IN (SELECT oid FROM own) \
    UNION ALL SELECT 't', t.oid, 'f', castfunc, 'a', 'cast' \
    FROM pg_catalog.pg_cast JOIN pg_catalog.pg_type t ON t.oid IN (castsource, casttarget) \
    WHERE castfunc >= 16384 \
    UNION ALL SELECT 'u', 0, 'f', f::oid, 'a', through FROM unnamed \
    WHERE f::oid >= 16384 OR unnamed.own AND f::oid IN (SELECT oid FROM own) \
    UNION ALL SELECT 'u', 0, 'f', 4294967295, 'a', 'search_path of a role or the database' \
    UNION ALL SELECT 'r', o, 'f', 4294967295, 'a', 'search_path' FROM {words} \
    WHERE w = 'create' \
    UNION ALL SELECT 'u', 0, 't', oid, 'a', 'domain' FROM pg_catalog.pg_type \
    WHERE oid >= 16384 AND typtype = 'd' \
    UNION ALL SELECT 'r', o, 'f', evtfoid, 'a', 'event trigger ' || evtname \
    FROM pg_catalog.pg_event_trigger, {words} \
    WHERE evtenabled <> 'D' AND evtevent <> 'login' AND is_event \
    AND (evttags IS NULL OR w IN ('create', 'alter') OR EXISTS (\
        SELECT FROM unnest(evttags) AS tag WHERE pg_catalog.lower(tag) LIKE w || '%'))";

/// The first words of the commands behind which an event trigger may stand (Event Trigger Firing
/// Matrix in PostgreSQL's documentation: `is_event`), and of those that compute expressions of
/// tables which they need not name (`is_unnamed`). An extension that is made or altered runs any of
/// the former. The last one begins none: behind it a TRUNCATE goes on to other tables.
const WORDS: &str = "\
    (VALUES (1, 'create', true, false), (2, 'alter', true, false), (3, 'drop', true, false), \
    (4, 'comment', true, false), (5, 'grant', true, false), (6, 'import', true, false), \
    (7, 'refresh', true, false), (8, 'reindex', true, true), (9, 'revoke', true, false), \
    (10, 'security', true, false), (11, 'analyse', false, true), (12, 'analyze', false, true), \
    (13, 'cluster', false, true), (14, 'repack', false, true), (15, 'vacuum', false, true), \
    (16, 'cascade', false, false)) \
    AS word(o, w, is_event, is_unnamed)";

/// The expressions of statistics.
const STATISTICS: &str = " \
    UNION ALL SELECT stxrelid, 'statistics ' || stxname, stxexprs::text \
    FROM pg_catalog.pg_statistic_ext WHERE stxexprs IS NOT NULL";

/// Whether `c` is a `search_path` in which `pg_temp` stands first, or behind what there is not.
const TEMPORARY: &str = "c ~* '^search_path=.*pg_temp' AND NOT EXISTS (\
    SELECT FROM pg_catalog.pg_namespace WHERE nspname IN (\
    SELECT btrim(one, '\"') FROM pg_catalog.regexp_split_to_table(\
        substring(c, '(?i)^search_path=(.*?)\"?pg_temp'), ', *') AS one))";

/// Whether a column of `pg_attrdef` is computed from others, whenever one of them is changed.
const GENERATED: &str = "EXISTS (SELECT FROM pg_catalog.pg_attribute \
    WHERE attrelid = adrelid AND attnum = adnum AND attgenerated <> '')";

/// The query, of a server that reports this.
pub(super) fn question(parameters: &Parameters) -> Vec<u8> {
    // Since then a function may be written as SQL in place of a text, and statistics may have
    // expressions.
    let version = parameters.value(b"server_version").unwrap_or_default();
    let is_14 = is_since(14, version);
    // And columns may be generated.
    let generated = if is_since(12, version) { GENERATED } else { "false" };
    let (body, statistics) = match is_14 {
        true => ("coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)", STATISTICS),
        false => ("p.prosrc", ""),
    };
    let text = [BEGIN, OBJECTS, USES].concat();
    let text = text.replace("{body}", body).replace("{statistics}", statistics);
    let text = text.replace("{generated}", generated).replace("{temporary}", TEMPORARY);
    text.replace("{words}", WORDS).into_bytes()
}

/// Whether a server is of this version of PostgreSQL or a later one.
pub(crate) fn is_since(major: u32, version: &[u8]) -> bool {
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0, |number: u32, digit| number * 10 % 1000 + u32::from(digit - b'0'));
    // One that does not say its number is rather a new one.
    number == 0 || number >= major
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_number_in_front() {
        for (version, has) in
            [("13.16", false), ("14beta1", true), ("18.1 (Debian 18.1-1)", true), ("9.6", false)]
        {
            assert_eq!(is_since(14, version.as_bytes()), has, "{version}");
        }
    }
}
