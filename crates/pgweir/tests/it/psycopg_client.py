"""psycopg 3 through pgweir. The way to the server is in the environment (PGHOST, ...)."""

import threading

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row


def connect(**options):
    return psycopg.connect(row_factory=scalar_row, **options)


def values(cursor):
    return cursor.fetchall()


def transactions():
    with connect() as connection:
        connection.execute("CREATE TABLE numbers (n int PRIMARY KEY, t text)")
        connection.execute("INSERT INTO numbers VALUES (%s, %s)", [1, "one"])
    with connect() as connection:
        try:
            with connection.transaction():
                connection.execute("INSERT INTO numbers VALUES (2, 'two')")
                connection.execute("INSERT INTO numbers VALUES (1, 'twice')")
            raise AssertionError("no error")
        except psycopg.errors.UniqueViolation:
            pass
        assert values(connection.execute("SELECT n FROM numbers")) == [1]
        with connection.transaction():
            try:
                with connection.transaction():
                    connection.execute("SELECT 1/0")
            except psycopg.errors.DivisionByZero:
                pass
            assert values(connection.execute("SELECT 'after'")) == ["after"]


def binary():
    with connect() as connection:
        cursor = connection.cursor(binary=True)
        value = bytes(range(256)) * 1000
        assert values(cursor.execute("SELECT %b::bytea", [value])) == [value]
        assert values(cursor.execute("SELECT %b::int8", [2**40])) == [2**40]
        text = "\u00e4\U0001f511"
        assert values(cursor.execute("SELECT %b::text", [text])) == [text]


def many():
    with connect() as connection:
        cursor = connection.cursor()
        rows = [(n, str(n)) for n in range(2, 500)]
        cursor.executemany("INSERT INTO numbers VALUES (%s, %s)", rows)
        cursor.executemany("SELECT %s::int", [(n,) for n in range(50)], returning=True)
        results = []
        while True:
            results += values(cursor)
            if not cursor.nextset():
                break
        assert results == list(range(50))
        assert values(cursor.execute("SELECT count(*) FROM numbers")) == [499]


def pipelines():
    with connect(autocommit=True) as connection:
        with connection.pipeline() as pipeline:
            first = connection.execute("SELECT 'first'")
            with connection.transaction():
                second = connection.execute("SELECT count(*) FROM numbers WHERE n < %s", [10])
            pipeline.sync()
            third = connection.execute("SELECT 'third'")
            assert values(second) == [9]
        assert values(first) == ["first"] and values(third) == ["third"]
        try:
            with connection.pipeline():
                connection.execute("SELECT 1")
                connection.execute("SELECT 1/0")
                connection.execute("SELECT 2")
            raise AssertionError("no error")
        except psycopg.errors.DivisionByZero:
            pass
        assert values(connection.execute("SELECT 'after'")) == ["after"]


def cursors():
    with connect() as connection:
        with connection.cursor(name="portal") as cursor:
            cursor.itersize = 50
            cursor.execute("SELECT n FROM numbers ORDER BY n")
            assert list(cursor) == list(range(1, 500))
    with connect(autocommit=True) as connection:
        with connection.cursor(name="held", withhold=True) as cursor:
            cursor.execute("SELECT n FROM numbers ORDER BY n")
            assert cursor.fetchmany(3) == [1, 2, 3]
            cursor.scroll(400)
            assert cursor.fetchone() == 404


def copies():
    with connect() as connection:
        cursor = connection.cursor()
        connection.execute("CREATE TABLE copied (LIKE numbers)")
        with cursor.copy("COPY numbers TO STDOUT (FORMAT binary)") as out:
            data = b"".join(out)
        with cursor.copy("COPY copied FROM STDIN (FORMAT binary)") as into:
            for start in range(0, len(data), 1000):
                into.write(data[start : start + 1000])
        with cursor.copy("COPY copied FROM STDIN") as into:
            for n in range(1000, 1100):
                into.write_row((n, None if n % 2 else "even"))
        assert values(cursor.execute("SELECT count(*) FROM copied")) == [599]
        try:
            with connection.transaction(), cursor.copy("COPY copied FROM STDIN") as into:
                into.write("1000\tx\n")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        with cursor.copy("COPY (SELECT generate_series(1, 100000)) TO STDOUT") as out:
            assert sum(1 for _ in out.rows()) == 100000
        assert values(cursor.execute("SELECT count(*) FROM copied")) == [599]


def cancels():
    with connect(autocommit=True) as connection:
        timer = threading.Timer(0.1, connection.cancel)
        timer.start()
        try:
            connection.execute("SELECT pg_sleep(60)")
            raise AssertionError("no error")
        except psycopg.errors.QueryCanceled:
            pass
        timer.join()
        assert values(connection.execute("SELECT 'after'")) == ["after"]


def prepared(threshold):
    with connect(autocommit=True, prepare_threshold=threshold) as connection:
        connection.prepared_max = 5
        for round_ in range(4):
            for n in range(10):
                query = sql.SQL("SELECT %s::int + {}").format(n)
                assert values(connection.execute(query, [round_])) == [n + round_]
        connection.execute("ALTER TABLE copied ADD COLUMN more int")
        assert values(connection.execute("SELECT count(*) FROM copied")) == [599]
        connection.execute("ALTER TABLE copied DROP COLUMN more")


def notifications():
    with connect(autocommit=True) as listener, connect(autocommit=True) as speaker:
        listener.execute("LISTEN news")
        for n in range(3):
            speaker.execute("SELECT pg_notify('news', %s)", [str(n)])
        heard = [notify.payload for notify in listener.notifies(timeout=30, stop_after=3)]
        assert heard == ["0", "1", "2"]


transactions()
binary()
many()
pipelines()
cursors()
copies()
cancels()
prepared(0)
prepared(1)
prepared(None)
notifications()
print("all is well")
