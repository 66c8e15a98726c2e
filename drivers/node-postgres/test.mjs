// node-postgres through pgweir, where many clients share a few servers.
//
// The way to pgweir is in the environment (PGHOST, ...), and SERVERS says how many servers it has.
// A client that listens or has a temporary table keeps its server until it leaves: where more of
// them come than there are servers, they wait for each other to leave.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';

import pg from 'pg';
import copyStreams from 'pg-copy-streams';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';

const CLIENTS = 20;
const ROUNDS = 10;
const PATIENCE_MS = 180_000;

const BYTES = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
const VALUES = [
    ['int2', -(2 ** 15)],
    ['int4', 2 ** 31 - 1],
    ['int8', '9223372036854775807'],
    ['float8', 1 / 3],
    ['numeric', '12345678901234567890.000100'],
    ['bool', true],
    ['text', '\u00e4\u{1f511} \'"\\'],
    ['bytea', BYTES],
    ['uuid', '80000000-0000-0000-0000-000000000001'],
    ['timestamptz', new Date('2024-02-29T12:30:00.001Z')],
    ['jsonb', { a: [1, null] }],
    ['int4[]', [1, null, -3]],
    ['text[]', [['a', 'NULL'], [null, '{,}']]],
    ['int4[]', []],
    ['text', null],
    ['bytea', Buffer.concat(Array(4096).fill(BYTES))],
    ['text', '\u00e9'.repeat(2 ** 19)],
];

async function withClient(work, options = {}) {
    const client = new pg.Client(options);
    await client.connect();
    try {
        return await work(client);
    } finally {
        await client.end();
    }
}

// All clients at once, each with a tag of its own.
async function everyone(work, options = () => ({})) {
    const tags = numbers(CLIENTS).map((n) => `client ${n}`);
    await Promise.all(tags.map((tag) => withClient((client) => work(client, tag), options(tag))));
}

// The rows of a query, each an array.
async function ask(client, text, ...values) {
    return (await client.query({ text, values, rowMode: 'array' })).rows;
}

async function until(condition) {
    while (!(await condition())) {
        await pause(10);
    }
}

function numbers(end, start = 0) {
    return Array.from({ length: end - start }, (_, n) => start + n);
}

async function login() {
    await withClient(async (client) => {
        assert.deepEqual(await ask(client, 'SELECT current_user'), [[process.env.PGUSER]]);
    });
    const stranger = new pg.Client({ password: 'not it' });
    await assert.rejects(stranger.connect(), { code: '28P01' });
}

async function values() {
    await withClient(async (client) => {
        for (const [type, value] of VALUES) {
            const given = type === 'jsonb' ? JSON.stringify(value) : value;
            const rows = await ask(client, `SELECT $1::${type}, $2::text`, given, type);
            assert.deepEqual(rows, [[value, type]]);
        }
        const results = await client.query("SELECT 1 AS one; SELECT 'x' AS two, NULL AS three");
        const rows = results.map((result) => result.rows[0]);
        assert.deepEqual(rows.map(Object.entries), [
            [['one', 1]],
            [['two', 'x'], ['three', null]],
        ]);
    });
}

async function transactions() {
    await withClient(async (client) => {
        await client.query('CREATE TABLE numbers (n int PRIMARY KEY, t text)');
        const insert = 'INSERT INTO numbers VALUES ($1, $2)';
        await client.query('BEGIN');
        await ask(client, insert, 1, 'one');
        await client.query('COMMIT');

        await client.query('BEGIN');
        await ask(client, insert, 2, 'two');
        await assert.rejects(ask(client, insert, 1, 'twice'), { code: '23505' });
        await assert.rejects(ask(client, insert, 3, 'three'), { code: '25P02' });
        assert.equal((await client.query('COMMIT')).command, 'ROLLBACK');
        assert.deepEqual(await ask(client, 'SELECT n, t FROM numbers'), [[1, 'one']]);

        await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
        await ask(client, insert, 4, 'four');
        await client.query('SAVEPOINT before');
        await assert.rejects(ask(client, 'SELECT 1 / $1::int', 0), { code: '22012' });
        await client.query('ROLLBACK TO before');
        await ask(client, insert, 5, 'five');
        await client.query('COMMIT');

        await client.query('BEGIN');
        await client.query('DELETE FROM numbers');
        await client.query('ROLLBACK');
        assert.deepEqual(await ask(client, 'SELECT n FROM numbers ORDER BY n'), [[1], [4], [5]]);
    });
}

