//! Reads what a database's catalogue says of functions and of what calls them: from that the engine
//! knows which names stand for more than a text shows.

use std::sync::Arc;

use pgweir_engine::{CatalogueLogin, Loud};
use pgweir_sql::{Catalogue, Form, Kind, Object, ObjectId, RULES, Source, Use, When};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::ask::{Login, rows};

/// Functions, whatever has rows, and types whose checks or casts call functions. What users make
/// has an OID from 16384 on (`FirstNormalObjectId`, access/transam.h); of PostgreSQL's own only
/// those matter that change a session. An event trigger stands behind words.
const OBJECTS: &str = "\
    SELECT 'f', p.oid, n.nspname, p.proname, l.lanname, \
        CASE WHEN p.oid < 16384 OR l.lanname IN ('c', 'internal') THEN '' ELSE {body} END \
    FROM pg_catalog.pg_proc p \
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
    WHERE p.oid >= 16384 OR p.proname IN ({own}) \
    UNION ALL SELECT 'r', c.oid, n.nspname, c.relname, '', '' \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' \
    AND n.nspname <> 'pg_toast' \
    UNION ALL SELECT 't', t.oid, n.nspname, t.typname, '', '' \
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
    WHERE t.oid >= 16384 AND (t.typtype = 'd' OR EXISTS (SELECT FROM pg_catalog.pg_cast \
        WHERE castfunc >= 16384 AND t.oid IN (castsource, casttarget))) \
    UNION ALL SELECT 'r', o, '', w, '', '' \
    FROM (VALUES (1, 'create'), (2, 'alter'), (3, 'drop')) AS word(o, w)";

/// Which of them calls which: `a` always, `w` when it is changed. In the trees of expressions and
/// queries a function, a table, a type is named by its OID.
const USES: &str = "\
    WITH tree(k, o, w, through, t) AS (\
    SELECT 'r', ev_class, CASE ev_type WHEN '1' THEN 'a' ELSE 'w' END, \
        CASE ev_type WHEN '1' THEN 'view' ELSE 'rule ' || rulename END, \
        concat(ev_action::text, ev_qual::text) \
    FROM pg_catalog.pg_rewrite WHERE ev_class >= 16384 \
    UNION ALL SELECT 'r', adrelid, 'w', 'default', adbin::text FROM pg_catalog.pg_attrdef \
    UNION ALL SELECT 'r', conrelid, 'w', 'check ' || conname, conbin::text \
    FROM pg_catalog.pg_constraint WHERE conrelid >= 16384 AND conbin IS NOT NULL \
    UNION ALL SELECT 't', contypid, 'a', 'check ' || conname, conbin::text \
    FROM pg_catalog.pg_constraint WHERE contypid >= 16384 \
    UNION ALL SELECT 'r', polrelid, 'a', 'policy ' || polname, \
        concat(polqual::text, polwithcheck::text) FROM pg_catalog.pg_policy \
    UNION ALL SELECT 'r', indrelid, 'w', 'index', concat(indexprs::text, indpred::text) \
    FROM pg_catalog.pg_index WHERE indrelid >= 16384 \
    UNION ALL SELECT 'f', oid, 'a', 'argument', proargdefaults::text \
    FROM pg_catalog.pg_proc WHERE oid >= 16384 AND proargdefaults IS NOT NULL \
    UNION ALL SELECT 'r', tgrelid, 'w', 'trigger ' || tgname, tgqual::text \
    FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgqual IS NOT NULL), \
    own(oid) AS (SELECT oid FROM pg_catalog.pg_proc WHERE oid < 16384 AND proname IN ({own})) \
    SELECT DISTINCT k, o, CASE m[1] WHEN 'relid' THEN 'r' WHEN 'resulttype' THEN 't' ELSE 'f' END, \
        m[2]::oid, w, through \
    FROM tree, LATERAL pg_catalog.regexp_matches(t, \
        ':(funcid|opfuncid|aggfnoid|winfnoid|relid|resulttype) ([0-9]+)', 'g') AS m \
    WHERE m[2]::oid >= 16384 OR m[2]::oid IN (SELECT oid FROM own) \
    UNION ALL SELECT 'r', tgrelid, 'f', tgfoid, 'w', 'trigger ' || tgname \
    FROM pg_catalog.pg_trigger WHERE NOT tgisinternal \
    UNION ALL SELECT 'r', attrelid, 'f', 'pg_catalog.nextval(regclass)'::regprocedure::oid, 'w', \
        'identity' FROM pg_catalog.pg_attribute WHERE attidentity <> '' \
    UNION ALL SELECT 'r', confrelid, 'r', conrelid, 'w', 'foreign key ' || conname \
    FROM pg_catalog.pg_constraint WHERE contype = 'f' \
    AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd')) \
    UNION ALL SELECT 'r', inhparent, 'r', inhrelid, 'a', 'child' FROM pg_catalog.pg_inherits \
    UNION ALL SELECT 'r', attrelid, 't', atttypid, CASE typtype WHEN 'd' THEN 'w' ELSE 'a' END, \
        'type' FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type t ON t.oid = atttypid \
    WHERE atttypid >= 16384 AND attrelid >= 16384 \
    UNION ALL SELECT 'f', a.aggfnoid::oid, 'f', f::oid, 'a', 'aggregate' \
    FROM pg_catalog.pg_aggregate a, LATERAL (VALUES (aggtransfn), (aggfinalfn), (aggcombinefn), \
        (aggserialfn), (aggdeserialfn), (aggmtransfn), (aggminvtransfn), (aggmfinalfn)) AS v(f) \
    WHERE f::oid >= 16384 \
    UNION ALL SELECT 't', t.oid, 'f', castfunc, 'a', 'cast' \
    FROM pg_catalog.pg_cast JOIN pg_catalog.pg_type t ON t.oid IN (castsource, casttarget) \
    WHERE castfunc >= 16384 \
    UNION ALL SELECT 'r', word, 'f', evtfoid, 'a', 'event trigger ' || evtname \
    FROM pg_catalog.pg_event_trigger, generate_series(1, 3) AS word WHERE evtenabled <> 'D'";

