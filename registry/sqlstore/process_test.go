package sqlstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// processLife is a process that goes through every write there is.
type processLife struct {
	s      *sqlstore.Store
	claims int
	lease  registry.Lease
}

var lifeKey = registry.ProcessKey{Namespace: "test", ProcessID: "a"}

// script returns the writes in their order. A step runs between each two settlements.
func (l *processLife) script() []call {
	op := func(name string, run func(ctx context.Context) error) call { return call{name: name, run: run} }
	ask := func(args string) registry.NewCall {
		return registry.NewCall{ProcessKey: lifeKey, Args: json.RawMessage(args), IdempotencyKey: "k" + args}
	}
	act := registry.ProcessAct{ProcessKey: lifeKey, Actor: "admin"}
	soon := registry.StepThen{Do: registry.ThenContinue}
	return []call{
		op("announce", func(ctx context.Context) error {
			return l.s.AnnounceNamespaces(ctx, []registry.Namespace{{Name: "test"}})
		}),
		op("init", func(ctx context.Context) error {
			_, err := l.s.InitProcess(ctx, registry.NewProcess{ProcessKey: lifeKey, IdempotencyKey: "init"})
			return err
		}),
		op("claim init", l.claim),
		op("end init", l.ends(registry.StepThen{Do: registry.ThenContinue, At: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)})),
		op("call", func(ctx context.Context) error { _, err := l.s.CallProcess(ctx, ask("1")); return err }),
		op("claim call", l.claim),
		op("call again", func(ctx context.Context) error { _, err := l.s.CallProcess(ctx, ask("2")); return err }),
		op("end call", l.ends(soon)), // a new timer, behind the call that waits
		op("claim second call", l.claim),
		op("end second call", l.ends(registry.StepThen{})),
		op("claim timer", l.claim),
		op("timer fails", l.fails),
		op("repair", func(ctx context.Context) error { _, err := l.s.RepairProcess(ctx, ask("3")); return err }),
		op("claim repair", l.claim),
		op("end repair", l.ends(registry.StepThen{})), // which starts the timer again
		op("claim repaired timer", l.claim),
		op("timer fails again", l.fails),
		op("retry", func(ctx context.Context) error { _, err := l.s.RetryProcess(ctx, act); return err }),
		op("claim retried timer", l.claim),
		op("end retried timer", l.ends(registry.StepThen{Do: registry.ThenSuspend})),
		op("call for the end", func(ctx context.Context) error { _, err := l.s.CallProcess(ctx, ask("4")); return err }),
		op("claim last call", l.claim),
		op("end last call", l.ends(registry.StepThen{Do: registry.ThenDone})),
		op("remove", func(ctx context.Context) error { return l.s.RemoveProcess(ctx, act) }),
		op("import", func(ctx context.Context) error {
			_, err := l.s.PutProcess(ctx, registry.PutProcess{
				ProcessKey: lifeKey, History: []registry.ProcessEvent{{Payload: json.RawMessage(`1`)}}, Timer: &registry.ProcessTimer{Kind: registry.StepRemove},
			})
			return err
		}),
		op("claim removal", l.claim),
		op("end removal", l.ends(registry.StepThen{})),
	}
}

func (l *processLife) claim(ctx context.Context) error {
	c, err := l.s.Claim(ctx, registry.ClaimRequest{
		RequestID: fmt.Sprint(l.claims), Stage: "step:test", Worker: "w", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour,
	})
	if err == nil {
		l.lease = c.Lease
		l.claims++
	}
	return err
}

// ends settles the step that runs, which makes one event.
func (l *processLife) ends(then registry.StepThen) func(context.Context) error {
	return func(ctx context.Context) error {
		text, err := json.Marshal(registry.StepResult{
			Events: []registry.NewProcessEvent{{Payload: json.RawMessage(`1`)}}, State: json.RawMessage(`{}`), Response: json.RawMessage(`2`), Then: then,
		})
		if err != nil {
			return err
		}
		_, err = l.s.Settle(ctx, registry.Settlement{
			Lease: l.lease, Outcome: registry.OutcomeDone, MaxAttempts: 5, Results: map[string]json.RawMessage{registry.ResultStep: text},
		})
		return err
	}
}

func (l *processLife) fails(ctx context.Context) error {
	_, err := l.s.Settle(ctx, registry.Settlement{Lease: l.lease, Outcome: registry.OutcomeFailed, MaxAttempts: 5, Error: "no", Class: registry.SystemFault})
	return err
}

