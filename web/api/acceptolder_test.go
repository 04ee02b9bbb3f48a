package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/checkpoint"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// restored is a server with two storages, each with checkpoints of two days, whose database can be
// made to be older than they are.
type restored struct {
	*bench
	r          *rewritten
	second     *dying
	roots      ocfl.Roots
	checkpoint func(day int) error
}

func newRestored(t *testing.T, store storage.Store) *restored {
	t.Helper()
	x := &restored{r: &rewritten{}, second: &dying{Store: store, after: -1}}
	root, err := ocfl.OpenRoot(t.Context(), x.second, "", nil)
	must(t, err)
	x.bench = newBench(t, func(b *bench, o *api.Options) {
		x.r.Registry, x.r.Chains = o.Registry, b.store
		x.roots = append(o.Objects, ocfl.Named{Root: root, Name: "second", Address: "file:///second"})
		o.Registry, o.Chains, o.Objects = x.r, x.r, x.roots
		o.Now = func() time.Time { return time.Date(2026, 8, 4, 8, 0, 0, 0, time.UTC) }
	})
	x.checkpoint = func(day int) error {
		c := checkpoint.Checkpointer{
			Registry: x.r, Objects: x.roots,
			Now: func() time.Time { return time.Date(2026, 8, day, 7, 0, 0, 0, time.UTC) },
		}
		return c.Make(t.Context())
	}
	x.preserve(t, objectARK, testFiles())
	must(t, x.checkpoint(1))
	x.mark = "2"
	x.preserve(t, otherARK, testFiles())
	must(t, x.checkpoint(2))
	return x
}

// person is a client with a new token of an admin.
func (b *bench) person(t *testing.T, name string) *client.Client {
	t.Helper()
	must(t, b.store.AddToken(t.Context(), registry.Token{ID: name, Hash: signin.Hash("secret of " + name), Name: name, Role: registry.RoleAdmin}))
	c := client.New(b.server.URL, "secret of "+name, client.Options{})
	t.Cleanup(c.Close)
	return c
}

// addEvent adds an event to an object's chain.
func (b *bench) addEvent(t *testing.T, ark string) {
	t.Helper()
	ctx := t.Context()
	must(t, b.store.AskForCheck(ctx, registry.CheckRequest{ObjectID: ark, Reason: "test", Actor: "test"}))
	_, err := b.store.Recheck(ctx, registry.RecheckRequest{Outstanding: 100, Keep: time.Hour})
	must(t, err)
	c := b.claim(t, registry.Fixity)
	must(t, b.store.RecordCheck(ctx, c.Lease, registry.CheckRecord{
		Replicas: []registry.ReplicaCheck{{Storage: registry.DefaultStorage, Outcome: registry.CheckGood}},
		Events:   []registry.Premis{{ID: c.Item.ID, ObjectID: ark, Version: 1, ItemID: c.Item.ID, Type: "fixity check", At: time.Now(), Agent: "Holdfast test"}},
	}))
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
}

// approve agrees to what the client is shown, and returns that, too.
func approve(t *testing.T, c *client.Client) (wire.Acceptance, []string, error) {
	t.Helper()
	done, err := c.AcceptOlder(t.Context(), wire.AcceptanceRequest{Approve: true})
	p := new(wire.Problem)
	if !errors.As(err, &p) || p.Code != wire.CodeConfirm {
		return done, nil, err
	}
	done, err = c.AcceptOlder(t.Context(), wire.AcceptanceRequest{Approve: true, AgreesTo: p.AgreesTo})
	return done, p.Consequences, err
}

// older makes the database one that has lost all of one object's events, or with from those from
// this number on.
func older(from int64) func(*registry.Premis) bool {
	return func(e *registry.Premis) bool { return e.ObjectID != otherARK || e.Seq < from }
}