async function rows() {
    await withClient((client) => client.query('CREATE TABLE ledger (tag text, n int)'));
    const insert = 'INSERT INTO ledger VALUES ($1, $2)';
    await everyone(async (client, tag) => {
        for (const n of numbers(ROUNDS)) {
            const many = await ask(client, 'SELECT $1::text, generate_series(1, 50)', tag);
            assert.deepEqual(many, numbers(51, 1).map((row) => [tag, row]));
            await client.query('BEGIN');
            const backend = await ask(client, 'SELECT pg_backend_pid()');
            await ask(client, insert, tag, n);
            assert.deepEqual(await ask(client, 'SELECT pg_backend_pid()'), backend);
            await client.query('COMMIT');
            await client.query('BEGIN');
            await ask(client, insert, tag, -1);
            await assert.rejects(ask(client, 'SELECT 1 / $1::int', 0), { code: '22012' });
            await client.query('ROLLBACK');
        }
        const own = await ask(client, 'SELECT n FROM ledger WHERE tag = $1 ORDER BY n', tag);
        assert.deepEqual(own, numbers(ROUNDS).map((n) => [n]));
    });
}

async function namedQueries() {
    await everyone(async (client, tag) => {
        for (const round of numbers(ROUNDS)) {
            for (const n of numbers(5)) {
                const text = `SELECT $1::text, $2::int + ${n}`;
                const query = { name: `plus ${n}`, text, values: [tag, round], rowMode: 'array' };
                assert.deepEqual((await client.query(query)).rows, [[tag, round + n]]);
            }
        }
        // Each is there once at most, however many clients have prepared it.
        const few = await ask(client, `SELECT count(*) <= 5 FROM pg_prepared_statements
            WHERE statement LIKE 'SELECT $1::text, $2::int + %'`);
        assert.deepEqual(few, [[true]]);
    });
}

async function pipelines() {
    await everyone(async (client, tag) => {
        for (const round of numbers(ROUNDS)) {
            const sent = numbers(50).map((n) => {
                const text = `SELECT $1::text, ${n} / ($2::int % 10)`;
                const named = n % 5 === 0 ? { name: `over ${n}` } : {};
                return client.query({ text, values: [tag, n], rowMode: 'array', ...named });
            });
            for (const [n, result] of (await Promise.allSettled(sent)).entries()) {
                if (n % 10 === 0) {
                    assert.equal(result.reason.code, '22012');
                } else {
                    assert.deepEqual(result.value.rows, [[tag, Math.trunc(n / (n % 10))]]);
                }
            }
        }
    }, () => ({ pipeline: true }));
}

async function cursors() {
    const text = 'SELECT $1::text, generate_series(1, 500)';
    await everyone(async (client, tag) => {
        const cursor = client.query(new Cursor(text, [tag], { rowMode: 'array' }));
        assert.deepEqual(await cursor.read(100), numbers(101, 1).map((n) => [tag, n]));
        assert.deepEqual(await cursor.read(100), numbers(201, 101).map((n) => [tag, n]));
        await cursor.close();
        const options = { batchSize: 64, rowMode: 'array' };
        let seen = 0;
        for await (const row of client.query(new QueryStream(text, [tag], options))) {
            seen += 1;
            assert.deepEqual(row, [tag, seen]);
        }
        assert.equal(seen, 500);
        const wrong = client.query(new Cursor('SELECT 1 / (3 - generate_series(1, 5))'));
        assert.equal((await wrong.read(2)).length, 2);
        await assert.rejects(wrong.read(2), { code: '22012' });
        assert.deepEqual(await ask(client, 'SELECT $1::text', tag), [[tag]]);
    });
}

async function copies() {
    await withClient((client) => client.query('CREATE TABLE copied (tag text, n int)'));
    const copyIn = (client) => client.query(copyStreams.from('COPY copied FROM STDIN'));
    await everyone(async (client, tag) => {
        const lines = numbers(2000).map((n) => `${tag}\t${n}\n`);
        const into = copyIn(client);
        await pipeline(Readable.from(lines), into);
        assert.equal(into.rowCount, 2000);
        const bad = pipeline(Readable.from([`${tag}\tno number\n`]), copyIn(client));
        await assert.rejects(bad, { code: '22P02' });
        async function* breaks() {
            yield lines[0];
            throw new RangeError('enough');
        }
        await assert.rejects(pipeline(Readable.from(breaks()), copyIn(client)), RangeError);
        const query = `COPY (SELECT * FROM copied WHERE tag = '${tag}' ORDER BY n) TO STDOUT`;
        const chunks = await client.query(copyStreams.to(query)).toArray();
        assert.equal(Buffer.concat(chunks).toString(), lines.join(''));
    });
}

