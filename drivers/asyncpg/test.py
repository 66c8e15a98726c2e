"""asyncpg through pgweir, where many clients share a few servers.

The way to pgweir is in the environment (PGHOST, ...), and SERVERS says how many servers it has. A
client that has a temporary table or a session's lock keeps its server until that is gone: where
more of them come than there are servers, they wait for each other.
"""

import asyncio
import contextlib
import datetime
import decimal
import io
import os
import platform
import uuid

import asyncpg

CLIENTS = 20
ROUNDS = 10
PATIENCE_S = 180

# Without its cache asyncpg prepares statements that have no name.
UNNAMED = {"statement_cache_size": 0}

VALUES = [
    ("int2", -(2**15)),
    ("int8", 2**63 - 1),
    ("float8", 1 / 3),
    ("numeric", decimal.Decimal("12345678901234567890.000100")),
    ("bool", True),
    ("text", "\u00e4\U0001f511 '\"\\"),
    ("bytea", bytes(range(256))),
    ("uuid", uuid.UUID(int=2**127 + 1)),
    ("date", datetime.date(2024, 2, 29)),
    ("timestamptz", datetime.datetime(2024, 2, 29, 12, 30, 0, 1, datetime.timezone.utc)),
    ("interval", datetime.timedelta(days=40, seconds=5, microseconds=6)),
    ("jsonb", '{"a": [1, null]}'),
    ("int4[]", [1, None, -3]),
    ("text[]", [["a", "NULL"], [None, "{,}"]]),
    ("int4[]", []),
    ("int8range", asyncpg.Range(1, 5)),
    ("text", None),
    ("bytea", bytes(range(256)) * 4096),
    ("text", "\u00e9" * 2**19),
]


@contextlib.asynccontextmanager
async def client(**options):
    connection = await asyncpg.connect(**options)
    try:
        yield connection
    finally:
        await connection.close(timeout=PATIENCE_S)


