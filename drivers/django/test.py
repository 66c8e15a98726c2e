"""A Django site whose parameters are bound and whose statements are prepared by the server.

The way to PostgreSQL, or to pgweir, is in the environment (PGHOST, ...). Each worker is a thread,
and has a connection of its own all the time, as Django does it.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()

import psycopg
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Count, F
from django.db.migrations.recorder import MigrationRecorder

from notes.models import Counter, Note

WORKERS = 8
ROUNDS = 40
PATIENCE_S = 180

all_are_there = threading.Barrier(WORKERS, timeout=PATIENCE_S)


def check(found, expected):
    assert found == expected, f"{found!r} and not {expected!r}"


def write(owner, number):
    note = Note.objects.create(owner=owner, text=str(number), more={"n": number})
    note.refresh_from_db()
    check(note.owner, owner)
    note.text += ", updated"
    note.save()
    counter = Counter.objects.select_for_update().get()
    counter.value = F("value") + 1
    counter.save()
    return note


def round(owner, number):
    with transaction.atomic():
        note = write(owner, number)
    check(Note.objects.get(id=note.id).text, f"{number}, updated")
    own = Note.objects.filter(owner=owner)
    check(own.aggregate(notes=Count("id"))["notes"], number + 1)
    # Outside of a transaction this is a cursor WITH HOLD.
    found = [(note.owner, note.more) for note in own.order_by("id").iterator(chunk_size=7)]
    check(found, [(owner, {"n": n}) for n in range(number + 1)])
    # psycopg forgets behind a ROLLBACK what it has prepared, and has it prepared anew.
    if number % 10 == 9:
        roll_back(own)


def roll_back(notes):
    with transaction.atomic():
        notes.delete()
        check(notes.exists(), False)
        transaction.set_rollback(True)


def work(owner):
    """One of the workers adds a column. Each has prepared its statements before, and uses them once
    more behind that."""
    try:
        connection.ensure_connection()
        all_are_there.wait()
        for number in range(ROUNDS):
            if number == ROUNDS // 2 and owner == "worker 0":
                call_command("migrate", verbosity=0)
            if number == ROUNDS - 1:
                all_are_there.wait()
            round(owner, number)
    except BaseException:
        all_are_there.abort()
        raise
    finally:
        connection.close()


def look_at_all(owners):
    check(Counter.objects.get().value, WORKERS * ROUNDS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT owner, sum(stars) FROM notes_note GROUP BY owner")
        check(dict(cursor.fetchall()), {owner: ROUNDS for owner in owners})


def main():
    call_command("migrate", "notes", "0002", verbosity=0)
    Counter.objects.create()
    owners = [f"worker {n}" for n in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as workers:
        list(workers.map(work, owners))
    look_at_all(owners)
    migrations = MigrationRecorder.Migration.objects.filter(app="notes").count()
    print(
        f"django: all is well with Django {django.__version__}, psycopg {psycopg.__version__}:"
        f" {migrations} migrations, {WORKERS} workers, {Note.objects.count()} notes"
    )


main()
