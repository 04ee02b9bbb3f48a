package process_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
)

// databases are those that the benchmarks compare. Their commits are durable.
var databases = []struct {
	name, driver string
	url          func(testing.TB) string
}{{"SQLite", "sqlite", sqlstoretest.SQLite}, {"PostgreSQL", "pgx", sqlstoretest.DurablePostgres}}

// benched opens a Registry and serves a namespace with a function, until the benchmark ends.
func benched[S any](b *testing.B, url string, fn process.Func[S]) *sqlstore.Store {
	b.Helper()
	s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	var m task.Mux
	process.Handle(&m, namespace, fn)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if err := s.AnnounceNamespaces(b.Context(), []registry.Namespace{{Name: namespace}}); err != nil {
		b.Fatal(err)
	}
	go func() { ended <- task.Serve(ctx, s, &m, task.Options{}) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		_ = s.Close()
	})
	return s
}

// parallel calls fn for the numbers below n by several callers, whose transactions are grouped.
func parallel(b *testing.B, callers, n int, fn func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// How many call at once, and how many import: as many as go into a transaction.
const (
	callers   = 64
	importers = sqldb.GroupWrites
)

// dueState is the state of a process of BenchmarkTimers.
type dueState struct {
	Due time.Time `json:"due"`
}

// BenchmarkTimers imports processes with timers that are due much later, and are only in the way; then
// others that are due one after the other, at a rate. It measures the time from when a timer is due
// to the start of its function. Run it with -benchtime 1x.
func BenchmarkTimers(b *testing.B) {
	const idle = 100_000
	for _, db := range databases {
		b.Run(db.name, func(b *testing.B) {
			var mu sync.Mutex
			var late []time.Duration
			fired := make(chan struct{}, idle)
			s := benched(b, db.url(b), func(_ context.Context, s *process.Step[dueState]) error {
				mu.Lock()
				late = append(late, time.Since(s.State.Due))
				mu.Unlock()
				fired <- struct{}{}
				return nil
			})
			put := func(name string, i int, due time.Time) error {
				state, err := json.Marshal(dueState{due})
				if err == nil {
					_, err = s.PutProcess(b.Context(), registry.PutProcess{
						ProcessKey: registry.ProcessKey{Namespace: namespace, ProcessID: fmt.Sprint(name, " ", i)}, State: state,
						Timer: &registry.ProcessTimer{Kind: registry.StepTimeout, At: due},
					})
				}
				return err
			}
			begun := time.Now()
			parallel(b, importers, idle, func(i int) error { return put("idle", i, time.Now().Add(24*time.Hour)) })
			b.Logf("imported %.0f processes/s", idle/time.Since(begun).Seconds())
			for _, of := range []struct {
				every time.Duration
				count int
			}{{10 * time.Millisecond, 1000}, {4 * time.Millisecond, 2000}, {time.Millisecond, 3000}} {
				b.Run(fmt.Sprint("every=", of.every), func(b *testing.B) {
					mu.Lock()
					late = nil
					mu.Unlock()
					first := time.Now().Add(time.Duration(of.count) * 5 * time.Millisecond) // by then all are imported
					parallel(b, importers, of.count, func(i int) error {
						return put(of.every.String()+b.Name()+first.String(), i, first.Add(time.Duration(i)*of.every))
					})
					if time.Now().After(first) {
						b.Fatal("the import took too long")
					}
					for range of.count {
						<-fired
					}
					took := time.Since(first)
					slices.Sort(late)
					b.ReportMetric(float64(late[of.count/2].Microseconds())/1000, "p50-ms")
					b.ReportMetric(float64(late[of.count*99/100].Microseconds())/1000, "p99-ms")
					b.ReportMetric(float64(late[of.count-1].Microseconds())/1000, "max-ms")
					b.ReportMetric(float64(of.count)/took.Seconds(), "fired/s")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// BenchmarkCalls calls 1,000 processes by 64 callers: from the call to its answer, with the step of a
// program in this process between. Beside it stands the floor: what the same database gives as many
// callers who write nothing but what a call must leave behind.
func BenchmarkCalls(b *testing.B) {
	const processes = 1000
	for _, db := range databases {
		b.Run(db.name, func(b *testing.B) {
			url := db.url(b)
			b.Run("floor", func(b *testing.B) {
				call := floor(b, db.driver, url, processes)
				b.ResetTimer()
				parallel(b, callers, b.N, func(i int) error { return call(i, i%processes) })
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
			for name, timer := range map[string]*registry.ProcessTimer{
				"calls": nil, "timers wait": {Kind: registry.StepTimeout, At: time.Now().Add(24 * time.Hour)}, // each call puts its process's timer off
			} {
				b.Run(name, func(b *testing.B) {
					s := benched(b, url, func(_ context.Context, s *process.Step[int]) error {
						s.State++
						s.Respond(s.State)
						return nil
					})
					of := func(i int) registry.ProcessKey {
						return registry.ProcessKey{Namespace: namespace, ProcessID: fmt.Sprint(name, b.N, " ", i)} // the function runs several times
					}
					parallel(b, importers, processes, func(i int) error {
						_, err := s.PutProcess(b.Context(), registry.PutProcess{ProcessKey: of(i), State: json.RawMessage(`0`), Timer: timer})
						return err
					})
					b.ResetTimer()
					parallel(b, callers, b.N, func(i int) error {
						a, err := s.CallProcess(b.Context(), registry.NewCall{ProcessKey: of(i % processes)})
						if err == nil {
							a, err = s.AwaitAnswer(b.Context(), a.ItemID)
						}
						if err == nil && a.Status != registry.Completed {
							err = fmt.Errorf("answer %+v", a)
						}
						return err
					})
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
				})
			}
		})
	}
}

// floor returns a function that makes a call of a process in three transactions, each of which is
// durable before the next begins: that there is the call, that it runs, and its answer with the new
// state of the process. On SQLite one of them is open at a time; PostgreSQL has a connection for each
// caller, and commits of several share a sync.
func floor(b *testing.B, driver, url string, processes int) (call func(id, process int) error) {
	b.Helper()
	connections := callers
	if path, is := strings.CutPrefix(url, "sqlite:"); is {
		url, connections = "file:"+path+".floor?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)", 1
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	begin := []string{
		`DROP TABLE IF EXISTS floor_call`, `CREATE TABLE floor_call (id BIGINT PRIMARY KEY, process BIGINT NOT NULL, status TEXT NOT NULL, answer TEXT NOT NULL)`,
		`DROP TABLE IF EXISTS floor_process`, `CREATE TABLE floor_process (id BIGINT PRIMARY KEY, state TEXT NOT NULL)`,
	}
	for i := range processes {
		begin = append(begin, fmt.Sprintf(`INSERT INTO floor_process (id, state) VALUES (%d, '')`, i))
	}
	for _, statement := range begin {
		if _, err := db.ExecContext(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	prepare := func(query string) *sql.Stmt {
		st, err := db.PrepareContext(b.Context(), query)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = st.Close() })
		return st
	}
	called := prepare(`INSERT INTO floor_call (id, process, status, answer) VALUES ($1, $2, 'pending', '')`)
	runs := prepare(`UPDATE floor_call SET status = 'running' WHERE id = $1`)
	answered := prepare(`UPDATE floor_call SET status = 'completed', answer = $2 WHERE id = $1`)
	changed := prepare(`UPDATE floor_process SET state = $2 WHERE id = $1`)
	return func(id, process int) error {
		if _, err := called.ExecContext(b.Context(), id, process); err != nil {
			return err
		}
		if _, err := runs.ExecContext(b.Context(), id); err != nil {
			return err
		}
		tx, err := db.BeginTx(b.Context(), nil)
		if err != nil {
			return err
		}
		// After a commit it does nothing.
		defer tx.Rollback()
		if _, err := tx.StmtContext(b.Context(), answered).ExecContext(b.Context(), id, fmt.Sprint(id)); err != nil { //nolint:sqlclosecheck // the end of tx closes it
			return err
		}
		if _, err := tx.StmtContext(b.Context(), changed).ExecContext(b.Context(), process, fmt.Sprint(id)); err != nil { //nolint:sqlclosecheck // the end of tx closes it
			return err
		}
		return tx.Commit()
	}
}
