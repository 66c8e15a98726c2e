// Prisma with its engine in JavaScript on node-postgres, which prepares every statement by name.
//
// The way to PostgreSQL, or to pgweir, is in the environment (PGHOST, ...).

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import { PrismaPg } from '@prisma/adapter-pg';
import prismaClient from '@prisma/client';
import pg from 'pg';

const { Prisma, PrismaClient } = prismaClient;
const WORKERS = 8;
const ROUNDS = 40;
const PATIENCE_MS = 180_000;

// A statement is known by its text.
const statementNameGenerator = ({ sql }) =>
  createHash('sha256').update(sql).digest('hex').slice(0, 32);

const prisma = new PrismaClient({
  adapter: new PrismaPg({ max: WORKERS, idleTimeoutMillis: 0 }, { statementNameGenerator }),
  transactionOptions: { maxWait: PATIENCE_MS, timeout: PATIENCE_MS },
});

// As text: the engine of `prisma migrate` is no package of npm's.
async function migrate(name) {
  const client = new pg.Client();
  await client.connect();
  await client.query(await readFile(new URL(`migrations/${name}.sql`, import.meta.url), 'utf8'));
  await client.end();
}

// Statements at once have a connection each, and the pool closes none.
async function openAllConnections() {
  await Promise.all(Array.from({ length: WORKERS }, () => prisma.$queryRaw`SELECT 1`));
}

async function round(owner, number) {
  const { id } = await prisma.$transaction((transaction) => write(transaction, owner, number));
  const note = await prisma.note.findUniqueOrThrow({ where: { id } });
  assert.deepEqual([note.owner, note.mood], [owner, 'updated']);

  // Its statements are one transaction.
  const own = { where: { owner } };
  const [notes, count] = await prisma.$transaction([
    prisma.note.findMany({ ...own, orderBy: { id: 'asc' } }),
    prisma.note.count(own),
  ]);
  const expected = Array.from({ length: number + 1 }, (_, n) => [owner, { n }]);
  assert.deepEqual(notes.map((each) => [each.owner, each.more]), expected);
  assert.equal(count, number + 1);

  await assert.rejects(prisma.$transaction(rollBack(own)), { message: 'rolled back' });
}

async function write(transaction, owner, number) {
  const { id } = await transaction.note.create({ data: { owner, more: { n: number } } });
  await transaction.counter.update({ where: { id: 1 }, data: { value: { increment: 1 } } });
  return transaction.note.update({ where: { id, owner }, data: { mood: 'updated' } });
}

function rollBack(own) {
  return async (transaction) => {
    await transaction.note.deleteMany(own);
    assert.equal(await transaction.note.count(own), 0);
    throw new Error('rolled back');
  };
}

// One of the workers adds a column, and all use their statements once more behind that.
async function work(worker, migrated) {
  for (let number = 0; number < ROUNDS; number += 1) {
    if (number === ROUNDS / 2 && worker === 0) {
      await migrate('2_stars').then(migrated.resolve, migrated.reject);
    }
    if (number === ROUNDS - 1) await migrated.promise;
    await round(`worker ${worker}`, number);
  }
}

async function workAtOnce() {
  const migrated = {};
  migrated.promise = new Promise((resolve, reject) => Object.assign(migrated, { resolve, reject }));
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker, migrated)));
}

async function lookAtAll() {
  const { value } = await prisma.counter.findUniqueOrThrow({ where: { id: 1 } });
  assert.equal(value, WORKERS * ROUNDS);
  const found = await prisma.$queryRaw`
    SELECT owner, sum(stars)::int4 AS stars FROM notes GROUP BY owner ORDER BY owner`;
  const expected = Array.from({ length: WORKERS }, (_, n) => ({
    owner: `worker ${n}`,
    stars: ROUNDS,
  }));
  assert.deepEqual(found, expected);
  return prisma.note.count();
}

await migrate('1_notes');
await openAllConnections();
await prisma.counter.create({ data: { id: 1, value: 0 } });
await workAtOnce();
const notes = await lookAtAll();
await prisma.$disconnect();
console.log(
  `prisma: all is well with Prisma ${Prisma.prismaVersion.client}: ` +
    `2 migrations, ${WORKERS} workers, ${notes} notes`,
);
