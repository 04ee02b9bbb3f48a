package workers_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/interim"
	interimsql "github.com/holdfast/holdfast/interim/sqlstore"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/s3source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/workers"
	"github.com/holdfast/holdfast/workers/payload"
)

// rig is a Holdfast whose stages a test runs one by one: real stores in a folder of the test, and a
// source on 127.0.0.1.
type rig struct {
	t        testing.TB
	folder   string // of everything but the Registry
	path     string // of the Registry's file
	registry *sqlstore.Store
	interim  interim.Store
	staging  storage.Store // as the test looks at it
	storage  storage.Store
	objects  *ocfl.Root
	deps     workers.Deps
	later    *atomic.Int64 // how far the Registry's clock is ahead, in nanoseconds
	site     *site
	sources  payload.Sources
	remote   map[registry.Stage]registry.ForWorkers // of each stage the Registry over HTTP, by a token of its own; nil: workers have it in themselves
}

// depsOf are what the worker of a stage works with.
func (r *rig) depsOf(s registry.Stage) *workers.Deps {
	d := r.deps
	if r.remote == nil || d.Registry != registry.ForWorkers(r.registry) { // a test put something in between
		return &d
	}
	store := r.remote[s]
	sources := r.sources
	d.Registry, sources.Registry = store, store
	d.Source = sources.Of
	if d.Callbacks != nil {
		callbacks := *d.Callbacks
		callbacks.Registry = store
		d.Callbacks = &callbacks
	}
	if d.Mails != nil {
		mails := *d.Mails
		mails.Registry = store
		d.Mails = &mails
	}
	return &d
}

// collection is the one that tests submit to, unless they make another.
const collection = "test"

// newRig opens everything. change may put other stores between the workers and the real ones.
func newRig(t testing.TB, change func(d *workers.Deps)) *rig {
	t.Helper()
	r := &rig{t: t, later: new(atomic.Int64), site: newSite(t)}
	folder := t.TempDir()
	r.folder, r.path = folder, filepath.Join(t.TempDir(), "registry.db")
	var err error
	r.registry, err = sqlstore.Open(t.Context(), sqlstore.Options{
		URL:        sqlstoretest.SQLiteAt(t, r.path),
		Now:        func() time.Time { return time.Now().Add(time.Duration(r.later.Load())) },
		ReceiptKey: sqlstoretest.ReceiptKey(t),
		Mail:       true,
	})
	must(t, err)
	t.Cleanup(func() { must(t, r.registry.Close()) })
	r.interim, err = interimsql.Open(t.Context(), filepath.Join(folder, "interim.db"), slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { must(t, r.interim.Close()) })
	r.staging, r.storage = openDir(t, filepath.Join(folder, "staging")), openDir(t, filepath.Join(folder, "storage"))
	http := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	t.Cleanup(http.Close)
	template, err := noid.ParseTemplate("99999/fk4{.reeeeeeeek}")
	must(t, err)
	r.sources = payload.Sources{Registry: r.registry, HTTP: http, S3: s3source.New(http), Uploads: source.NewUploads(r.staging)}
	r.deps = workers.Deps{
		Registry: r.registry, Interim: r.interim, Staging: r.staging, Volume: "staging",
		Source:   r.sources.Of,
		Template: template, Random: rand.Reader, Version: "1.2.3", StagingFull: 1, StagingFullUnestimated: 1, // however full the machine is
		Policy: func(registry.Stage) base.Worker { return base.Worker{Attempts: 3} },
	}
	r.objects, err = ocfl.OpenRoot(t.Context(), r.storage, "", nil)
	must(t, err)
	r.deps.Objects = roots(r.objects)
	if change != nil {
		change(&r.deps)
	}
	r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}})
	return r
}

// roots is one storage root as the default storage.
func roots(r *ocfl.Root) ocfl.Roots {
	return ocfl.Roots{{Root: r, Name: registry.DefaultStorage, Address: "test storage"}}
}

