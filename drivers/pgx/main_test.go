// Package pgx is pgx through pgweir, where many clients share a few servers.
//
// The way to pgweir is in the environment (PGHOST, ...), and SERVERS says how many servers it has.
// A client that has a temporary table or a session's lock keeps its server until that is gone:
// where more of them come than there are servers, they wait for each other.
package pgx

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	clients  = 20
	rounds   = 10
	patience = 3 * time.Minute
)

// What can be set about a client.
type option = func(*pgx.ConnConfig)

// The default, in which clients prepare statements by name, and all the others.
var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement,
	pgx.QueryExecModeCacheDescribe,
	pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec,
	pgx.QueryExecModeSimpleProtocol,
}

func inMode(mode pgx.QueryExecMode) option {
	return func(config *pgx.ConnConfig) { config.DefaultQueryExecMode = mode }
}

// A client of one test, which an error that is not expected ends.
type client struct {
	*pgx.Conn
	t *testing.T
}

func connect(t *testing.T, options ...option) client {
	t.Helper()
	config, err := pgx.ParseConfig("")
	noError(t, err)
	for _, option := range options {
		option(config)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	noError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return client{conn, t}
}

func (c client) exec(sql string, arguments ...any) {
	c.t.Helper()
	_, err := c.Exec(c.t.Context(), sql, arguments...)
	noError(c.t, err)
}

func (c client) ask(sql string, arguments ...any) [][]any {
	c.t.Helper()
	rows, err := c.Query(c.t.Context(), sql, arguments...)
	noError(c.t, err)
	return all(c.t, rows)
}

func (c client) fails(code, sql string, arguments ...any) {
	c.t.Helper()
	rows, err := c.Query(c.t.Context(), sql, arguments...)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	isError(c.t, err, code)
}

func all(t *testing.T, rows pgx.Rows) [][]any {
	t.Helper()
	values, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) {
		return row.Values()
	})
	noError(t, err)
	return values
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isError(t *testing.T, err error, code string) {
	t.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("%v instead of %s", err, code)
	}
}

func same(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("found %.200v instead of %.200v", found, expected)
	}
}