async function timeouts() {
    const late = (tag) => withClient(async (client) => {
        for (const _ of numbers(3)) {
            await assert.rejects(client.query('SELECT pg_sleep(600)'), { code: '57014' });
            assert.deepEqual(await ask(client, 'SELECT $1::text', tag), [[tag]]);
        }
    }, { statement_timeout: 200 });
    const busy = (tag) => withClient(async (client) => {
        for (const n of numbers(100)) {
            assert.deepEqual(await ask(client, 'SELECT $1::text, $2::int', tag, n), [[tag, n]]);
        }
        assert.deepEqual(await ask(client, 'SHOW statement_timeout'), [['0']]);
    });
    const both = numbers(CLIENTS / 2).flatMap((n) => [late(`late ${n}`), busy(`busy ${n}`)]);
    await Promise.all(both);
    // The driver waits no longer, and says so to nobody: the next query waits for the last reply.
    await withClient(async (client) => {
        const sleep = { text: 'SELECT pg_sleep(1)', query_timeout: 200 };
        await assert.rejects(client.query(sleep), /timeout/);
        assert.deepEqual(await ask(client, 'SELECT $1::int', 1), [[1]]);
    });
}

async function cancels() {
    await withClient((client) => withClient(async (watcher) => {
        const running = "SELECT count(*)::int FROM pg_stat_activity "
            + "WHERE state = 'active' AND query = $1";
        const text = 'SELECT pg_sleep(600)';
        for (const _ of numbers(5)) {
            const query = new pg.Query(text);
            const failed = new Promise((resolve) => query.on('error', resolve));
            client.query(query);
            await until(async () => (await ask(watcher, running, text))[0][0] === 1);
            new pg.Client().cancel(client, query);
            assert.equal((await failed).code, '57014');
            assert.deepEqual(await ask(client, "SELECT 'after'"), [['after']]);
        }
    }));
}

async function settings() {
    const zones = ['Asia/Tokyo', 'America/Lima', 'UTC'];
    const zone = (tag) => zones[new Set(tag).size % 3];
    await everyone(async (client, tag) => {
        for (const _ of numbers(ROUNDS)) {
            const own = "SELECT current_setting('application_name'), current_setting('TimeZone')";
            assert.deepEqual(await ask(client, own), [[tag, zone(tag)]]);
        }
    }, (tag) => ({ application_name: tag, options: `-c TimeZone=${zone(tag)}` }));
}

async function sessionState() {
    await everyone(async (client, tag) => {
        const [[left]] = await ask(client, "SELECT current_setting('app.tag', true)");
        assert(!left);
        await client.query(`SET app.tag = '${tag}'`);
        await client.query(`CREATE TEMP TABLE own AS SELECT '${tag}' AS tag`);
        for (const _ of numbers(ROUNDS)) {
            const own = await ask(client, "SELECT current_setting('app.tag'), tag FROM own");
            assert.deepEqual(own, [[tag, tag]]);
        }
    });
}

async function pool() {
    const shared = new pg.Pool({ max: CLIENTS });
    await Promise.all(numbers(CLIENTS * ROUNDS).map(async (n) => {
        assert.deepEqual(await ask(shared, 'SELECT $1::int', n), [[n]]);
        const client = await shared.connect();
        await client.query('BEGIN');
        assert.deepEqual(await ask(client, 'SELECT $1::int + 1', n), [[n + 1]]);
        await client.query('COMMIT');
        client.release();
    }));
    await shared.end();
}

async function notifications() {
    await withClient(async (listener) => {
        const heard = [];
        listener.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`));
        await listener.query('LISTEN news');
        await everyone((client, tag) => ask(client, "SELECT pg_notify('news', $1)", tag));
        await until(() => heard.length === CLIENTS);
        assert.deepEqual(heard.sort(), numbers(CLIENTS).map((n) => `news client ${n}`).sort());
        assert.deepEqual(await ask(listener, "SELECT 'after'"), [['after']]);
    });
}

const SHARED = `${CLIENTS} clients on ${process.env.SERVERS} servers`;
const GROUPS = [
    ['login with SCRAM', login],
    ['values of many types, 1 MB too', values],
    ['transactions, errors, savepoints', transactions],
    [`rows go to whom they belong, ${SHARED}`, rows],
    [`named queries, ${SHARED}`, namedQueries],
    [`pipelines with errors in them, ${SHARED}`, pipelines],
    [`pg-cursor and pg-query-stream, ${SHARED}`, cursors],
    [`pg-copy-streams, ${SHARED}`, copies],
    [`statement_timeout and query_timeout, ${SHARED}`, timeouts],
    ['cancel requests', cancels],
    [`settings of each client, ${SHARED}`, settings],
    [`session state, ${SHARED}`, sessionState],
    [`a pool, ${SHARED}`, pool],
    [`LISTEN and NOTIFY, ${SHARED}`, notifications],
];

for (const [name, group] of GROUPS) {
    process.stdout.write(`node-postgres: ${name} \u2026 `);
    const watchdog = setTimeout(() => {
        console.error('it hangs');
        process.exit(1);
    }, PATIENCE_MS);
    await group();
    clearTimeout(watchdog);
    console.log('ok');
}
const { version } = createRequire(import.meta.url)('pg/package.json');
console.log(`node-postgres: all is well with pg ${version}, Node.js ${process.version}`);