func openDir(t testing.TB, path string) storage.Store {
	t.Helper()
	s, err := dir.Create(path)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// profile makes a collection.
func (r *rig) profile(name string, p registry.Profile) {
	r.t.Helper()
	must(r.t, r.registry.PutCollection(r.t.Context(), registry.Collection{Mnemonic: name, Tenant: sqldb.Tenant, Profile: p}, "tester"))
}

// submit makes a batch.
func (r *rig) submit(s registry.Spec) string {
	r.t.Helper()
	return r.submitTo(collection, s)
}

func (r *rig) submitTo(collection string, s registry.Spec) string {
	r.t.Helper()
	if s.SizeBytes == 0 {
		s.SizeBytes = -1
	}
	if s.Mode == "" {
		s.Mode = registry.Add
	}
	receipt, err := r.registry.Submit(r.t.Context(), registry.Submission{Collection: collection, Name: s.Filename, Spec: s, Actor: "tester", Force: true})
	must(r.t, err)
	return receipt.BatchID
}

// handler returns the worker of a stage.
func (r *rig) handler(s registry.Stage) base.Handler {
	r.t.Helper()
	for _, h := range workers.All(r.depsOf(s)) {
		if h.Stage() == s {
			return h
		}
	}
	r.t.Fatalf("no worker for stage %s", s)
	return nil
}

// run works on the item in the stage where it stands. An item that has to wait does so by the
// Registry's clock.
func (r *rig) run(id string) (registry.Verdict, error) {
	r.t.Helper()
	return r.runAs(r.t.Context(), id)
}

func (r *rig) runAs(ctx context.Context, id string) (registry.Verdict, error) {
	r.t.Helper()
	stage := r.item(id).Stage
	runner := &base.Runner{Registry: r.depsOf(stage).Registry, Interim: r.deps.Interim, Version: "1.2.3"}
	return runner.RunOne(ctx, r.handler(stage), id)
}

// wait lets the Registry's clock run on.
func (r *rig) wait(d time.Duration) { r.later.Add(int64(d)) }

func (r *rig) item(id string) registry.WorkItem {
	r.t.Helper()
	it, err := r.registry.Item(context.WithoutCancel(r.t.Context()), id)
	must(r.t, err)
	return it
}

// expand runs a batch's first stage and returns its jobs in row order.
func (r *rig) expand(batch string) []registry.WorkItem {
	r.t.Helper()
	if v, err := r.run(batch); err != nil || v.Stage != registry.Report {
		r.t.Fatalf("expand: verdict %+v, error %v", v, err)
	}
	return r.jobs(batch)
}

func (r *rig) jobs(batch string) []registry.WorkItem {
	r.t.Helper()
	page, err := r.registry.Items(r.t.Context(), registry.ItemQuery{ParentID: batch, Limit: 500})
	must(r.t, err)
	return page.Rows
}

// job submits what makes one job and returns that.
func (r *rig) job(s registry.Spec) string {
	r.t.Helper()
	jobs := r.expand(r.submit(s))
	if len(jobs) != 1 {
		r.t.Fatalf("%d jobs, want 1", len(jobs))
	}
	return jobs[0].ID
}

// advance runs a job's stages until it stands in the given one, or is settled for "".
func (r *rig) advance(id string, until registry.Stage) registry.WorkItem {
	r.t.Helper()
	for range 100 {
		it := r.item(id)
		if it.Status.Settled() || it.Stage == until {
			return it
		}
		_, err := r.run(id)
		if err != nil && !r.item(id).Status.Settled() {
			r.t.Fatalf("%s: %v", it.Stage, err)
		}
	}
	r.t.Fatalf("item %s does not come to an end", id)
	return registry.WorkItem{}
}

// complete runs a job to its end, which must be a good one, and returns its object.
func (r *rig) complete(id string) registry.Object {
	r.t.Helper()
	it := r.advance(id, "")
	if it.Status != registry.Completed {
		r.t.Fatalf("status=%s stage=%s class=%s note=%s, want completed", it.Status, it.Stage, it.ErrorClass, it.Note)
	}
	return r.object(id)
}

// object returns the object that a job stored.
func (r *rig) object(id string) registry.Object {
	r.t.Helper()
	o, err := r.registry.Object(r.t.Context(), r.ark(id))
	must(r.t, err)
	return o
}

// fails runs a job until it fails, and returns how.
func (r *rig) fails(id string) registry.WorkItem {
	r.t.Helper()
	for range 20 {
		it := r.item(id)
		if it.Status.Settled() {
			if it.Status != registry.Failed {
				r.t.Fatalf("status=%s, want failed", it.Status)
			}
			return it
		}
		_, _ = r.run(id) // what became of it is asked of the Registry
		r.wait(2 * time.Hour)
	}
	r.t.Fatalf("item %s does not fail: %+v", id, r.item(id))
	return registry.WorkItem{}
}

// nothingStaged checks that an item has given back everything.
func (r *rig) nothingStaged(id string) {
	r.t.Helper()
	if left := keys(r.t, r.staging, "items/"+id); len(left) > 0 {
		r.t.Errorf("left in staging: %v", left)
	}
	for a := int64(1); a <= r.item(id).Attempt; a++ {
		must(r.t, r.interim.Each(r.t.Context(), interim.Attempt{ItemID: id, N: a}, "", func(key string, _ []byte) error {
			r.t.Errorf("left in interim data: attempt %d, %s", a, key)
			return nil
		}))
	}
}

func keys(t testing.TB, s storage.Store, prefix string) []string {
	t.Helper()
	var out []string
	for info, err := range s.List(context.WithoutCancel(t.Context()), prefix) {
		must(t, err)
		out = append(out, info.Key)
	}
	return out
}

// content reads a file of an object's version.
func (r *rig) content(o registry.Object, version int, path string) string {
	r.t.Helper()
	in, err := r.objects.OpenFile(r.t.Context(), o.Stored(), version, path)
	must(r.t, err)
	return r.all(in)
}

// all reads the rest of what is open, and closes it.
func (r *rig) all(in io.ReadCloser) string {
	r.t.Helper()
	defer in.Close()
	data, err := io.ReadAll(in)
	must(r.t, err)
	return string(data)
}

// files reads all of a version, by logical path, as the inventory has it, and checks that storage
// has it, too.
func (r *rig) files(o registry.Object, version int) map[string]string {
	r.t.Helper()
	inv, err := r.objects.Inventory(r.t.Context(), o.Stored(), version)
	must(r.t, err)
	out := map[string]string{}
	after := ""
	for {
		page, err := r.registry.Files(r.t.Context(), o.ID, version, after, 500)
		must(r.t, err)
		if len(page) == 0 {
			break
		}
		for _, f := range page {
			stored, ok := inv.Lookup(0, f.Path)
			if !ok {
				r.t.Fatalf("%s is in the inventory and not stored", f.Path)
			}
			in, err := r.objects.OpenContent(r.t.Context(), inv, stored.Digest, 0, -1)
			must(r.t, err)
			out[f.Path] = r.all(in)
			if int64(len(out[f.Path])) != f.SizeBytes {
				r.t.Errorf("%s has %d bytes, the inventory says %d", f.Path, len(out[f.Path]), f.SizeBytes)
			}
		}
		after = page[len(page)-1].Path
	}
	for _, f := range inv.State(0) {
		if _, ok := out[f.Path]; !ok {
			r.t.Errorf("%s is stored and not in the inventory", f.Path)
		}
	}
	if len(out) != len(inv.State(0)) {
		r.t.Errorf("%d files in the inventory, %d stored", len(out), len(inv.State(0)))
	}
	return out
}

// producer returns the producer's files of a version under their own names.
func (r *rig) producer(o registry.Object, version int) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for path, data := range r.files(o, version) {
		if name, ok := strings.CutPrefix(path, "producer/"); ok {
			out[name] = data
		}
	}
	return out
}