func until(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// All clients at once, each with a tag of its own.
func everyone(t *testing.T, work func(t *testing.T, tag string)) {
	t.Run("everyone", func(t *testing.T) {
		for n := range clients {
			tag := fmt.Sprintf("client %d", n)
			t.Run(tag, func(t *testing.T) {
				t.Parallel()
				work(t, tag)
			})
		}
	})
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Clients are waited for by each other, however few processors there are.
	if err := flag.Set("test.parallel", strconv.Itoa(clients)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestDriver(t *testing.T) {
	shared := fmt.Sprintf("%d clients on %s servers", clients, os.Getenv("SERVERS"))
	for _, group := range []struct {
		name  string
		check func(*testing.T)
	}{
		{"login with SCRAM, protocols 3.0 and 3.2", login},
		{"values of many types in each mode, 1 MB too", values},
		{"transactions, errors, savepoints", transactions},
		{"rows go to whom they belong, " + shared, rows},
		{"statement cache, " + shared, statementCache},
		{"statement cache that is too small, " + shared, smallStatementCache},
		{"cached statements of tables that change", changedTables},
		{"batches in each mode, " + shared, batches},
		{"pipelines with errors in them, " + shared, pipelines},
		{"rows that are read one by one, or not to their end, " + shared, streams},
		{"COPY, " + shared, copies},
		{"contexts that end, and their connections with them", deadlines},
		{"contexts that end, and cancel, " + shared, cancels},
		{"settings of each client, " + shared, settings},
		{"session state, " + shared, sessionState},
		{"pools, " + shared, pools},
		{"LISTEN and NOTIFY, " + shared, notifications},
	} {
		fmt.Printf("pgx: %s … ", group.name)
		if !t.Run(group.name, group.check) {
			t.FailNow()
		}
		fmt.Println("ok")
	}
	fmt.Printf("pgx: all is well with pgx %s, %s\n", version(t), runtime.Version())
}

func login(t *testing.T) {
	for _, protocol := range []string{"3.0", "3.2"} {
		newest := func(config *pgx.ConnConfig) { config.MaxProtocolVersion = protocol }
		c := connect(t, newest)
		same(t, c.ask("SELECT current_user::text"), [][]any{{os.Getenv("PGUSER")}})
	}
	config, err := pgx.ParseConfig("")
	noError(t, err)
	config.Password = "not it"
	_, err = pgx.ConnectConfig(t.Context(), config)
	isError(t, err, "28P01")
}

func values(t *testing.T) {
	one, third := int32(1), int32(-3)
	octets := make([]byte, 256)
	for n := range octets {
		octets[n] = byte(n)
	}
	for _, mode := range modes {
		c := connect(t, inMode(mode), func(config *pgx.ConnConfig) {
			config.RuntimeParams["TimeZone"] = "UTC"
		})
		for _, each := range []struct {
			kind  string
			value any
		}{
			{"int2", int16(-1 << 15)},
			{"int8", int64(1<<63 - 1)},
			{"float8", 1.0 / 3},
			{"numeric::text", "12345678901234567890.000100"},
			{"bool", true},
			{"text", "\u00e4\U0001f511 '\"\\"},
			{"bytea", octets},
			{"date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
			{"timestamptz", time.Date(2024, 2, 29, 12, 30, 0, 1000, time.UTC)},
			{"jsonb::text", `{"a": [1, null]}`},
			{"int4[]", []*int32{&one, nil, &third}},
			{"text[]", []string{"a", "NULL", "{,}"}},
			{"int4[]", []int32{}},
			{"text", (*string)(nil)},
			{"bytea", bytes.Repeat(octets, 4096)},
			{"text", strings.Repeat("\u00e9", 1<<19)},
		} {
			found := reflect.New(reflect.TypeOf(each.value))
			var kind string
			query := fmt.Sprintf("SELECT $1::%s, $2::text", each.kind)
			row := c.QueryRow(t.Context(), query, each.value, each.kind)
			noError(t, row.Scan(found.Interface(), &kind))
			value := found.Elem().Interface()
			if moment, ok := value.(time.Time); ok {
				value = moment.UTC()
			}
			same(t, []any{value, kind}, []any{each.value, each.kind})
		}
	}
}

func transactions(t *testing.T) {
	c := connect(t)
	c.exec("CREATE TABLE numbers (n int4 PRIMARY KEY, t text)")
	within := func(parent interface {
		Begin(context.Context) (pgx.Tx, error)
	}, work func(tx pgx.Tx) error) error {
		return pgx.BeginFunc(t.Context(), parent, work)
	}
	insert := func(tx pgx.Tx, n int, text string) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO numbers VALUES ($1, $2)", n, text)
		return err
	}

	noError(t, within(c, func(tx pgx.Tx) error { return insert(tx, 1, "one") }))
	isError(t, within(c, func(tx pgx.Tx) error {
		noError(t, insert(tx, 2, "two"))
		err := insert(tx, 1, "twice")
		isError(t, insert(tx, 3, "three"), "25P02")
		return err
	}), "23505")
	same(t, c.ask("SELECT n, t FROM numbers"), [][]any{{int32(1), "one"}})

	noError(t, within(c, func(tx pgx.Tx) error {
		noError(t, insert(tx, 4, "four"))
		// A transaction within a transaction is a savepoint.
		isError(t, within(tx, func(tx pgx.Tx) error {
			noError(t, insert(tx, 5, "five"))
			_, err := tx.Exec(t.Context(), "SELECT 1 / $1::int4", 0)
			return err
		}), "22012")
		return insert(tx, 6, "six")
	}))
	tx, err := c.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	noError(t, err)
	isError(t, insert(tx, 7, "seven"), "25006")
	noError(t, tx.Rollback(t.Context()))
	found := c.ask("SELECT n FROM numbers ORDER BY n")
	same(t, found, [][]any{{int32(1)}, {int32(4)}, {int32(6)}})
}

func rows(t *testing.T) {
	connect(t).exec("CREATE TABLE ledger (tag text, n int4)")
	// That nobody keeps a server is shown by everyone's waiting for all others in between.
	all := make([]sync.WaitGroup, len(modes))
	for number := range all {
		all[number].Add(clients)
	}
	everyone(t, func(t *testing.T, tag string) {
		for number, mode := range modes {
			c := connect(t, inMode(mode))
			insert := "INSERT INTO ledger VALUES ($1, $2)"
			for n := number * rounds; n < (number+1)*rounds; n++ {
				own(t, tag, 50, c.ask("SELECT $1::text, generate_series(1, 50)", tag))
				c.exec("BEGIN")
				backend := c.ask("SELECT pg_backend_pid()")
				c.exec(insert, tag, n)
				same(t, c.ask("SELECT pg_backend_pid()"), backend)
				c.exec("COMMIT")
				c.exec("BEGIN")
				c.exec(insert, tag, -1)
				c.fails("22012", "SELECT 1 / $1::int4", 0)
				c.exec("ROLLBACK")
			}
			meet(t, &all[number])
			query := "SELECT tag, n + 1 FROM ledger WHERE tag = $1 ORDER BY n"
			own(t, tag, (number+1)*rounds, c.ask(query, tag))
		}
	})
}

// Waits until all of a group are here.
func meet(t *testing.T, all *sync.WaitGroup) {
	t.Helper()
	all.Done()
	met := make(chan struct{})
	go func() {
		all.Wait()
		close(met)
	}()
	select {
	case <-met:
	case <-time.After(patience):
		t.Fatal("waited in vain for the others")
	}
}

// All rows are a client's own: its tag, and the numbers from 1.
func own(t *testing.T, tag string, count int, found [][]any) {
	t.Helper()
	expected := make([][]any, count)
	for n := range expected {
		expected[n] = []any{tag, int32(n + 1)}
	}
	same(t, found, expected)
}

func statementCache(t *testing.T) {
	fiveStatements(t, func(config *pgx.ConnConfig) {})
}

func smallStatementCache(t *testing.T) {
	fiveStatements(t, func(config *pgx.ConnConfig) { config.StatementCacheCapacity = 3 })
}

func fiveStatements(t *testing.T, configure func(*pgx.ConnConfig)) {
	everyone(t, func(t *testing.T, tag string) {
		c := connect(t, configure)
		for round := range rounds {
			for n := range 5 {
				found := c.ask(fmt.Sprintf("SELECT $1::text, $2::int4 + %d", n), tag, round)
				same(t, found, [][]any{{tag, int32(round + n)}})
			}
		}
		// Each is there once at most, however many clients have prepared it.
		held := c.ask("SELECT count(*) <= 5 FROM pg_prepared_statements " +
			"WHERE statement LIKE 'SELECT $1::text, $2::int4 + %'")
		same(t, held, [][]any{{true}})
	})
}

func changedTables(t *testing.T) {
	c, other := connect(t), connect(t)
	c.exec("CREATE TABLE changing (a int4)")
	c.exec("INSERT INTO changing VALUES (1)")
	for more := range 3 {
		if more > 0 {
			// pgx forgets a statement that fails like this, and leaves another try to its user.
			c.fails("0A000", "SELECT * FROM changing")
		}
		same(t, len(c.ask("SELECT * FROM changing")[0]), 1+more)
		other.exec(fmt.Sprintf("ALTER TABLE changing ADD COLUMN b%d text", more))
	}
}

func batches(t *testing.T) {
	connect(t).exec("CREATE TABLE batches (tag text, n int4, PRIMARY KEY (tag, n))")
	everyone(t, func(t *testing.T, tag string) {
		for _, mode := range modes {
			c := connect(t, inMode(mode))
			c.exec("DELETE FROM batches WHERE tag = $1", tag)
			good, bad := &pgx.Batch{}, &pgx.Batch{}
			for n := range 100 {
				good.Queue("INSERT INTO batches VALUES ($1, $2)", tag, n+1)
				good.Queue("SELECT $1::text, $2::int4", tag, n).Query(func(rows pgx.Rows) error {
					same(t, all(t, rows), [][]any{{tag, int32(n)}})
					return nil
				})
				bad.Queue("INSERT INTO batches VALUES ($1, $2)", tag, 150-n)
			}
			noError(t, c.SendBatch(t.Context(), good).Close())
			isError(t, c.SendBatch(t.Context(), bad).Close(), "23505")
			found := c.ask("SELECT tag, n FROM batches WHERE tag = $1 ORDER BY n", tag)
			own(t, tag, 100, found)
			noError(t, c.Close(t.Context()))
		}
	})
}

func pipelines(t *testing.T) {
	everyone(t, func(t *testing.T, tag string) {
		c := connect(t)
		for range rounds {
			pipeline := c.PgConn().StartPipeline(t.Context())
			for n := range 30 {
				query := fmt.Sprintf("SELECT $1::text, %d / (%d %% 10)", n, n)
				pipeline.SendQueryParams(query, [][]byte{[]byte(tag)}, nil, nil, nil)
				noError(t, pipeline.Sync())
			}
			for n := range 30 {
				result, err := pipeline.GetResults()
				if n%10 == 0 {
					isError(t, err, "22012")
				} else {
					noError(t, err)
					read := result.(*pgconn.ResultReader).Read()
					noError(t, read.Err)
					row := string(bytes.Join(read.Rows[0], []byte(" ")))
					same(t, row, fmt.Sprint(tag, " ", n/(n%10)))
				}
				synced, err := pipeline.GetResults()
				noError(t, err)
				same(t, synced, &pgconn.PipelineSync{})
			}
			noError(t, pipeline.Close())
		}
	})
}

func streams(t *testing.T) {
	everyone(t, func(t *testing.T, tag string) {
		c := connect(t)
		for _, wanted := range []int{10_000, 10, 0} {
			query := "SELECT $1::text, generate_series(1, 10000)"
			rows, err := c.Query(t.Context(), query, tag)
			noError(t, err)
			for n := 0; n < wanted && rows.Next(); n++ {
				values, err := rows.Values()
				noError(t, err)
				same(t, values, []any{tag, int32(n + 1)})
			}
			rows.Close()
			noError(t, rows.Err())
			same(t, rows.CommandTag().String(), "SELECT 10000")
			same(t, c.ask("SELECT $1::text", tag), [][]any{{tag}})
		}
	})
}

// Gives some data, and then an error.
type broken struct{ *strings.Reader }

func (b broken) Read(into []byte) (int, error) {
	if b.Len() == 0 {
		return 0, errors.New("enough")
	}
	return b.Reader.Read(into)
}

func copies(t *testing.T) {
	connect(t).exec("CREATE TABLE copied (tag text, n int4 UNIQUE, data bytea)")
	everyone(t, func(t *testing.T, tag string) {
		number, err := strconv.Atoi(strings.TrimPrefix(tag, "client "))
		noError(t, err)
		c := connect(t)
		table, columns := pgx.Identifier{"copied"}, []string{"tag", "n", "data"}
		row := func(n int) ([]any, error) {
			return []any{tag, n + 10_000*number, []byte(nil)}, nil
		}
		count, err := c.CopyFrom(t.Context(), table, columns, pgx.CopyFromSlice(2000, row))
		noError(t, err)
		same(t, count, int64(2000))
		_, err = c.CopyFrom(t.Context(), table, columns, pgx.CopyFromSlice(1, row))
		isError(t, err, "23505")
		lines := ""
		for n := range 2000 {
			lines += fmt.Sprintf("%s\t%d\t\\N\n", tag, n+10_000*number)
		}
		var out bytes.Buffer
		query := "COPY (SELECT * FROM copied WHERE tag = '%s' ORDER BY n) TO STDOUT"
		_, err = c.PgConn().CopyTo(t.Context(), &out, fmt.Sprintf(query, tag))
		noError(t, err)
		same(t, out.String(), lines)
		from := broken{strings.NewReader(lines)}
		_, err = c.PgConn().CopyFrom(t.Context(), from, "COPY copied FROM STDIN")
		same(t, err != nil, true)
		held := c.ask("SELECT count(*) FROM copied WHERE tag = $1", tag)
		same(t, held, [][]any{{int64(2000)}})
	})
}

func deadlines(t *testing.T) {
	watcher := connect(t)
	running := "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1"
	sleep := "SELECT pg_sleep(600)"
	for range 3 {
		c := connect(t)
		late, end := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := c.Exec(late, sleep)
		end()
		same(t, errors.Is(err, context.DeadlineExceeded), true)
		same(t, c.IsClosed(), true)
		// What nobody waits for was cancelled too.
		until(t, func() bool { return watcher.ask(running, sleep)[0][0] == int64(0) })
		same(t, connect(t).ask("SELECT 'after'"), [][]any{{"after"}})
	}
}

func cancels(t *testing.T) {
	cancelling := func(config *pgx.ConnConfig) {
		config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: patience}
		}
	}
	everyone(t, func(t *testing.T, tag string) {
		c := connect(t, cancelling)
		if len(tag)%2 == 0 {
			for n := range 100 {
				same(t, c.ask("SELECT $1::text, $2::int4", tag, n), [][]any{{tag, int32(n)}})
			}
			return
		}
		for range 3 {
			late, end := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := c.Exec(late, "SELECT pg_sleep(600)")
			end()
			isError(t, err, "57014")
			same(t, c.ask("SELECT $1::text", tag), [][]any{{tag}})
		}
	})
}

func settings(t *testing.T) {
	zones := []string{"Asia/Tokyo", "America/Lima", "UTC"}
	everyone(t, func(t *testing.T, tag string) {
		zone := zones[tag[len(tag)-1]%3]
		c := connect(t, func(config *pgx.ConnConfig) {
			config.RuntimeParams["application_name"] = tag
			config.RuntimeParams["TimeZone"] = zone
		})
		for range rounds {
			query := "SELECT current_setting('application_name'), current_setting('TimeZone')"
			same(t, c.ask(query), [][]any{{tag, zone}})
		}
		same(t, c.PgConn().ParameterStatus("application_name"), tag)
		same(t, c.PgConn().ParameterStatus("TimeZone"), zone)
	})
}

func sessionState(t *testing.T) {
	everyone(t, func(t *testing.T, tag string) {
		c := connect(t)
		same(t, c.ask("SELECT coalesce(current_setting('app.tag', true), '')"), [][]any{{""}})
		c.exec(fmt.Sprintf("SET app.tag = '%s'", tag))
		c.exec(fmt.Sprintf("CREATE TEMP TABLE own AS SELECT '%s' AS tag", tag))
		for range rounds {
			found := c.ask("SELECT current_setting('app.tag'), tag FROM own")
			same(t, found, [][]any{{tag, tag}})
		}
	})
}

func pools(t *testing.T) {
	for _, mode := range modes {
		config, err := pgxpool.ParseConfig("")
		noError(t, err)
		config.MaxConns = clients
		config.ConnConfig.DefaultQueryExecMode = mode
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		noError(t, err)
		everyone(t, func(t *testing.T, tag string) {
			for n := range rounds {
				rows, err := pool.Query(t.Context(), "SELECT $1::text, $2::int4", tag, n)
				noError(t, err)
				same(t, all(t, rows), [][]any{{tag, int32(n)}})
				noError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					rows, err := tx.Query(t.Context(), "SELECT $1::text", tag)
					noError(t, err)
					same(t, all(t, rows), [][]any{{tag}})
					return nil
				}))
			}
		})
		pool.Close()
	}
}

func notifications(t *testing.T) {
	listener := connect(t)
	listener.exec("LISTEN news")
	expected := map[string]bool{}
	var writing sync.Mutex
	everyone(t, func(t *testing.T, tag string) {
		connect(t).exec("SELECT pg_notify('news', $1)", tag)
		writing.Lock()
		defer writing.Unlock()
		expected["news "+tag] = true
	})
	heard := map[string]bool{}
	for range clients {
		notification, err := listener.WaitForNotification(t.Context())
		noError(t, err)
		heard[notification.Channel+" "+notification.Payload] = true
	}
	same(t, heard, expected)
	same(t, listener.ask("SELECT 'after'"), [][]any{{"after"}})
}

// The version of pgx that go.mod asks for.
func version(t *testing.T) string {
	manifest, err := os.ReadFile("go.mod")
	noError(t, err)
	_, rest, _ := strings.Cut(string(manifest), "github.com/jackc/pgx/v5 ")
	found, _, _ := strings.Cut(rest, "\n")
	return found
}