// TestAcceptOlder has two people accept a database that is older than what was signed, and kills
// the process at each call while it writes checkpoints. The record is then unchanged or accepted,
// and a repeat finishes the rest. All later checkpoints list the acceptance.
func TestAcceptOlder(t *testing.T) {
	for name, open := range map[string]func(*testing.T) storage.Store{
		"folder": func(t *testing.T) storage.Store {
			s, err := dir.Create(t.TempDir())
			must(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"S3": func(t *testing.T) storage.Store {
			server := s3test.Start(t)
			s3test.Setenv(t)
			s, err := s3.Open(t.Context(), server.Address("objects"))
			must(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newRestored(t, open(t))
			ctx := t.Context()
			ann, ben := x.person(t, "ann"), x.person(t, "ben")
			ask := wire.AcceptanceRequest{Reason: "restored Monday's backup"}
			_, err := ann.AcceptOlder(ctx, ask)
			problemOf(t, err, http.StatusConflict, wire.CodeConflict) // it is not older
			x.r.event = older(1)
			_, err = ben.AcceptOlder(ctx, wire.AcceptanceRequest{Approve: true})
			if !errors.Is(err, registry.ErrNoAcceptance) {
				t.Errorf("approved what nobody asked for: %v", err)
			}
			_, err = x.as(t, registry.RoleOperator).AcceptOlder(ctx, ask)
			problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
			_, err = ann.AcceptOlder(ctx, wire.AcceptanceRequest{})
			problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
			asked, err := ann.AcceptOlder(ctx, ask)
			must(t, err)
			if asked.AskedBy != "ann" || asked.ApprovedBy != "" || len(asked.Of) != 2 || len(asked.Written) > 0 {
				t.Errorf("asked: %+v", asked)
			}
			if len(asked.Lost) != 2 || asked.Lost[0].Objects != 1 || asked.Lost[0].Events < 1 || len(asked.Lost[0].Gaps) != 1 || asked.Lost[0].Gaps[0].ObjectID != otherARK {
				t.Errorf("shown who asks: %+v", asked.Lost)
			}
			if _, _, err := approve(t, ann); !errors.Is(err, registry.ErrSamePerson) {
				t.Errorf("her own approval: %v", err)
			}
			if report, err := ann.AuditCheckpoints(ctx, ""); err != nil || report.Valid || report.Storages[0].Older != 1 {
				t.Errorf("before it is approved: %+v, %v", report, err)
			}

			// The first storage has its checkpoint when the process dies, the second has a part of
			// one.
			for i, after := range []int{0, 1, 200} {
				x.second.after = after
				_, shown, err := approve(t, ben)
				if err == nil {
					t.Fatal("it did not die")
				}
				if said := strings.Join(shown, "\n"); i == 0 && (!strings.Contains(said, "ann requested it") || !strings.Contains(said, ask.Reason) || !strings.Contains(said, otherARK+"  events 1 to ")) {
					t.Errorf("shown who approves: %q", said)
				}
				x.second.after = -1
				report, err := ann.AuditCheckpoints(ctx, "")
				must(t, err)
				if !report.Storages[0].Valid || len(report.Storages[0].Accepted) != 1 || report.Storages[1].Older != 1 || len(report.Storages[1].Accepted) > 0 {
					t.Errorf("killed the %dth time: %+v", i+1, report)
				}
			}
			done, err := ann.AcceptOlder(ctx, wire.AcceptanceRequest{Approve: true}) // whoever: two people have agreed
			must(t, err)
			if fmt.Sprint(done.Written) != "[second 2026-08-04T080000Z.jsonl]" || done.AskedBy != "ann" || done.ApprovedBy != "ben" {
				t.Errorf("accepted: %+v", done)
			}
			_, err = ben.AcceptOlder(ctx, wire.AcceptanceRequest{Approve: true})
			problemOf(t, err, http.StatusConflict, wire.CodeConflict)

			// What comes afterwards is another chain than the one that was lost, and every audit
			// tells of the gap.
			for day := 5; day < 14; day++ {
				must(t, x.checkpoint(day))
				x.r.event = func(e *registry.Premis) bool {
					if e.ObjectID == otherARK {
						e.Detail = "after the gap"
						e.Hash = receipt.EventOf(*e).Hash(receipt.Zero)
					}
					return true
				}
			}
			report, err := ben.AuditCheckpoints(ctx, "")
			must(t, err)
			for _, s := range report.Storages {
				if !s.Valid || s.Name != "2026-08-13.jsonl" || len(s.Accepted) != 1 {
					t.Fatalf("after nine days: %+v", s)
				}
				g := s.Accepted[0]
				if g.AskedBy != "ann" || g.ApprovedBy != "ben" || g.Reason != ask.Reason || g.Checkpoint != "2026-08-02.jsonl" || g.Objects != 1 ||
					len(g.Gaps) != 1 || g.Gaps[0].ObjectID != otherARK || g.Gaps[0].First != 1 || g.Gaps[0].Last < 1 {
					t.Errorf("the gap is told as %+v", g)
				}
			}
			one, err := ben.AuditCheckpoints(ctx, objectARK)
			must(t, err)
			if len(one.Storages[0].Accepted) > 0 {
				t.Errorf("the object that lost nothing: %+v", one)
			}
		})
	}
}

// TestAcceptOlder_Rewritten checks that a record that is not only truncated is never accepted: with
// an event that differs from a signed one, an invalid chain, or an invalid checkpoint.
func TestAcceptOlder_Rewritten(t *testing.T) {
	t.Parallel()
	receipts := map[string]bool{"cut off before its receipt": true}
	for name, event := range map[string]func(*registry.Premis) bool{
		"another event": func(e *registry.Premis) bool {
			if e.ObjectID == objectARK {
				e.Hash = strings.Repeat("0", 64)
			}
			return e.ObjectID != otherARK
		},
		"signed the day before": nil, // below
		"an event of an object that lost nothing, its hash left": func(e *registry.Premis) bool {
			if e.ObjectID == objectARK && e.Seq == 1 {
				e.Detail = "FORGED"
			}
			return e.ObjectID != otherARK
		},
		"cut off before its receipt": func(e *registry.Premis) bool { return e.ObjectID != otherARK },
		"a chain with a hole":        func(e *registry.Premis) bool { return e.ObjectID != otherARK || e.Seq == 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := dir.Create(t.TempDir())
			must(t, err)
			t.Cleanup(func() { _ = store.Close() })
			x := newRestored(t, store)
			if name == "signed the day before" {
				x.addEvent(t, objectARK)
				must(t, x.checkpoint(3))
				event = func(e *registry.Premis) bool {
					if e.ObjectID == objectARK && e.Seq == 1 {
						e.Outcome = "other"
						e.Hash = receipt.EventOf(*e).Hash(receipt.Zero)
					}
					return e.ObjectID != objectARK || e.Seq == 1
				}
			}
			if name == "a chain with a hole" {
				x.addEvent(t, otherARK)
				x.addEvent(t, otherARK)
				must(t, x.checkpoint(3))
			}
			x.r.event, x.r.receipts = event, receipts[name]
			ann := x.person(t, "ann")
			_, err = ann.AcceptOlder(t.Context(), wire.AcceptanceRequest{Reason: "restored"})
			problemOf(t, err, http.StatusConflict, wire.CodeConflict)
			if !strings.Contains(err.Error(), "rewritten") {
				t.Errorf("refused: %v", err)
			}
			for _, c := range x.checkpoints(t) {
				if strings.Contains(c, "T") {
					t.Errorf("there is %s", c)
				}
			}
		})
	}
}

// TestAcceptOlder_MoreIsLost checks that an approval covers only the losses that were shown. If
// more is lost since, a new request is needed.
func TestAcceptOlder_MoreIsLost(t *testing.T) {
	t.Parallel()
	store, err := dir.Create(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	x := newRestored(t, store)
	ctx := t.Context()
	ann, ben, cat := x.person(t, "ann"), x.person(t, "ben"), x.person(t, "cat")
	more := func(*registry.Premis) bool { return false }

	x.r.event = older(1)
	_, err = ann.AcceptOlder(ctx, wire.AcceptanceRequest{Reason: "restored"})
	must(t, err)
	_, err = ben.AcceptOlder(ctx, wire.AcceptanceRequest{Approve: true})
	shown := problemOf(t, err, http.StatusConflict, wire.CodeConfirm)
	again, err := cat.AcceptOlder(ctx, wire.AcceptanceRequest{Reason: "something else"})
	must(t, err)
	if again.Replaces != "ann" {
		t.Errorf("asked anew: %+v, want that it says whose asking went", again)
	}
	_, err = ben.AcceptOlder(ctx, wire.AcceptanceRequest{Approve: true, AgreesTo: shown.AgreesTo})
	if p := problemOf(t, err, http.StatusConflict, wire.CodeConfirm); p.AgreesTo == shown.AgreesTo || !strings.Contains(strings.Join(p.Consequences, "\n"), "something else") {
		t.Errorf("approved what was not shown: %+v", p)
	}
	x.r.event = more
	if _, _, err = approve(t, ben); !errors.Is(err, registry.ErrNoAcceptance) {
		t.Errorf("approved after more was lost: %v", err)
	}

	x.r.event, x.second.after = older(1), 0
	if _, _, err = approve(t, ben); err == nil {
		t.Fatal("it did not die")
	}
	x.second.after = -1
	before := x.checkpoints(t)
	file := filepath.Join(x.folder, "storage", "extensions", "holdfast-checkpoints", before[len(before)-1])
	must(t, os.Remove(file))
	x.r.event = more
	third, err := ann.AcceptOlder(ctx, wire.AcceptanceRequest{Reason: "me only"})
	if err != nil || third.ApprovedBy != "" || len(third.Written) > 0 {
		t.Errorf("one person alone: %+v, %v", third, err)
	}
	if names := x.checkpoints(t); len(names) != len(before)-1 {
		t.Errorf("there are %v", names)
	}
}
