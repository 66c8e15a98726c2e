import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.CompletionService;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import org.flywaydb.core.Flyway;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.postgresql.util.DriverInfo;

/**
 * Hibernate on pgjdbc, which prepares each statement when it first comes, with Flyway's migrations
 * under a session lock.
 *
 * <p>The way to PostgreSQL, or to pgweir, is in the environment (PGHOST, ...). Each worker has a
 * connection of its own all the time.
 */
public final class HibernateTest {
    static final int WORKERS = 8;
    static final int ROUNDS = 40;
    static final int PATIENCE_S = 180;

    @Entity(name = "Note")
    @Table(name = "notes")
    public static class Note {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "notes_seq")
        @SequenceGenerator(name = "notes_seq", allocationSize = 50)
        public Long id;

        @Version public int version;
        public String owner;
        public String text;
        public Instant created = Instant.ofEpochSecond(1_700_000_000);
    }

    @Entity(name = "Counter")
    @Table(name = "counter")
    public static class Counter {
        @Id public Integer id;
        public int value;
    }

    static String url() {
        String place = System.getenv("PGHOST") + ":" + System.getenv("PGPORT");
        return "jdbc:postgresql://" + place + "/" + System.getenv("PGDATABASE");
    }

    static SessionFactory hibernate() {
        return new Configuration()
                .addAnnotatedClass(Note.class)
                .addAnnotatedClass(Counter.class)
                .setProperty("hibernate.connection.url", url() + "?prepareThreshold=1")
                .setProperty("hibernate.connection.username", System.getenv("PGUSER"))
                .setProperty("hibernate.connection.password", System.getenv("PGPASSWORD"))
                .setProperty("hibernate.hikari.maximumPoolSize", String.valueOf(WORKERS))
                .setProperty("hibernate.hbm2ddl.auto", "validate")
                .buildSessionFactory();
    }

    /** How many migrations were applied. */
    static int migrate(String target) {
        return Flyway.configure()
                .dataSource(url(), System.getenv("PGUSER"), System.getenv("PGPASSWORD"))
                .locations("filesystem:drivers/hibernate/migrations")
                .target(target)
                // Without this Flyway's lock belongs to a transaction, for which the index made
                // concurrently would wait for ever.
                .configuration(Map.of("flyway.postgresql.transactional.lock", "false"))
                .load()
                .migrate()
                .migrationsExecuted;
    }

    /** What many do at once. The first that fails ends all of them. */
    static <T> List<T> atOnce(int many, Part<T> part) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(many);
        try {
            CompletionService<T> parts = new ExecutorCompletionService<>(threads);
            for (int n = 0; n < many; n++) {
                int number = n;
                parts.submit(() -> part.run(number));
            }
            List<T> results = new ArrayList<>();
            for (int n = 0; n < many; n++) {
                results.add(parts.take().get());
            }
            return results;
        } finally {
            threads.shutdownNow();
        }
    }

    interface Part<T> {
        T run(int number) throws Exception;
    }

    static void check(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError(found + " and not " + expected);
        }
    }

    static String owner(int worker) {
        return "worker " + worker;
    }

    static void round(Session session, String owner, int number) {
        session.beginTransaction();
        Long id = write(session, owner, number);
        session.getTransaction().commit();
        session.clear();
        session.beginTransaction();
        read(session, owner, id, number);
        session.getTransaction().commit();
        session.beginTransaction();
        session.createMutationQuery("delete Note where owner = :owner")
                .setParameter("owner", owner)
                .executeUpdate();
        check(texts(session, owner), List.of());
        session.getTransaction().rollback();
        session.clear();
    }

    static Long write(Session session, String owner, int number) {
        Note note = new Note();
        note.owner = owner;
        note.text = String.valueOf(number);
        session.persist(note);
        session.flush();
        session.refresh(note);
        check(note.owner, owner);
        note.text += ", updated";
        Counter counter = session.find(Counter.class, 1, LockModeType.PESSIMISTIC_WRITE);
        counter.value += 1;
        return note.id;
    }

    static void read(Session session, String owner, Long id, int number) {
        Note note = session.find(Note.class, id);
        check(note.version, 1);
        check(note.created, new Note().created);
        check(texts(session, owner), IntStream.rangeClosed(0, number)
                .mapToObj(n -> owner + ": " + n + ", updated")
                .toList());
    }

    /** By a portal, piece by piece. */
    static List<String> texts(Session session, String owner) {
        try (Stream<Note> notes = session
                .createSelectionQuery("from Note where owner = :owner order by id", Note.class)
                .setParameter("owner", owner)
                .setFetchSize(7)
                .getResultStream()) {
            return notes.map(note -> note.owner + ": " + note.text).toList();
        }
    }

    /**
     * One of the workers adds a column. Each has prepared its statements before, and uses them once
     * more behind that.
     */
    static Void work(SessionFactory hibernate, int worker, CyclicBarrier allAreThere)
            throws Exception {
        try (Session session = hibernate.openSession()) {
            // This connection is the session's until it is closed.
            session.doWork(connection -> check(connection.isValid(PATIENCE_S), true));
            allAreThere.await();
            for (int number = 0; number < ROUNDS; number++) {
                if (number == ROUNDS / 2 && worker == 0) {
                    check(migrate("3"), 1);
                }
                if (number == ROUNDS - 1) {
                    allAreThere.await();
                }
                round(session, owner(worker), number);
            }
        }
        return null;
    }

    static long lookAtAll(Session session) {
        check(session.find(Counter.class, 1).value, WORKERS * ROUNDS);
        String stars = "select owner, sum(stars) from notes group by owner";
        Map<String, Long> found = session.createNativeQuery(stars, Object[].class)
                .getResultStream()
                .collect(Collectors.toMap(row -> (String) row[0], row -> (Long) row[1]));
        Map<String, Long> expected = IntStream.range(0, WORKERS)
                .boxed()
                .collect(Collectors.toMap(HibernateTest::owner, n -> (long) ROUNDS));
        check(new TreeMap<>(found), new TreeMap<>(expected));
        return session.createSelectionQuery("select count(*) from Note", Long.class)
                .getSingleResult();
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.WARNING);
        // Two at once, and each migration is applied by one of them.
        List<Integer> applied = atOnce(2, n -> migrate("2"));
        check(applied.get(0) + applied.get(1), 2);
        long notes;
        try (SessionFactory hibernate = hibernate()) {
            CyclicBarrier allAreThere = new CyclicBarrier(WORKERS);
            atOnce(WORKERS, n -> work(hibernate, n, allAreThere));
            notes = hibernate.fromSession(HibernateTest::lookAtAll);
        }
        System.out.println("hibernate: all is well with Hibernate "
                + org.hibernate.Version.getVersionString() + ", pgjdbc " + DriverInfo.DRIVER_VERSION
                + ": 3 migrations, " + WORKERS + " workers, " + notes + " notes");
    }
}
