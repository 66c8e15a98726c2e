"""SQLAlchemy on asyncpg, both with their caches of prepared statements.

The way to PostgreSQL, or to pgweir, is in the environment (PGHOST, ...). Each worker has a
connection of its own all the time.
"""

import asyncio
import enum
from pathlib import Path

import alembic.command
import alembic.config
import asyncpg
import sqlalchemy
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import NotSupportedError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

WORKERS = 8
ROUNDS = 40

# The rounds in which a plan was refused.
refusals = []


class Mood(enum.Enum):
    new = enum.auto()
    updated = enum.auto()


class Base(DeclarativeBase):
    pass


class Note(Base):
    __tablename__ = "notes"

    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    mood: Mapped[Mood]
    more: Mapped[dict] = mapped_column(JSONB)


class Counter(Base):
    __tablename__ = "counter"

    value: Mapped[int] = mapped_column(primary_key=True)


def check(found, expected):
    assert found == expected, f"{found!r} and not {expected!r}"


async def migrate(revision):
    """By an engine of its own, so that no other hears of it, as none in another process would."""
    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("version_locations", str(Path(__file__).parent / "versions"))
    config.set_main_option("path_separator", "os")

    def upgrade(connection):
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, revision)

    engine = new_engine()
    async with engine.begin() as connection:
        await connection.run_sync(upgrade)
    await engine.dispose()


def new_engine():
    # asyncpg takes the rest from the environment.
    return create_async_engine("postgresql+asyncpg://", pool_size=WORKERS, max_overflow=0)


async def round(session, owner, number):
    async with session.begin():
        id = await write(session, owner, number)
    try:
        await read(session, owner, number)
    except NotSupportedError as refused:
        # A plan that does not fit its table any more. SQLAlchemy has thrown all of them away.
        check(type(refused.orig).__name__, "InvalidCachedStatementError")
        refusals.append(number)
        await read(session, owner, number)
    async with session.begin():
        check((await session.get(Note, id)).mood, Mood.updated)
    async with session.begin() as transaction:
        await session.execute(delete(Note).where(Note.owner == owner))
        check(await session.scalar(select(func.count()).where(Note.owner == owner)), 0)
        await transaction.rollback()


async def write(session, owner, number):
    note = Note(owner=owner, mood=Mood.new, more={"n": number})
    session.add(note)
    await session.flush()
    await session.refresh(note)
    check(note.owner, owner)
    note.mood = Mood.updated
    await session.scalar(select(Counter).with_for_update())
    await session.execute(update(Counter).values(value=Counter.value + 1))
    return note.id


async def read(session, owner, number):
    own = select(Note.owner, Note.more).where(Note.owner == owner).order_by(Note.id)
    async with session.begin():
        # By a cursor, piece by piece.
        rows = await session.stream(own.execution_options(yield_per=7))
        check([tuple(row) async for row in rows], [(owner, {"n": n}) for n in range(number + 1)])
        rows = await session.execute(text("SELECT * FROM notes WHERE owner = :own"), {"own": owner})
        check({row.owner for row in rows}, {owner})


async def work(engine, owner, all_are_there):
    """One of the workers adds a column. Each has prepared its statements before, and uses them once
    more behind that."""
    async with engine.connect() as connection:
        await all_are_there.wait()
        session = AsyncSession(connection, expire_on_commit=False)
        for number in range(ROUNDS):
            if number == ROUNDS // 2 and owner == "worker 0":
                await migrate("2")
            if number == ROUNDS - 1:
                await all_are_there.wait()
            await round(session, owner, number)


async def look_at_all(engine, owners):
    async with engine.connect() as connection:
        check(await connection.scalar(select(Counter.value)), WORKERS * ROUNDS)
        stars = await connection.execute(text("SELECT owner, sum(stars) FROM notes GROUP BY owner"))
        check(dict(map(tuple, stars)), {owner: ROUNDS for owner in owners})
        return await connection.scalar(select(func.count()).select_from(Note))


async def main():
    await migrate("1")
    engine = new_engine()
    owners = [f"worker {n}" for n in range(WORKERS)]
    all_are_there = asyncio.Barrier(WORKERS)
    async with asyncio.TaskGroup() as workers:
        for owner in owners:
            workers.create_task(work(engine, owner, all_are_there))
    assert refusals, "no plan was refused"
    notes = await look_at_all(engine, owners)
    await engine.dispose()
    print(
        f"sqlalchemy: all is well with SQLAlchemy {sqlalchemy.__version__},"
        f" asyncpg {asyncpg.__version__}: 2 migrations, {WORKERS} workers, {notes} notes"
    )


asyncio.run(main())
