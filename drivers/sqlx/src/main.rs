//! SQLx as it comes: it prepares every statement, and migrates under a session lock.
//!
//! The way to PostgreSQL, or to pgweir, is in the environment (`PGHOST`, …).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::migrate::{Migrate, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgTransaction};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const WORKERS: u32 = 8;
const ROUNDS: i64 = 40;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

type Result<T> = std::result::Result<T, sqlx::Error>;

#[derive(Clone, Copy, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "mood", rename_all = "lowercase")]
enum Mood {
    New,
    Updated,
}

#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Note {
    id: i64,
    owner: String,
    mood: Mood,
    more: Value,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = PgConnectOptions::new();
    let migrations = migrate_twice_at_once(&options).await?;
    // All of its connections at once, and for good.
    let pool = PgPoolOptions::new()
        .min_connections(WORKERS)
        .max_connections(WORKERS)
        .connect_with(options)
        .await?;
    work_at_once(&pool).await?;
    let notes = look_at_all(&pool).await?;
    println!(
        "sqlx: all is well with SQLx 0.8: {migrations} migrations, {WORKERS} workers, {notes} notes"
    );
    Ok(())
}

/// Two clients that migrate at once, while a third has their lock. Each waits for it on its server,
/// so they come one after the other.
async fn migrate_twice_at_once(options: &PgConnectOptions) -> Result<i64> {
    let mut holder = PgConnection::connect_with(options).await?;
    holder.lock().await?;
    let mut migrating = JoinSet::new();
    for _ in 0..2 {
        let options = options.clone();
        migrating.spawn(async move {
            let mut client = PgConnection::connect_with(&options).await?;
            MIGRATIONS.run_direct(&mut client).await?;
            client.close().await
        });
    }
    while !is_waited_for(&mut holder).await? {}
    assert!(!is_there(&mut holder, "notes").await?, "migrated past the lock");
    holder.unlock().await?;
    while let Some(ended) = migrating.join_next().await {
        ended.unwrap()?;
    }
    assert!(is_there(&mut holder, "notes").await?);
    let migrations = sqlx::query_scalar("SELECT count(*) FROM _sqlx_migrations WHERE success")
        .fetch_one(&mut holder)
        .await?;
    holder.close().await?;
    Ok(migrations)
}

async fn is_waited_for(holder: &mut PgConnection) -> Result<bool> {
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)";
    sqlx::query_scalar(waits).fetch_one(holder).await
}

async fn is_there(client: &mut PgConnection, table: &str) -> Result<bool> {
    sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table).fetch_one(client).await
}

async fn work_at_once(pool: &PgPool) -> Result<()> {
    let all_are_there = Arc::new(Barrier::new(WORKERS as usize));
    let mut workers = JoinSet::new();
    for n in 0..WORKERS {
        let (pool, all_are_there) = (pool.clone(), Arc::clone(&all_are_there));
        workers.spawn(async move { work(&pool, n, &all_are_there).await });
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap()?;
    }
    Ok(())
}

/// One of the workers adds a column. Each has prepared all of its statements before and uses them
/// once more behind that.
async fn work(pool: &PgPool, n: u32, all_are_there: &Barrier) -> Result<()> {
    let owner = format!("worker {n}");
    let mut client = pool.acquire().await?;
    all_are_there.wait().await;
    for number in 0..ROUNDS {
        if number == ROUNDS / 2 && n == 0 {
            sqlx::query("ALTER TABLE notes ADD COLUMN stars int4 NOT NULL DEFAULT 1")
                .execute(&mut *client)
                .await?;
        }
        if number == ROUNDS - 1 {
            all_are_there.wait().await;
        }
        round(&mut client, &owner, number).await?;
    }
    Ok(())
}

async fn round(client: &mut PgConnection, owner: &str, number: i64) -> Result<()> {
    let mut transaction = client.begin().await?;
    let id = write(&mut transaction, owner, number).await?;
    transaction.commit().await?;

    let found = notes(client, owner).await?;
    let numbers: Vec<_> = found.iter().map(|note| note.more["n"].as_i64()).collect();
    assert_eq!(numbers, (0..=number).map(Some).collect::<Vec<_>>());
    let more = json!({ "n": number });
    let last = Note { id, owner: owner.to_owned(), mood: Mood::Updated, more };
    assert_eq!(found.last(), Some(&last));
    assert!(found.iter().all(|note| note.owner == owner));

    let mut transaction = client.begin().await?;
    sqlx::query("DELETE FROM notes WHERE owner = $1")
        .bind(owner)
        .execute(&mut *transaction)
        .await?;
    assert_eq!(notes(&mut transaction, owner).await?, []);
    transaction.rollback().await
}

async fn write(transaction: &mut PgTransaction<'_>, owner: &str, number: i64) -> Result<i64> {
    let insert = "INSERT INTO notes (owner, mood, more) VALUES ($1, $2, $3) RETURNING id";
    let id = sqlx::query_scalar(insert)
        .bind(owner)
        .bind(Mood::New)
        .bind(json!({ "n": number }))
        .fetch_one(&mut **transaction)
        .await?;
    let old: i64 = sqlx::query_scalar("SELECT value FROM counter FOR UPDATE")
        .fetch_one(&mut **transaction)
        .await?;
    sqlx::query("UPDATE counter SET value = $1").bind(old + 1).execute(&mut **transaction).await?;
    sqlx::query("UPDATE notes SET mood = $1 WHERE id = $2")
        .bind(Mood::Updated)
        .bind(id)
        .execute(&mut **transaction)
        .await?;
    Ok(id)
}

async fn notes(client: &mut PgConnection, owner: &str) -> Result<Vec<Note>> {
    sqlx::query_as("SELECT id, owner, mood, more FROM notes WHERE owner = $1 ORDER BY id")
        .bind(owner)
        .fetch_all(client)
        .await
}

/// How many notes there are: each worker's, all with the column that was added.
async fn look_at_all(pool: &PgPool) -> Result<i64> {
    let value: i64 = sqlx::query_scalar("SELECT value FROM counter").fetch_one(pool).await?;
    assert_eq!(value, i64::from(WORKERS) * ROUNDS);
    let found: Vec<(String, i64)> =
        sqlx::query_as("SELECT owner, sum(stars) FROM notes GROUP BY owner")
            .fetch_all(pool)
            .await?;
    let expected = (0..WORKERS).map(|n| (format!("worker {n}"), ROUNDS));
    assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected.collect());
    Ok(value)
}
