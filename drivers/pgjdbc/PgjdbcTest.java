import java.io.PrintStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;
import org.postgresql.util.DriverInfo;

/**
 * pgjdbc through pgweir, where many clients share a few servers.
 *
 * <p>The way to pgweir is in the environment (PGHOST, ...), and SERVERS says how many servers it
 * has. A client that listens or has a temporary table keeps its server until it leaves: where more
 * of them come than there are servers, they wait for each other to leave.
 */
public final class PgjdbcTest {
    static final int CLIENTS = 20;
    static final int ROUNDS = 10;
    static final int PATIENCE_S = 180;

    /** What is done, and may fail. */
    interface Work {
        void run() throws Exception;
    }

    /** What each of many clients does, told apart by its tag. */
    interface Part {
        void run(String tag) throws Exception;
    }

    static Connection connect(String... properties) throws SQLException {
        Properties all = new Properties();
        all.setProperty("user", System.getenv("PGUSER"));
        all.setProperty("password", System.getenv("PGPASSWORD"));
        for (String property : properties) {
            String[] parts = property.split("=", 2);
            all.setProperty(parts[0], parts[1]);
        }
        String place = System.getenv("PGHOST") + ":" + System.getenv("PGPORT");
        String url = "jdbc:postgresql://" + place + "/" + System.getenv("PGDATABASE");
        return DriverManager.getConnection(url, all);
    }