/// What a function written as SQL is in place of its text, from PostgreSQL 14 on.
const SQL_BODIES_SINCE: u32 = 140_000;

/// The loud names of a database, or why they are not known.
pub(crate) async fn read(login: &CatalogueLogin) -> Result<Arc<Loud>, String> {
    let database = &login.database;
    let place = Login {
        host: &database.address.host,
        port: database.address.port,
        database: &database.name,
        user: &login.user,
        password: &login.password,
        time: login.timeout,
    };
    let catalogue = async {
        let client = place.log_in().await?;
        read_by(&client, &database.quiet).await
    };
    let catalogue = timeout(login.timeout, catalogue).await;
    let catalogue = catalogue.map_err(|_| format!("no answer within {:?}", login.timeout))??;
    let loud = spawn_blocking(move || catalogue.loud()).await;
    loud.map(Arc::new).map_err(|error| error.to_string())
}

async fn read_by(client: &Client, quiet: &str) -> Result<Catalogue, String> {
    let version = rows(client, "SHOW server_version_num").await?.concat().concat();
    let version: u32 = version.parse().unwrap_or_default();
    let body = match version >= SQL_BODIES_SINCE {
        true => "coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)",
        false => "p.prosrc",
    };
    let calls = RULES.iter().filter(|rule| matches!(rule.form, Form::Call | Form::SettingCall));
    let own: Vec<_> = calls.map(|rule| format!("'{}'", rule.name)).collect();
    let own = own.join(", ");
    let query = |text: &str| text.replace("{own}", &own).replace("{body}", body);
    // What is read is of one moment, and nobody waits for it.
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
        SET LOCAL search_path = pg_catalog; SET LOCAL lock_timeout = '1s'";
    rows(client, begin).await?;
    let objects = rows(client, &query(OBJECTS)).await?;
    let uses = rows(client, &query(USES)).await?;
    Ok(Catalogue {
        objects: objects.iter().filter_map(|row| object(row, quiet)).collect(),
        uses: uses.iter().filter_map(|row| one_use(row)).collect(),
    })
}

fn object(row: &[String], quiet: &str) -> Option<Object> {
    let [kind, oid, schema, name, language, body] = row else { return None };
    let id = id(kind, oid)?;
    let body = body.clone();
    let source = match language.as_str() {
        "" | "c" => Source::None,
        _ if id.1 < 16_384 => Source::Builtin,
        "internal" => Source::None,
        "sql" => Source::Sql(body),
        "plpgsql" => Source::Plpgsql(body),
        other => Source::Other(other.to_owned(), body),
    };
    let is_quiet = id.0 == Kind::Function && is_named(quiet, schema, name);
    Some(Object { id, name: name.clone(), source, is_quiet })
}

/// Whether a list of names, with or without schemas, has this one.
fn is_named(list: &str, schema: &str, name: &str) -> bool {
    list.split(',').map(str::trim).any(|one| match one.split_once('.') {
        Some((its_schema, its_name)) => its_schema == schema && its_name == name,
        None => one == name,
    })
}

fn one_use(row: &[String]) -> Option<Use> {
    let [by_kind, by, of_kind, of, when, through] = row else { return None };
    let when = if when == "w" { When::Written } else { When::Always };
    Some(Use { by: id(by_kind, by)?, of: id(of_kind, of)?, when, through: through.clone() })
}

fn id(kind: &str, oid: &str) -> Option<ObjectId> {
    let kind = match kind {
        "f" => Kind::Function,
        "r" => Kind::Relation,
        _ => Kind::Type,
    };
    Some((kind, oid.parse().ok()?))
}
