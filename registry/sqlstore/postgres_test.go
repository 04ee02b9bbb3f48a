package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// migrated is a database of the shared server that is ready for a store.
func migrated(t *testing.T) string { return sqlstoretest.Postgres(t) }

func execute(t *testing.T, driver, address, statement string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestR27_SchemaRange: a process refuses a database with an unknown schema and says what to run. It
// accepts a newer schema that still works with it.
func TestR27_SchemaRange(t *testing.T) {
	address := postgrestest.Shared(t).Schema(t)
	refused := func(have int64, advice string) {
		t.Helper()
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: address, MakeSchema: have > 0}) // which is for empty databases only
		if err == nil {
			s.Close()
		}
		var wrong *sqldb.SchemaError
		if !errors.As(err, &wrong) || wrong.Have != have || !strings.Contains(err.Error(), advice) {
			t.Errorf("error %v, want one of schema %d with %q", err, have, advice)
		}
	}
	refused(0, "run: holdfast migrate")

	// Several processes migrate at once; all of them find it done.
	var migrating sync.WaitGroup
	var did atomic.Int64
	for range 4 {
		migrating.Go(func() {
			from, to, err := sqldb.Migrate(t.Context(), address)
			if err != nil || to < 1 {
				t.Errorf("from %d to %d: %v", from, to, err)
			}
			if from == 0 {
				did.Add(1)
			}
		})
	}
	migrating.Wait()
	if did.Load() == 0 {
		t.Error("nobody found an empty database")
	}
	openURL(t, address, nil)

	// The schema of the version before lacks what this program reads.
	newest := schemaVersion(t, address)
	execute(t, "pgx", address, fmt.Sprintf(`DELETE FROM goose_db_version WHERE version_id = %d`, newest))
	refused(newest-1, "run: holdfast migrate")
	execute(t, "pgx", address, fmt.Sprintf(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)`, newest))

	execute(t, "pgx", address, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)`)
	openURL(t, address, nil)
	if _, to, err := sqldb.Migrate(t.Context(), address); err != nil || to != 99 {
		t.Errorf("a newer schema that serves us: at %d, %v", to, err)
	}
	execute(t, "pgx", address, `UPDATE setting SET value = '99' WHERE name = 'schema-serves'`)
	refused(99, "run a newer holdfast")
}