// valid checks that an object is sound to the last byte, and has so many versions.
func (r *rig) valid(o registry.Object, versions int) {
	r.t.Helper()
	report, err := r.objects.Verify(r.t.Context(), o.Stored(), ocfl.ValidateOptions{})
	must(r.t, err)
	if !report.Valid() {
		r.t.Errorf("object %s is not valid: %v", o.ID, report.Errors())
	}
	if head, err := r.objects.Head(r.t.Context(), o.Stored()); err != nil || head.Head != versions || o.Head != versions {
		r.t.Errorf("stored at version %d (%v), recorded at %d, want %d", head.Head, err, o.Head, versions)
	}
	r.evident(r.objects, o, versions)
}

// snooze is what a step comes to that has to wait.
// trusted are the keys that the Registry has signed with.
func (r *rig) trusted() (keys []receipt.PublicKey) {
	r.t.Helper()
	rows, err := r.registry.ReceiptKeys(r.t.Context())
	must(r.t, err)
	for _, row := range rows {
		key, err := receipt.ParsePublicKey(row.PublicKey)
		must(r.t, err)
		keys = append(keys, key)
	}
	return keys
}

// evident checks that the object's evidence in a storage is whole and right: it has the receipts of
// all versions, and all events up to the last of them, as the record has them.
func (r *rig) evident(root *ocfl.Root, o registry.Object, versions int) {
	r.t.Helper()
	in, err := evidence.In(root, o.ID, o.Place)
	must(r.t, err)
	files, err := in.List(r.t.Context())
	must(r.t, err)
	var recorded []string
	for after := registry.AfterSeq(0); ; {
		page, err := r.registry.PremisEvents(r.t.Context(), o.ID, after, 500)
		must(r.t, err)
		for _, e := range page.Rows {
			recorded = append(recorded, e.Hash)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	var receipts []int
	report, err := in.Read(r.t.Context(), files, evidence.Reader{
		Receipt: func(h receipt.Header) error { receipts = append(receipts, h.Version); return nil },
		Event: func(e receipt.Event, hash string) error {
			if e.Seq > int64(len(recorded)) || recorded[e.Seq-1] != hash {
				r.t.Errorf("event %d of %s beside the bytes is not the recorded one", e.Seq, o.ID)
			}
			return nil
		},
	})
	must(r.t, err)
	if !report.Valid() || report.Unsigned > 0 || len(files.Foreign) > 0 || len(receipts) != versions {
		r.t.Errorf("evidence of %s: receipts %v, want %d; %q are foreign; %+v", o.ID, receipts, versions, files.Foreign, report)
	}
}

func waits(t testing.TB, it registry.WorkItem) {
	t.Helper()
	if it.Status != registry.Pending || it.Tries != 0 {
		t.Errorf("status=%s tries=%d note=%s, want pending and nothing counted", it.Status, it.Tries, it.Note)
	}
}

func isContent(t testing.TB, it registry.WorkItem, words ...string) {
	t.Helper()
	wantClass(t, it, registry.ContentFault, words...)
}

func wantClass(t testing.TB, it registry.WorkItem, class registry.ErrorClass, words ...string) {
	t.Helper()
	if it.ErrorClass != class {
		t.Errorf("class=%s, want %s (%s)", it.ErrorClass, class, it.Note)
	}
	for _, w := range words {
		if !strings.Contains(it.Note, w) {
			t.Errorf("note %q does not name %q", it.Note, w)
		}
	}
}

var errTest = errors.New("test fault")

func decode(t testing.TB, raw []byte, v any) {
	t.Helper()
	must(t, json.Unmarshal(raw, v))
}
