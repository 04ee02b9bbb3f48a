package workers_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/checkpoint"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// admins are clients of two admins on the pair's Registry.
func (p *pair) admins(t *testing.T) (ann, ben *client.Client) {
	t.Helper()
	handler, err := api.New(api.Options{
		Registry: p.registry, Chains: p.registry, Staging: p.staging, Objects: p.deps.Objects, Log: slog.New(slog.DiscardHandler),
		SignIn: signin.New(signin.Options{Store: p.registry, Log: slog.New(slog.DiscardHandler)}),
	})
	must(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	as := func(name string) *client.Client {
		must(t, p.registry.AddToken(t.Context(), registry.Token{ID: name, Hash: signin.Hash("secret of " + name), Name: name, Role: registry.RoleAdmin}))
		c := client.New(server.URL, "secret of "+name, client.Options{})
		t.Cleanup(c.Close)
		return c
	}
	return as("ann"), as("ben")
}

// chain has the numbers and hashes of an object's events.
func chain(t *testing.T, r *sqlstore.Store, id string) (out []string) {
	t.Helper()
	page, err := r.PremisEvents(t.Context(), id, "", 500)
	must(t, err)
	for _, e := range page.Rows {
		out = append(out, fmt.Sprint(e.Seq, " ", e.Hash))
	}
	return out
}

// TestFixity_AcceptedLoss: two admins accept that the record lost events which a checkpoint had signed. The
// storages still have segments with these, and the record goes on with other events of the same numbers.
// Checks and verify accept these segments, and no others; a rebuild leaves them.
func TestFixity_AcceptedLoss(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	backup := p.copied(t)
	sealed := func() {
		p.check(aContent)
		must(t, p.keeper(0).Make(t.Context()))
	}
	sealed()
	sealed()
	yesterday := checkpoint.Checkpointer{Registry: p.registry, Objects: p.deps.Objects, Now: func() time.Time { return time.Now().AddDate(0, 0, -1) }}
	must(t, yesterday.Make(t.Context()))
	sealed() // in no checkpoint
	names, last := p.evidenceIn(first)
	page, err := p.registry.PremisEvents(t.Context(), p.object.ID, registry.AfterSeq(last-1), 1)
	must(t, err)
	lostEvent := receipt.EventOf(page.Rows[0])

	path := filepath.Join(t.TempDir(), "registry.db")
	must(t, sqldb.Copy(t.Context(), "sqlite:"+backup, path))
	restored, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + path, ReceiptKey: sqlstoretest.ReceiptKey(t), Mail: true})
	must(t, err)
	t.Cleanup(func() { must(t, restored.Close()) })
	defer p.on(p.registry)
	p.on(restored)
	ann, ben := p.admins(t)
	_, err = ann.AcceptOlder(t.Context(), wire.AcceptanceRequest{Reason: "the disk died"})
	must(t, err)
	_, err = ben.AcceptOlder(t.Context(), wire.AcceptanceRequest{Approve: true})
	shown := new(wire.Problem)
	if !errors.As(err, &shown) {
		t.Fatal(err)
	}
	_, err = ben.AcceptOlder(t.Context(), wire.AcceptanceRequest{Approve: true, AgreesTo: shown.AgreesTo})
	must(t, err)

	sealed()
	rebuilt := func(what string) { // the storages have both branches of the chain
		t.Helper()
		again := p.rebuilding(t)
		report, err := rebuild.Run(t.Context(), rebuild.Options{
			Roots: p.deps.Objects, To: again, Keys: []receipt.PublicKey{sqlstoretest.ReceiptKey(t).Public()}, Now: time.Now,
			Fault: func(o rebuild.Object) error { t.Errorf("%s: faults %+v", what, o); return nil },
		})
		must(t, err)
		if report != (rebuild.Report{Objects: 1}) {
			t.Errorf("%s: report %+v", what, report)
		}
		if diff := cmp.Diff(chain(t, restored, p.object.ID), chain(t, again, p.object.ID)); diff != "" {
			t.Errorf("%s: the chain of events (-want +got):\n%s", what, diff)
		}
	}
	rebuilt("after the loss was accepted")
	right := func(what string) {
		t.Helper()
		if it := p.check(inventoryFile); it.Status != registry.Completed {
			t.Errorf("%s: the check is %s: %s", what, it.Status, it.Note)
		}
		report, err := ann.Verify(t.Context(), p.object.ID)
		must(t, err)
		if !report.Valid {
			t.Errorf("%s: verify says %+v", what, report)
		}
		audit, err := ann.AuditCheckpoints(t.Context(), "")
		must(t, err)
		if !audit.Valid || len(audit.Storages[0].Accepted) != 1 {
			t.Errorf("%s: the audit says %+v", what, audit)
		}
	}
	right("after the loss was accepted")
	at, err := p.registry.EvidencePlaces(t.Context(), p.object.ID)
	must(t, err)
	gap := at.Lost[0]
	own := evidence.File{First: gap.After, Last: gap.After + 1} // its own name has lost events
	in, err := evidence.In(p.roots[second], p.object.ID, registry.Place{})
	must(t, err)
	files, err := in.List(t.Context())
	must(t, err)
	for _, name := range append(names, own.String()) {
		if !slices.ContainsFunc(files.Segments, func(f evidence.File) bool { return f.String() == name }) && name != "v1.receipt.jsonl" {
			t.Errorf("%s is not there: %+v", name, files)
		}
	}
	place := func(f evidence.File) string { return p.file(second, ocfl.EvidenceFolder+"/"+f.String()) }
	must(t, os.Remove(place(own)))
	right("with events that were missing")
	if _, err := os.Stat(place(own)); err != nil {
		t.Error(err)
	}

	lost := func(seq int64) string { // the hash of a lost event
		var hash string
		_, err := in.Read(t.Context(), evidence.Files{Receipts: []int{1}, Segments: []evidence.File{{First: seq, Last: seq}}}, evidence.Reader{Event: func(_ receipt.Event, h string) error {
			hash = h
			return nil
		}})
		must(t, err)
		return hash
	}
	var nobody *receipt.Key
	key := sqlstoretest.ReceiptKey(t)
	stranger, err := receipt.ParseKey(receipt.NewKey())
	must(t, err)
	anchor := strings.Repeat("ab", 32)
	for name, tt := range map[string]struct {
		key    *receipt.Key
		after  int64
		before string
		count  int64
	}{
		"that nobody signed":              {nobody, last, lost(last), 1},
		"that a stranger signed":          {stranger, last, lost(last), 1},
		"of no known chain":               {key, last, anchor, 1},
		"that ends otherwise than signed": {key, gap.After, lost(gap.After), gap.To - gap.After},
		"of before the loss":              {key, gap.After - 1, anchor, gap.To - gap.After + 3},
	} {
		f := evidence.File{First: tt.after + 1, Last: tt.after + tt.count}
		hash := tt.before
		var lines []byte
		for seq := f.First; seq <= f.Last; seq++ {
			e := lostEvent
			e.Seq, e.Detail = seq, "something else"
			hash = e.Hash(hash)
			lines = append(lines, e.Line(hash)...)
		}
		head := tt.key.SignEvents(receipt.EventsHeader{Object: p.object.ID, Events: receipt.Span{First: f.First, Count: tt.count, Before: tt.before, After: hash}})
		must(t, os.WriteFile(place(f), append(head, lines...), 0o644))
		it := p.check(inventoryFile)
		if it.Status != registry.Failed || !strings.Contains(it.Note, f.String()+" not what the record says") {
			t.Fatalf("a segment %s: the check is %s: %s", name, it.Status, it.Note)
		}
		must(t, os.Remove(place(f)))
		p.command(it.ID, registry.ActRequeue, "")
	}
	right("without foreign segments")
	must(t, p.keeper(0).Make(t.Context()))
	today := checkpoint.Checkpointer{Registry: p.registry, Objects: p.deps.Objects, Now: time.Now}
	must(t, today.Make(t.Context()))
	rebuilt("after more events and a checkpoint")
}