@contextlib.contextmanager
def refused(error):
    """What is inside must end with this error."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


async def everyone(work):
    """All clients at once, each with a tag of its own."""
    await asyncio.gather(*(work(f"client {n}") for n in range(CLIENTS)))


async def until(condition):
    while not await condition():
        await asyncio.sleep(0.01)


def tuples(records):
    return [tuple(record) for record in records]


async def login():
    async with client() as c:
        assert await c.fetchval("SELECT current_user") == os.environ["PGUSER"]
    with refused(asyncpg.InvalidPasswordError):
        await asyncpg.connect(password="not it")


async def values():
    async with client() as c:
        await c.execute(
            "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (n int, t text)"
        )
    for options in ({}, UNNAMED):
        async with client(**options) as c:
            for type_, value in VALUES:
                row = await c.fetchrow(f"SELECT $1::{type_}, $2::text", value, type_)
                assert tuple(row) == (value, type_), type_
            assert await c.execute("SELECT 1; SELECT generate_series(1, 7)") == "SELECT 7"
            # asyncpg looks up types that it does not know, by queries between Parse and Bind.
            of_own_types = "SELECT $1::mood, $2::pair, $3::mood[]"
            row = await c.fetchrow(of_own_types, "sad", (1, None), ["glad"])
            assert (row[0], tuple(row[1]), row[2]) == ("sad", (1, None), ["glad"])


async def transactions():
    async with client() as c:
        await c.execute("CREATE TABLE numbers (n int PRIMARY KEY, t text)")
        async with c.transaction():
            await c.execute("INSERT INTO numbers VALUES ($1, $2)", 1, "one")
        with refused(asyncpg.UniqueViolationError):
            async with c.transaction():
                await c.execute("INSERT INTO numbers VALUES (2, 'two')")
                await c.execute("INSERT INTO numbers VALUES ($1, 'twice')", 1)
        assert tuples(await c.fetch("SELECT n, t FROM numbers")) == [(1, "one")]

        async with c.transaction(isolation="serializable"):
            await c.execute("INSERT INTO numbers VALUES (3, 'three')")
            with refused(asyncpg.DivisionByZeroError):
                async with c.transaction():  # a savepoint
                    await c.execute("INSERT INTO numbers VALUES (4, 'four')")
                    await c.fetchval("SELECT 1 / $1::int", 0)
            assert await c.fetchval("SELECT count(*) FROM numbers") == 2
        with refused(asyncpg.ReadOnlySQLTransactionError):
            async with c.transaction(readonly=True):
                await c.execute("DELETE FROM numbers")

        transaction = c.transaction()
        await transaction.start()
        with refused(asyncpg.DivisionByZeroError):
            await c.fetchval("SELECT 1 / $1::int", 0)
        with refused(asyncpg.InFailedSQLTransactionError):
            await c.fetchval("SELECT 1")
        await transaction.rollback()
        assert tuples(await c.fetch("SELECT n FROM numbers ORDER BY n")) == [(1,), (3,)]


async def statement_cache():
    async def work(tag):
        async with client() as c:
            for round_ in range(ROUNDS):
                for n in range(5):
                    row = await c.fetchrow(f"SELECT $1::text, $2::int + {n}", tag, round_)
                    assert tuple(row) == (tag, round_ + n)
            # Each is there once at most, however many clients have prepared it.
            assert await c.fetchval(
                "SELECT count(*) <= 5 FROM pg_prepared_statements"
                " WHERE statement LIKE 'SELECT $1::text, $2::int + %'"
            )

    await everyone(work)


async def small_statement_cache():
    async def work(tag):
        async with client(statement_cache_size=3) as c:
            for round_ in range(ROUNDS):
                for n in range(5):
                    row = await c.fetchrow(f"SELECT $1::text, $2::int + {n}", tag, round_)
                    assert tuple(row) == (tag, round_ + n)

    await everyone(work)


async def changed_tables():
    async with client() as c, client() as other:
        await c.execute("CREATE TABLE changing (a int); INSERT INTO changing VALUES (1)")
        for more in range(3):
            assert len(await c.fetchrow("SELECT * FROM changing")) == 1 + more
            await other.execute(f"ALTER TABLE changing ADD COLUMN b{more} text")


async def batches():
    async with client() as c:
        await c.execute("CREATE TABLE batches (tag text, n int, PRIMARY KEY (tag, n))")

    async def work(tag):
        async with client() as c:
            insert = "INSERT INTO batches VALUES ($1, $2)"
            await c.executemany(insert, [(tag, n) for n in range(500)])
            with refused(asyncpg.UniqueViolationError):
                await c.executemany(insert, [(tag, n) for n in range(600, 400, -1)])
            rows = await c.fetch("SELECT n FROM batches WHERE tag = $1 ORDER BY n", tag)
            assert tuples(rows) == [(n,) for n in range(500)]
            rows = await c.fetchmany("SELECT $1::text, $2::int", [(tag, n) for n in range(100)])
            assert tuples(rows) == [(tag, n) for n in range(100)]

    await everyone(work)


async def cursors():
    async def work(tag):
        async with client() as c, c.transaction():
            query = "SELECT $1::text, g FROM generate_series(1, 2000) AS g"
            many = c.cursor(query, tag, prefetch=64)
            one = await c.cursor("SELECT generate_series(1, 100)")
            await one.forward(10)
            assert tuples([row async for row in many]) == [(tag, g) for g in range(1, 2001)]
            assert tuple(await one.fetchrow()) == (11,)
            assert tuples(await one.fetch(3)) == [(12,), (13,), (14,)]

    await everyone(work)


async def copies():
    async with client() as c:
        await c.execute("CREATE TABLE copied (tag text, n int, data bytea)")

    async def work(tag):
        async with client() as c:
            records = [(tag, n, bytes(n % 256) if n % 3 else None) for n in range(2000)]
            assert await c.copy_records_to_table("copied", records=records) == "COPY 2000"
            lines = "".join(f"{tag},{n}\n" for n in range(2000, 2100)).encode()
            options = {"columns": ("tag", "n"), "format": "csv"}
            said = await c.copy_to_table("copied", source=io.BytesIO(lines), **options)
            assert said == "COPY 100"
            with refused(asyncpg.InvalidTextRepresentationError):
                await c.copy_to_table("copied", source=io.BytesIO(b"x,no number\n"), **options)
            rows = await c.fetch("SELECT * FROM copied WHERE tag = $1 ORDER BY n LIMIT 2000", tag)
            assert tuples(rows) == records
            out = io.BytesIO()
            query = "SELECT tag, n FROM copied WHERE tag = $1 ORDER BY n"
            assert await c.copy_from_query(query, tag, output=out) == "COPY 2100"
            assert out.getvalue() == "".join(f"{tag}\t{n}\n" for n in range(2100)).encode()

    await everyone(work)


async def cancels():
    async def late(tag):
        async with client() as c:
            for _ in range(3):
                with refused(asyncio.TimeoutError):
                    await c.fetchval("SELECT pg_sleep(600)", timeout=0.2)
                assert await c.fetchval("SELECT $1::text", tag) == tag

    async def busy(tag):
        async with client() as c:
            for n in range(100):
                assert tuple(await c.fetchrow("SELECT $1::text, $2::int", tag, n)) == (tag, n)

    late_ones = (late(f"late {n}") for n in range(CLIENTS // 2))
    await asyncio.gather(*late_ones, *(busy(f"busy {n}") for n in range(CLIENTS // 2)))


async def cancelled_task():
    async with client() as c, client() as watcher:

        async def sleeps():
            running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1"
            return await watcher.fetchval(running, "SELECT pg_sleep(600)")

        task = asyncio.create_task(c.execute("SELECT pg_sleep(600)"))
        await until(sleeps)
        task.cancel()
        with refused(asyncio.CancelledError):
            await task
        assert await c.fetchval("SELECT 'after'") == "after"
        assert not await sleeps()


async def settings():
    zones = ["Asia/Tokyo", "America/Lima", "UTC"]

    async def work(tag):
        zone = zones[len(set(tag)) % 3]
        own = {"application_name": tag, "TimeZone": zone, "app.tenant": tag[::-1]}
        async with client(server_settings=own) as c:
            for _ in range(ROUNDS):
                for name, value in own.items():
                    assert await c.fetchval("SELECT current_setting($1)", name) == value
            reported = c.get_settings()
            assert (reported.application_name, reported.TimeZone) == (tag, zone)

    await everyone(work)
    async with client(server_settings={"statement_timeout": "200"}) as c:
        with refused(asyncpg.QueryCanceledError):
            await c.execute("SELECT pg_sleep(600)")
        async with client() as other:
            assert await other.fetchval("SHOW statement_timeout") == "0"
        assert await c.fetchval("SHOW statement_timeout") == "200ms"


async def session_state():
    async def work(tag):
        async with client() as c:
            assert not await c.fetchval("SELECT current_setting('app.tag', true)")
            await c.execute(f"SET app.tag = '{tag}'")
            await c.execute(f"CREATE TEMP TABLE own AS SELECT '{tag}' AS tag")
            for _ in range(ROUNDS):
                own = await c.fetchrow("SELECT current_setting('app.tag'), tag FROM own")
                assert tuple(own) == (tag, tag)

    await everyone(work)


async def rows():
    async with client() as c:
        await c.execute("CREATE TABLE ledger (tag text, n int)")

    async def work(tag):
        async with client() as c:
            for n in range(ROUNDS):
                rows = await c.fetch("SELECT $1::text, generate_series(1, 50)", tag)
                assert tuples(rows) == [(tag, row) for row in range(1, 51)]
                async with c.transaction():
                    backend = await c.fetchval("SELECT pg_backend_pid()")
                    await c.execute("INSERT INTO ledger VALUES ($1, $2)", tag, n)
                    assert await c.fetchval("SELECT pg_backend_pid()") == backend
                with refused(asyncpg.DivisionByZeroError):
                    async with c.transaction():
                        await c.execute("INSERT INTO ledger VALUES ($1, -1)", tag)
                        await c.execute("SELECT 1 / $1::int", 0)
            rows = await c.fetch("SELECT n FROM ledger WHERE tag = $1 ORDER BY n", tag)
            assert tuples(rows) == [(n,) for n in range(ROUNDS)]

    await everyone(work)


async def pool():
    for options in ({}, UNNAMED):
        async with asyncpg.create_pool(min_size=CLIENTS, max_size=CLIENTS, **options) as pool:

            async def work(n):
                assert await pool.fetchval("SELECT $1::int", n) == n
                async with pool.acquire() as c, c.transaction():
                    assert await c.fetchval("SELECT $1::int", -n) == -n

            await asyncio.gather(*(work(n) for n in range(CLIENTS * ROUNDS)))


async def notifications():
    heard = asyncio.Queue()
    async with client() as listener:
        await listener.add_listener("news", lambda *news: heard.put_nowait(news[2:]))

        async def work(tag):
            async with client() as c:
                await c.execute("SELECT pg_notify('news', $1)", tag)

        await everyone(work)
        news = sorted([await heard.get() for _ in range(CLIENTS)])
        assert news == sorted(("news", f"client {n}") for n in range(CLIENTS))
        assert await listener.fetchval("SELECT 'after'") == "after"


SHARED = f"{CLIENTS} clients on {os.environ['SERVERS']} servers"
GROUPS = [
    ("login with SCRAM", login),
    ("values of many types, 1 MB too", values),
    ("transactions, errors, savepoints", transactions),
    (f"rows go to whom they belong, {SHARED}", rows),
    (f"statement cache, {SHARED}", statement_cache),
    (f"statement cache that is too small, {SHARED}", small_statement_cache),
    ("cached statements of tables that change", changed_tables),
    (f"executemany and fetchmany, {SHARED}", batches),
    (f"cursors, {SHARED}", cursors),
    (f"COPY, {SHARED}", copies),
    (f"timeouts that cancel, {SHARED}", cancels),
    ("a cancelled task", cancelled_task),
    (f"settings of each client, {SHARED}", settings),
    (f"session state, {SHARED}", session_state),
    (f"a pool, {SHARED}", pool),
    (f"LISTEN and NOTIFY, {SHARED}", notifications),
]


async def main():
    for name, group in GROUPS:
        print(f"asyncpg: {name} \u2026 ", end="", flush=True)
        await asyncio.wait_for(group(), PATIENCE_S)
        print("ok", flush=True)
    python = platform.python_version()
    print(f"asyncpg: all is well with asyncpg {asyncpg.__version__}, Python {python}")


asyncio.run(main())