    static void run(Connection connection, String sql, Object... values) throws SQLException {
        if (values.length == 0) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(sql);
            }
            return;
        }
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            bind(statement, values);
            statement.execute();
        }
    }

    /** The rows of a query, each as a list. */
    static List<Object> ask(Connection connection, String sql, Object... values)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            return rows(bind(statement, values).executeQuery());
        }
    }

    static PreparedStatement bind(PreparedStatement statement, Object... values)
            throws SQLException {
        for (int n = 0; n < values.length; n++) {
            statement.setObject(n + 1, values[n]);
        }
        return statement;
    }

    static List<Object> rows(ResultSet found) throws SQLException {
        List<Object> rows = new ArrayList<>();
        while (found.next()) {
            rows.add(row(found));
        }
        return rows;
    }

    static List<Object> row(ResultSet found) throws SQLException {
        List<Object> row = new ArrayList<>();
        for (int n = 1; n <= found.getMetaData().getColumnCount(); n++) {
            row.add(found.getObject(n));
        }
        return row;
    }

    static void same(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError("found " + found + " instead of " + expected);
        }
    }

    /** What must fail with this SQLSTATE. */
    static void refused(String state, Work work) throws Exception {
        try {
            work.run();
        } catch (SQLException error) {
            if (!state.equals(error.getSQLState())) {
                throw error;
            }
            return;
        }
        throw new AssertionError("no error " + state);
    }

    /** All clients at once, each with a tag of its own. */
    static void everyone(Part part) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(CLIENTS);
        List<Future<?>> parts = new ArrayList<>();
        for (int n = 0; n < CLIENTS; n++) {
            String tag = "client " + n;
            parts.add(threads.submit(() -> {
                part.run(tag);
                return null;
            }));
        }
        threads.shutdown();
        for (Future<?> each : parts) {
            each.get(PATIENCE_S, TimeUnit.SECONDS);
        }
    }

    static void login() throws Exception {
        try (Connection c = connect()) {
            same(ask(c, "SELECT current_user::text"), List.of(List.of(System.getenv("PGUSER"))));
        }
        refused("28P01", () -> connect("password=not it").close());
    }

    /** A value, its type, and the class to have it back in. */
    record Value(String type, Object given, Class<?> as) {}

    static List<Value> values() {
        byte[] bytes = new byte[1 << 20];
        for (int n = 0; n < bytes.length; n++) {
            bytes[n] = (byte) n;
        }
        return List.of(
            new Value("int2", Short.MIN_VALUE, Short.class),
            new Value("int8", Long.MAX_VALUE, Long.class),
            new Value("float8", 1.0 / 3, Double.class),
            new Value("numeric", new BigDecimal("12345678901234567890.000100"), BigDecimal.class),
            new Value("bool", true, Boolean.class),
            new Value("text", "\u00e4\uD83D\uDD11 '\"\\", String.class),
            new Value("bytea", Arrays.copyOf(bytes, 256), byte[].class),
            new Value("uuid", new UUID(1L << 63, 1), UUID.class),
            new Value("date", LocalDate.of(2024, 2, 29), LocalDate.class),
            new Value("timestamptz", OffsetDateTime.parse("2024-02-29T12:30:00.000001Z"),
                OffsetDateTime.class),
            new Value("jsonb::text", "{\"a\": [1, null]}", String.class),
            new Value("int4[]", new Integer[] {1, null, -3}, Array.class),
            new Value("text[]", new String[] {"a", "NULL", null, "{,}"}, Array.class),
            new Value("int4[]", new Integer[0], Array.class),
            new Value("text", null, String.class),
            new Value("bytea", bytes, byte[].class),
            new Value("text", "\u00e9".repeat(1 << 19), String.class));
    }

    static void valuesOfManyTypes() throws Exception {
        for (String property : List.of("prepareThreshold=5", "prepareThreshold=-1",
                "preferQueryMode=simple", "preferQueryMode=extendedForPrepared",
                "preferQueryMode=extendedCacheEverything")) {
            try (Connection c = connect(property)) {
                for (Value value : values()) {
                    String sql = "SELECT ?::" + value.type() + ", ?::text";
                    try (PreparedStatement statement = c.prepareStatement(sql)) {
                        if (value.given() == null) {
                            statement.setNull(1, Types.VARCHAR);
                        } else {
                            statement.setObject(1, value.given());
                        }
                        statement.setString(2, value.type());
                        ResultSet found = statement.executeQuery();
                        same(found.next(), true);
                        Object back = value.as() == Array.class
                            ? found.getArray(1) : found.getObject(1, value.as());
                        same(comparable(back), comparable(value.given()));
                        same(found.getString(2), value.type());
                    }
                }
            }
        }
    }

    static Object comparable(Object value) throws SQLException {
        if (value instanceof byte[] bytes) {
            return ByteBuffer.wrap(bytes);
        }
        if (value instanceof OffsetDateTime moment) {
            return moment.toInstant();
        }
        if (value instanceof Array array) {
            return comparable(array.getArray());
        }
        return value instanceof Object[] array ? Arrays.asList(array) : value;
    }

    static void transactions() throws Exception {
        try (Connection c = connect()) {
            run(c, "CREATE TABLE numbers (n int4 PRIMARY KEY, t text)");
            String insert = "INSERT INTO numbers VALUES (?, ?)";
            c.setAutoCommit(false);
            run(c, insert, 1, "one");
            c.commit();
            run(c, insert, 2, "two");
            refused("23505", () -> run(c, insert, 1, "twice"));
            refused("25P02", () -> run(c, insert, 3, "three"));
            c.rollback();
            same(ask(c, "SELECT n, t FROM numbers"), List.of(List.of(1, "one")));
            Savepoint savepoint = c.setSavepoint();
            refused("22012", () -> ask(c, "SELECT 1 / ?::int4", 0));
            c.rollback(savepoint);
            run(c, insert, 4, "four");
            c.commit();
            c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            c.setReadOnly(true);
            refused("25006", () -> run(c, insert, 5, "five"));
            c.rollback();
        }
        try (Connection c = connect("autosave=always")) {
            c.setAutoCommit(false);
            run(c, "INSERT INTO numbers VALUES (6, 'six')");
            refused("23505", () -> run(c, "INSERT INTO numbers VALUES (1, 'twice')"));
            run(c, "INSERT INTO numbers VALUES (7, 'seven')");
            c.commit();
            List<Object> held = ask(c, "SELECT array_agg(n ORDER BY n)::text FROM numbers");
            same(held, List.of(List.of("{1,4,6,7}")));
        }
    }

    static void rowsGoToWhomTheyBelong() throws Exception {
        try (Connection c = connect()) {
            run(c, "CREATE TABLE ledger (tag text, n int4)");
        }
        // That nobody keeps a server is shown by everyone's waiting for all others in between.
        CyclicBarrier all = new CyclicBarrier(CLIENTS);
        everyone(tag -> {
            for (String mode : List.of("extended", "simple", "extendedForPrepared")) {
                try (Connection c = connect("preferQueryMode=" + mode)) {
                    String many = "SELECT ?::text, generate_series(1, 50)";
                    String insert = "INSERT INTO ledger VALUES (?, ?)";
                    for (int n = 1; n <= ROUNDS; n++) {
                        same(ask(c, many, tag), own(tag, 50));
                        all.await(PATIENCE_S, TimeUnit.SECONDS);
                        c.setAutoCommit(false);
                        List<Object> backend = ask(c, "SELECT pg_backend_pid()");
                        run(c, insert, tag, n);
                        same(ask(c, "SELECT pg_backend_pid()"), backend);
                        c.commit();
                        run(c, insert, tag, -1);
                        refused("22012", () -> ask(c, "SELECT 1 / ?::int4", 0));
                        c.rollback();
                        c.setAutoCommit(true);
                    }
                    String left = "SELECT tag, n FROM ledger WHERE tag = ? ORDER BY n";
                    same(ask(c, left, tag), own(tag, ROUNDS));
                    run(c, "DELETE FROM ledger WHERE tag = ?", tag);
                }
            }
        });
    }

    /** A client's own rows: its tag, and the numbers from 1. */
    static List<Object> own(String tag, int count) {
        List<Object> rows = new ArrayList<>();
        for (int n = 1; n <= count; n++) {
            rows.add(List.of(tag, n));
        }
        return rows;
    }

    static void preparedStatements() throws Exception {
        everyone(tag -> {
            try (Connection c = connect()) {
                for (int n = 0; n < 5; n++) {
                    String sql = "SELECT ?::text, ?::int4 + " + n;
                    try (PreparedStatement statement = c.prepareStatement(sql)) {
                        for (int round = 0; round < ROUNDS; round++) {
                            List<Object> found = rows(bind(statement, tag, round).executeQuery());
                            same(found, List.of(List.of(tag, round + n)));
                        }
                    }
                }
                // Each is there once at most, however many clients have prepared it.
                String few = "SELECT count(*) <= 5 FROM pg_prepared_statements "
                    + "WHERE statement LIKE 'SELECT $1::text, $2::int4 + %'";
                same(ask(c, few), List.of(List.of(true)));
            }
        });
    }

    static void smallStatementCache() throws Exception {
        everyone(tag -> {
            String[] small = {"prepareThreshold=1", "preparedStatementCacheQueries=3"};
            try (Connection c = connect(small)) {
                for (int round = 0; round < ROUNDS; round++) {
                    for (int n = 0; n < 5; n++) {
                        List<Object> found = ask(c, "SELECT ?::text, ?::int4 + " + n, tag, round);
                        same(found, List.of(List.of(tag, round + n)));
                    }
                }
            }
        });
    }

    static void changedTables() throws Exception {
        try (Connection c = connect("prepareThreshold=1"); Connection other = connect()) {
            run(c, "CREATE TABLE changing (a int4)");
            run(c, "INSERT INTO changing VALUES (1)");
            for (int more = 0; more < 3; more++) {
                String sql = "SELECT * FROM changing";
                List<?> row = (List<?>) ask(c, sql).get(0);
                same(row.size(), 1 + more);
                String held = "SELECT count(*) FROM pg_prepared_statements WHERE statement = ?";
                same(ask(c, held, sql), List.of(List.of(1L)));
                run(other, "ALTER TABLE changing ADD COLUMN b" + more + " text");
            }
        }
    }

    static void batches() throws Exception {
        try (Connection c = connect()) {
            run(c, "CREATE TABLE batches (tag text, n int4, PRIMARY KEY (tag, n))");
        }
        everyone(tag -> {
            for (String rewrite : List.of("false", "true")) {
                try (Connection c = connect("reWriteBatchedInserts=" + rewrite)) {
                    run(c, "DELETE FROM batches WHERE tag = ?", tag);
                    c.setAutoCommit(false);
                    int[] counts = insert(c, tag, 1, 500);
                    same(counts.length, 500);
                    c.commit();
                    refused("23505", () -> insert(c, tag, 450, 550));
                    c.rollback();
                    String left = "SELECT tag, n FROM batches WHERE tag = ? ORDER BY n";
                    same(ask(c, left, tag), own(tag, 500));
                    c.commit();
                }
            }
        });
    }

    static int[] insert(Connection connection, String tag, int first, int last)
            throws SQLException {
        String insert = "INSERT INTO batches VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int n = first; n <= last; n++) {
                bind(statement, tag, n).addBatch();
            }
            return statement.executeBatch();
        }
    }

    static void cursors() throws Exception {
        everyone(tag -> {
            try (Connection c = connect()) {
                c.setAutoCommit(false);
                String sql = "SELECT ?::text, generate_series(1, 2000)";
                try (PreparedStatement one = c.prepareStatement(sql);
                        PreparedStatement other = c.prepareStatement(sql)) {
                    one.setFetchSize(50);
                    other.setFetchSize(70);
                    ResultSet first = bind(one, tag).executeQuery();
                    ResultSet second = bind(other, tag).executeQuery();
                    for (int n = 1; n <= 2000; n++) {
                        same(first.next(), true);
                        same(row(first), List.of(tag, n));
                        if (n <= 500) {
                            same(second.next(), true);
                            same(row(second), List.of(tag, n));
                        }
                    }
                    same(first.next(), false);
                }
                c.commit();
                same(ask(c, "SELECT ?::text", tag), List.of(List.of(tag)));
                c.commit();
            }
        });
    }

    static void copies() throws Exception {
        try (Connection c = connect()) {
            run(c, "CREATE TABLE copied (tag text, n int4)");
        }
        everyone(tag -> {
            StringBuilder lines = new StringBuilder();
            for (int n = 0; n < 2000; n++) {
                lines.append(tag).append('\t').append(n).append('\n');
            }
            try (Connection c = connect()) {
                CopyManager copies = c.unwrap(PGConnection.class).getCopyAPI();
                String in = "COPY copied FROM STDIN";
                same(copies.copyIn(in, new StringReader(lines.toString())), 2000L);
                refused("22P02", () -> copies.copyIn(in, new StringReader("x\tno number\n")));
                CopyIn given = copies.copyIn(in);
                byte[] line = lines.toString().getBytes(StandardCharsets.UTF_8);
                given.writeToCopy(line, 0, line.length);
                given.cancelCopy();
                StringWriter out = new StringWriter();
                String own = "SELECT * FROM copied WHERE tag = '" + tag + "' ORDER BY n";
                same(copies.copyOut("COPY (" + own + ") TO STDOUT", out), 2000L);
                same(out.toString(), lines.toString());
            }
        });
    }

    static void largeObjects() throws Exception {
        everyone(tag -> {
            try (Connection c = connect()) {
                c.setAutoCommit(false);
                LargeObjectManager objects = c.unwrap(PGConnection.class).getLargeObjectAPI();
                byte[] bytes = tag.repeat(10_000).getBytes(StandardCharsets.UTF_8);
                long id = objects.createLO();
                try (LargeObject object = objects.open(id, LargeObjectManager.WRITE)) {
                    object.write(bytes);
                }
                c.commit();
                try (LargeObject object = objects.open(id, LargeObjectManager.READ)) {
                    same(ByteBuffer.wrap(object.read(bytes.length)), ByteBuffer.wrap(bytes));
                }
                objects.delete(id);
                c.commit();
            }
        });
    }

    static void timeouts() throws Exception {
        everyone(tag -> {
            try (Connection c = connect()) {
                if (tag.length() % 2 == 0) {
                    for (int n = 0; n < 100; n++) {
                        List<Object> found = ask(c, "SELECT ?::text, ?::int4", tag, n);
                        same(found, List.of(List.of(tag, n)));
                    }
                    return;
                }
                for (int round = 0; round < 2; round++) {
                    try (Statement statement = c.createStatement()) {
                        statement.setQueryTimeout(1);
                        String sleep = "SELECT pg_sleep(600)";
                        refused("57014", () -> statement.execute(sleep));
                    }
                    same(ask(c, "SELECT ?::text", tag), List.of(List.of(tag)));
                }
            }
        });
    }

    static void cancels() throws Exception {
        String sleep = "SELECT pg_sleep(600)";
        String running = "SELECT count(*) FROM pg_stat_activity "
            + "WHERE state = 'active' AND query = ?";
        try (Connection c = connect(); Connection watcher = connect()) {
            ExecutorService thread = Executors.newSingleThreadExecutor();
            for (int round = 0; round < 5; round++) {
                try (Statement statement = c.createStatement()) {
                    Future<?> sleeping = thread.submit(() -> {
                        refused("57014", () -> statement.execute(sleep));
                        return null;
                    });
                    while (!ask(watcher, running, sleep).equals(List.of(List.of(1L)))) {
                        Thread.sleep(10);
                    }
                    statement.cancel();
                    sleeping.get(PATIENCE_S, TimeUnit.SECONDS);
                }
                same(ask(c, "SELECT 'after'"), List.of(List.of("after")));
            }
            thread.shutdown();
        }
    }

    static void settings() throws Exception {
        everyone(tag -> {
            String tenant = tag.replace(' ', '_');
            String[] own = {"ApplicationName=" + tag, "options=-c app.tenant=" + tenant,
                "currentSchema=pg_catalog"};
            try (Connection c = connect(own)) {
                for (int round = 0; round < ROUNDS; round++) {
                    List<Object> found = ask(c, "SELECT current_setting('application_name'), "
                        + "current_setting('app.tenant'), current_setting('search_path')");
                    same(found, List.of(List.of(tag, tenant, "pg_catalog")));
                }
            }
        });
    }

    static void sessionState() throws Exception {
        everyone(tag -> {
            try (Connection c = connect()) {
                String left = "SELECT coalesce(current_setting('app.tag', true), '')";
                same(ask(c, left), List.of(List.of("")));
                run(c, "SET app.tag = '" + tag + "'");
                run(c, "CREATE TEMP TABLE own AS SELECT '" + tag + "'::text AS tag");
                for (int round = 0; round < ROUNDS; round++) {
                    List<Object> own = ask(c, "SELECT current_setting('app.tag'), tag FROM own");
                    same(own, List.of(List.of(tag, tag)));
                }
            }
        });
    }

    static void notifications() throws Exception {
        try (Connection listener = connect()) {
            run(listener, "LISTEN news");
            TreeSet<String> expected = new TreeSet<>();
            everyone(tag -> {
                try (Connection c = connect()) {
                    ask(c, "SELECT pg_notify('news', ?)", tag);
                }
                synchronized (expected) {
                    expected.add("news " + tag);
                }
            });
            TreeSet<String> heard = new TreeSet<>();
            Instant end = Instant.now().plusSeconds(PATIENCE_S);
            while (heard.size() < CLIENTS && Instant.now().isBefore(end)) {
                PGConnection connection = listener.unwrap(PGConnection.class);
                for (PGNotification news : connection.getNotifications(PATIENCE_S * 1000)) {
                    heard.add(news.getName() + " " + news.getParameter());
                }
            }
            same(heard, expected);
            same(ask(listener, "SELECT 'after'"), List.of(List.of("after")));
        }
    }

    public static void main(String[] arguments) throws Exception {
        String shared = CLIENTS + " clients on " + System.getenv("SERVERS") + " servers";
        Map<String, Work> groups = new LinkedHashMap<>();
        groups.put("login with SCRAM", PgjdbcTest::login);
        groups.put("values of many types in each mode, 1 MB too", PgjdbcTest::valuesOfManyTypes);
        groups.put("transactions, errors, savepoints, autosave", PgjdbcTest::transactions);
        groups.put("rows go to whom they belong, " + shared, PgjdbcTest::rowsGoToWhomTheyBelong);
        groups.put("prepareThreshold, " + shared, PgjdbcTest::preparedStatements);
        groups.put("statement cache that is too small, " + shared,
            PgjdbcTest::smallStatementCache);
        groups.put("prepared statements of tables that change", PgjdbcTest::changedTables);
        groups.put("batches, rewritten or not, " + shared, PgjdbcTest::batches);
        groups.put("fetch sizes, " + shared, PgjdbcTest::cursors);
        groups.put("COPY, " + shared, PgjdbcTest::copies);
        groups.put("large objects by function calls, " + shared, PgjdbcTest::largeObjects);
        groups.put("query timeouts, " + shared, PgjdbcTest::timeouts);
        groups.put("cancel requests", PgjdbcTest::cancels);
        groups.put("settings of each client, " + shared, PgjdbcTest::settings);
        groups.put("session state, " + shared, PgjdbcTest::sessionState);
        groups.put("LISTEN and NOTIFY, " + shared, PgjdbcTest::notifications);

        // Whatever the locale.
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (Map.Entry<String, Work> group : groups.entrySet()) {
            out.print("pgjdbc: " + group.getKey() + " \u2026 ");
            out.flush();
            if (!passes(group.getValue())) {
                System.exit(1);
            }
            out.println("ok");
        }
        out.println("pgjdbc: all is well with pgjdbc " + DriverInfo.DRIVER_VERSION + ", Java "
            + System.getProperty("java.version"));
        System.exit(0);
    }

    static boolean passes(Work work) {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try {
            thread.submit(() -> {
                work.run();
                return null;
            }).get(PATIENCE_S, TimeUnit.SECONDS);
            thread.shutdown();
            return true;
        } catch (Exception error) {
            error.printStackTrace();
            return false;
        }
    }
}