// schemaVersion returns the version of a database's schema.
func schemaVersion(t *testing.T, address string) int64 {
	t.Helper()
	_, to, err := sqldb.Migrate(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestR27_SQLite: the embedded database is migrated automatically, and refused if a newer program
// made it.
func TestR27_SQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	if err := openURL(t, "sqlite:"+path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, "sqlite", path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)`)
	execute(t, "sqlite", path, `UPDATE setting SET value = '99' WHERE name = 'schema-serves'`)
	_, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + path})
	var wrong *sqldb.SchemaError
	if !errors.As(err, &wrong) || wrong.Have != 99 {
		t.Errorf("error %v, want one of schema 99", err)
	}
}

func TestOpen_BadAddress(t *testing.T) {
	for _, address := range []string{"mysql://u:geheim@h/n", "postgres://u:geheim@h:x/n", "sqlite:", "geheim"} {
		_, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: address})
		if err == nil || strings.Contains(err.Error(), "u:geheim") {
			t.Errorf("%s: error %v", address, err)
		}
	}
}

// TestProcesses runs several stores, like several processes, on one database: each item is claimed
// by one at a time, and each step is done once.
func TestProcesses(t *testing.T) {
	address := migrated(t)
	c := newClock()
	first := openURL(t, address, c.now)
	if err := first.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	const batches, jobs, processes = 3, 10, 4
	for range batches {
		if _, err := first.Submit(t.Context(), registry.Submission{Collection: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	done := map[string]int{}
	work := func(s *sqlstore.Store, n int) {
		idle := 0
		for i := 0; idle < 40; i++ {
			worked := false
			for _, stage := range registry.Stages() {
				claim, err := s.Claim(t.Context(), registry.ClaimRequest{
					RequestID: fmt.Sprintf("%d-%d-%s", n, i, stage), Stage: stage, Worker: fmt.Sprintf("w%d", n), Lease: time.Minute,
				})
				var none *registry.NotClaimable
				if errors.As(err, &none) {
					continue
				} else if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				worked = true
				if stage == registry.Expand {
					rows := make([]registry.NewJob, jobs)
					for r := range rows {
						rows[r] = registry.NewJob{Line: int64(r + 1), Name: "job", Priority: 5}
					}
					if _, err := s.AddJobs(t.Context(), claim.Lease, rows); err != nil {
						t.Errorf("add jobs: %v", err)
					}
				}
				if _, err := s.Settle(t.Context(), registry.Settlement{Lease: claim.Lease, Outcome: registry.OutcomeDone}); err != nil {
					t.Errorf("settle: %v", err)
				}
				mu.Lock()
				done[claim.Item.ID+string(stage)]++
				mu.Unlock()
			}
			if idle++; worked {
				idle = 0
			}
		}
	}
	var working sync.WaitGroup
	for p := range processes {
		s := openURL(t, address, c.now)
		for w := range 2 {
			working.Go(func() { work(s, 10*p+w) })
		}
	}
	working.Wait()
	for step, n := range done {
		if n != 1 {
			t.Errorf("%s was done %d times", step, n)
		}
	}
	if want := batches*2 + batches*jobs*6; len(done) != want {
		t.Errorf("%d steps were done, want %d", len(done), want)
	}
	registrytest.CheckInvariants(t, first)
}

// TestR16_SweepAgainstRenew: an expired lease is either renewed or taken away, never both,
// whichever process is first.
func TestR16_SweepAgainstRenew(t *testing.T) {
	address := migrated(t)
	c := newClock()
	worker, sweeper := openURL(t, address, c.now), openURL(t, address, c.now)
	if err := worker.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	const lease = 30 * time.Second
	if _, err := sweeper.Sweep(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := worker.Submit(t.Context(), registry.Submission{Collection: "c"}); err != nil {
			t.Fatal(err)
		}
		claim, err := worker.Claim(t.Context(), registry.ClaimRequest{
			RequestID: fmt.Sprint(i), Stage: registry.Expand, Worker: "w", Lease: lease,
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // the sweep's own heart beats, or it would be quiet
			c.pass(lease / 3)
			if early, err := sweeper.Sweep(t.Context(), lease); err != nil || len(early) != 0 {
				t.Fatalf("took %v (%v) before the lease ran out", early, err)
			}
		}
		c.pass(time.Second)
		var both sync.WaitGroup
		var lost, renewed []registry.Lease
		both.Go(func() {
			var err error
			if lost, err = sweeper.Sweep(t.Context(), lease); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			answer, err := worker.Renew(t.Context(), registry.RenewRequest{Lease: 10 * lease, Beats: []registry.Beat{{Lease: claim.Lease}}})
			if err != nil {
				t.Error(err)
			}
			if len(answer.Lost) == 0 {
				renewed = append(renewed, claim.Lease)
			}
		})
		both.Wait()
		it, err := worker.Item(t.Context(), claim.Item.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(lost)+len(renewed) != 1 || (it.Status == registry.Running) != (len(renewed) == 1) {
			t.Fatalf("lost %v, renewed %v, item %s", lost, renewed, it.Status)
		}
		// The next round begins without it.
		if it.Status == registry.Running {
			if _, err := worker.Settle(t.Context(), registry.Settlement{Lease: claim.Lease, Outcome: registry.OutcomeFailed}); err != nil {
				t.Fatal(err)
			}
		} else {
			again, err := worker.Claim(t.Context(), registry.ClaimRequest{
				RequestID: fmt.Sprint(i, " again"), Stage: registry.Expand, Worker: "w", Lease: lease,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := worker.Settle(t.Context(), registry.Settlement{Lease: again.Lease, Outcome: registry.OutcomeFailed}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestServerKilled: acknowledged writes survive a kill of PostgreSQL under load, and the same store
// continues when PostgreSQL is back.
func TestServerKilled(t *testing.T) {
	server := postgrestest.Start(t)
	address := server.Schema(t)
	if _, _, err := sqldb.Migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	s := openURL(t, address, nil)
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	acknowledged := map[string]string{} // key -> id
	var outages atomic.Int64
	var load sync.WaitGroup
	for w := range 4 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("%d-%d", w, i)
				r, err := s.Submit(ctx, registry.Submission{Collection: "c", Name: key, IdempotencyKey: key})
				switch {
				case err == nil:
					mu.Lock()
					acknowledged[key] = r.BatchID
					mu.Unlock()
				case errors.Is(err, registry.ErrUnavailable):
					outages.Add(1)
					i-- // the same key again
				case ctx.Err() == nil:
					t.Errorf("an outage looks like %v", err)
					return
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(acknowledged) }
	await(t, func() bool { return count() > 50 })
	for range 2 {
		server.Kill()
		await(t, func() bool { return outages.Load() > 0 })
		server.Restart(t)
		outages.Store(0)
		before := count()
		await(t, func() bool { return count() > before+50 })
	}
	stop()
	load.Wait()
	ids := map[string]string{}
	for after := ""; ; {
		page, err := s.Items(t.Context(), registry.ItemQuery{After: after, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Rows {
			if ids[it.Name] != "" {
				t.Errorf("%s was made twice", it.Name)
			}
			ids[it.Name] = it.ID
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for key, id := range acknowledged {
		if ids[key] != id {
			t.Errorf("%s was acknowledged as %s and is %q", key, id, ids[key])
		}
	}
}

func await(t *testing.T, met func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !met() {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("it did not happen")
		}
	}
}

// TestR10_UnknownCommit: the connection breaks between a commit and its answer. The store asks the
// database for the outcome, so that a submission without a key is neither lost nor repeated.
func TestR10_UnknownCommit(t *testing.T) {
	direct := migrated(t)
	p := startProxy(t, direct)
	s := openURL(t, p.address(direct), nil)
	reader := openURL(t, direct, nil)
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	s.SetFault(func(query string) error {
		if query == "COMMIT" {
			p.swallow.Store(true)
		}
		return nil
	})
	_, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Name: "once"})
	if err != nil {
		t.Errorf("the commit happened, and yet: %v", err)
	}
	s.SetFault(nil)
	if p.swallowed.Load() != 1 {
		t.Fatalf("%d answers were swallowed, want 1", p.swallowed.Load())
	}
	page, err := reader.Items(t.Context(), registry.ItemQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Rows) != 1 {
		t.Errorf("%d batches, want 1", len(page.Rows))
	}
	if _, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Name: "next"}); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
}

// proxy stands between a store and its server, and can break a connection in place of the server's
// next answer.
type proxy struct {
	dir       string
	target    string
	swallow   atomic.Bool
	swallowed atomic.Int64
	running   sync.WaitGroup
}

func startProxy(t *testing.T, address string) *proxy {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{dir: t.TempDir(), target: filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")}
	l, err := net.Listen("unix", filepath.Join(p.dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.carry(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.running.Wait()
	})
	return p
}

func (p *proxy) address(direct string) string {
	u, _ := url.Parse(direct) // it was parsed before
	q := u.Query()
	q.Set("host", p.dir)
	u.RawQuery = q.Encode()
	return u.String()
}

func (p *proxy) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client) // either side may go first
		server.Close()
	})
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			break
		}
		if p.swallow.CompareAndSwap(true, false) {
			p.swallowed.Add(1)
			break
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			break
		}
	}
	client.Close()
	server.Close()
	up.Wait()
}

// TestRevokeToken_GivesBack: revoking a token frees its items on PostgreSQL, too, whose driver
// checks the types of parameters.
func TestRevokeToken_GivesBack(t *testing.T) {
	for name, address := range map[string]string{"PostgreSQL": migrated(t), "SQLite": sqlstoretest.SQLite(t)} {
		t.Run(name, func(t *testing.T) {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: address})
			must(err)
			defer s.Close()
			must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
			must(s.AddToken(t.Context(), registry.Token{ID: "t", Hash: "h", Name: "t", Role: registry.RoleWorker}))
			for i := range 3 {
				_, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
				must(err)
				_, err = s.Claim(t.Context(), registry.ClaimRequest{RequestID: fmt.Sprint(i), Stage: registry.Expand, Worker: "w", Lease: time.Hour, Token: "t"})
				must(err)
			}
			_, err = s.Renew(t.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w", Capacity: map[registry.Stage]int{registry.Expand: 1}}, Token: "t"})
			must(err)
			must(s.RevokeToken(t.Context(), "t", "admin"))
			page, err := s.Items(t.Context(), registry.ItemQuery{Status: registry.Pending})
			must(err)
			if len(page.Rows) != 3 {
				t.Errorf("%d of 3 items wait", len(page.Rows))
			}
			if alive, err := s.Workers(t.Context()); err != nil || len(alive) != 0 {
				t.Errorf("workers %+v (%v), want none", alive, err)
			}
		})
	}
}