// TestProcess_FaultAtEachStatement ends each write of a process before each of its statements, as a
// kill would. Nothing may have changed then, neither a step, nor its process, nor the feed: so
// nobody hears of a step before its commit. The repeat must succeed. A second repeat, of a
// settlement whose answer got lost after the commit, must change nothing.
func TestProcess_FaultAtEachStatement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	l := &processLife{s: open(t, path, newClock().now)}
	look := reader(t, path)
	look.SetMaxOpenConns(1)
	version := func() string { return column(t, look, `PRAGMA data_version`)[0] }
	faults := 0
	for _, c := range l.script() {
		before, seen := dump(t, look), version()
		for n := range looptest.Steps(t) {
			asked := 0
			l.s.SetFault(func(string) error {
				if asked++; asked == n {
					return errFault
				}
				return nil
			})
			err := c.run(t.Context())
			if asked < n {
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				break
			}
			faults++
			if !errors.Is(err, errFault) {
				t.Errorf("%s: fault at statement %d was answered with %v", c.name, n, err)
			}
			if version() == seen {
				continue // nobody has committed anything
			}
			if diff := cmp.Diff(before, dump(t, look)); diff != "" {
				t.Fatalf("%s: fault at statement %d left a change:\n%s", c.name, n, diff)
			}
		}
		l.s.SetFault(nil)
		registrytest.CheckInvariants(t, l.s)
		if strings.HasPrefix(c.name, "end") || strings.Contains(c.name, "fails") || strings.HasPrefix(c.name, "call") {
			after := dump(t, look)
			if err := c.run(t.Context()); err != nil {
				t.Errorf("%s, repeated: %v", c.name, err)
			}
			if diff := cmp.Diff(after, dump(t, look)); diff != "" {
				t.Errorf("%s, repeated, changed:\n%s", c.name, diff)
			}
		}
	}
	if _, err := l.s.Process(t.Context(), lifeKey, registry.HistoryRange{}); !errors.Is(err, registry.ErrNotFound) || l.claims != 9 {
		t.Errorf("%v after %d claims", err, l.claims)
	}
	t.Logf("%d faults", faults)
}

// asked brings a process through its life. After each write it asks what programs and callers ask for
// while they wait. It returns the queries of the reading connections and, with writes, of the writer.
func (l *processLife) asked(t *testing.T, rec *recorder, writes bool) map[string]bool {
	t.Helper()
	if err := l.s.SetReader(sql.OpenDB(rec)); err != nil {
		t.Fatal(err)
	}
	if writes {
		l.s.SetFault(func(query string) error { rec.note(query); return nil })
		defer l.s.SetFault(nil)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing waits
	for _, c := range l.script() {
		if err := c.run(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := l.s.AwaitReady(short, []registry.Stage{"step:test", "run:test"})
		if stop(); err != nil {
			t.Fatal(err)
		}
		if l.lease.ItemID != "" {
			if _, err := l.s.AwaitAnswer(ended, l.lease.ItemID); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{
			func() error { _, err := l.s.Process(ended, lifeKey, registry.HistoryRange{}); return err }(),
			func() error {
				_, err := l.s.TraceProcess(t.Context(), registry.TraceQuery{ProcessKey: lifeKey})
				return err
			}(),
		} {
			if err != nil && !errors.Is(err, registry.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
	return rec.queries
}

// TestQueryPlans_Processes checks SQLite's plans for every statement in the life of a process, and for
// what programs and callers ask for while they wait: none may read all items that wait at a stage, of
// which there may be one for each process.
func TestQueryPlans_Processes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	l := &processLife{s: open(t, path, newClock().now)}
	plain := reader(t, path)
	rec := &recorder{real: plain.Driver(), dsn: "file:" + path + "?_pragma=query_only(1)", queries: map[string]bool{}, args: map[string][]any{}}
	looked := false
	for query := range l.asked(t, rec, true) {
		if !strings.Contains("SELECT UPDATE INSERT DELETE", strings.SplitN(strings.TrimSpace(query), " ", 2)[0]) {
			continue
		}
		looked = looked || strings.Contains(query, "ready = 0")
		for _, step := range explain(t, plain, query) {
			ofStage := strings.Contains(step, "_place ") && !strings.HasPrefix(step, "SEARCH r ") // r are items that run
			if scanned.MatchString(step) && !few.MatchString(step) || ofStage {
				t.Errorf("%s\nin %s", step, query)
			}
		}
	}
	if !looked {
		t.Error("nothing looked for what is due")
	}
}

// TestQueryPlans_ProcessesPostgreSQL checks that PostgreSQL without statistics, as at first, takes the
// first timer that is due from its index and does not compute a minimum of all, and that it finds a
// process by its key.
func TestQueryPlans_ProcessesPostgreSQL(t *testing.T) {
	address := migrated(t)
	l := &processLife{s: openURL(t, address, newClock().now)}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rec := &recorder{real: db.Driver(), dsn: address, queries: map[string]bool{}, args: map[string][]any{}}
	looked := 0
	for query := range l.asked(t, rec, false) {
		if !strings.Contains(query, "ready = 0") && !strings.Contains(query, "FROM process q") {
			continue
		}
		looked++
		plan := explainPostgres(t, conn, looked, query, rec.args[query])
		for _, step := range plan {
			if strings.Contains(step, "Aggregate") || strings.Contains(step, "_place ") || strings.Contains(step, "process_status") {
				t.Errorf("%s\nin %s\n%s", step, query, strings.Join(plan, "\n"))
			}
		}
	}
	if looked < 3 {
		t.Errorf("only %d queries were seen", looked)
	}
}
