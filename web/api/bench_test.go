package api_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// bench is a server over real stores.
type bench struct {
	store   *sqlstore.Store
	staging *dir.Store
	objects *ocfl.Root
	alsoIn  []string // other storages that versions are recorded in
	server  *httptest.Server
	log     *logged
	folder  string
	later   *atomic.Int64 // how far the Registry's clock is ahead, in nanoseconds

	collection string // that batches come to by way of an admin; "": the depositor's
	mark       string // stands in all names of what is made
	anyRefusal bool   // faults are injected: operations answer what they do not declare
}

// logged is what was logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newBench starts a server; change may alter what it is made of.
func newBench(t testing.TB, change ...func(*bench, *api.Options)) *bench {
	t.Helper()
	b := &bench{log: &logged{}, later: new(atomic.Int64)}
	folder := t.TempDir()
	b.folder = folder
	ctx := context.WithoutCancel(t.Context())
	var err error
	b.store, err = sqlstore.Open(ctx, sqlstore.Options{
		URL: sqlstoretest.SQLite(t), ReceiptKey: sqlstoretest.ReceiptKey(t),
		Now: b.now,
	})
	must(t, err)
	t.Cleanup(func() { _ = b.store.Close() })
	b.staging, err = dir.Create(filepath.Join(folder, "staging"))
	must(t, err)
	t.Cleanup(func() { _ = b.staging.Close() })
	preserved, err := dir.Create(filepath.Join(folder, "storage"))
	must(t, err)
	t.Cleanup(func() { _ = preserved.Close() })
	b.objects, err = ocfl.OpenRoot(ctx, preserved, "", nil)
	must(t, err)
	must(t, b.store.PutCollection(ctx, registry.Collection{Mnemonic: "default", Profile: registry.Profile{Owner: "ark:/99999/o"}}, "test"))
	for _, role := range []registry.Role{
		registry.RoleAdmin, registry.RoleDepositor, registry.RoleOperator, registry.RoleViewer, registry.RoleWorker,
	} {
		must(t, b.store.AddToken(ctx, registry.Token{ID: string(role), Hash: signin.Hash(tokenText(role)), Name: "the " + string(role), Role: role, Collections: []string{"default"}}))
	}
	o := api.Options{
		Registry: b.store, Staging: b.staging, Objects: roots(b.objects), Version: "test",
		Log: slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	o.SignIn = signin.New(signin.Options{Store: b.store, Log: o.Log, Now: b.now})
	for _, c := range change {
		c(b, &o)
	}
	if len(b.alsoIn) > 0 {
		must(t, b.store.PutCollection(ctx, registry.Collection{Mnemonic: "default", Version: registry.AnyVersion, Profile: registry.Profile{
			Owner: "ark:/99999/o", Storages: append([]string{registry.DefaultStorage}, b.alsoIn...),
		}}, "test"))
	}
	handler, err := api.New(o)
	must(t, err)
	if !b.anyRefusal {
		handler = declaredOnly(t, handler)
	}
	b.server = httptest.NewServer(handler)
	t.Cleanup(b.server.Close)
	return b
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.later.Load())) }

// pass lets the Registry's clock run on.
func (b *bench) pass(d time.Duration) { b.later.Add(int64(d)) }

func tokenText(role registry.Role) string { return "hf_secret_of_" + string(role) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reply is an answer without its body.
type reply struct {
	StatusCode    int
	Header        http.Header
	ContentLength int64
}

// read returns a whole answer and closes it.
func read(t testing.TB, answer *http.Response) (reply, string) {
	t.Helper()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return reply{StatusCode: answer.StatusCode, Header: answer.Header, ContentLength: answer.ContentLength}, string(text)
}

// send makes a raw request, as admin unless header says otherwise, and returns the answer and its
// body.
func (b *bench) send(t testing.TB, method, path, body string, header ...string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleAdmin))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	answer, err := b.server.Client().Do(r)
	must(t, err)
	return read(t, answer)
}

// wantProblem fails unless an answer is a whole problem document with this status and code.
func wantProblem(t testing.TB, answer reply, text string, status int, code wire.Code) *wire.Problem {
	t.Helper()
	if answer.StatusCode != status {
		t.Fatalf("status=%d, want %d: %s", answer.StatusCode, status, text)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("content type=%q, want application/problem+json: %s", kind, text)
	}
	p := &wire.Problem{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatalf("decode problem: %v: %s", err, text)
	}
	if p.Code != code || p.Status != status || p.Type != code.Type() || p.Title == "" || p.Detail == "" || p.Instance == "" {
		t.Errorf("problem=%s, want code %s, status %d and all fields", text, code, status)
	}
	return p
}

// problemOf fails unless err is a problem with this status and code.
func problemOf(t testing.TB, err error, status int, code wire.Code) *client.Problem {
	t.Helper()
	var p *client.Problem
	if !errors.As(err, &p) {
		t.Fatalf("error=%v, want a problem with code %s", err, code)
	}
	if p.Status != status || p.Code != code {
		t.Fatalf("problem=%d %s (%v), want %d %s", p.Status, p.Code, p, status, code)
	}
	return p
}

// staged lists the keys in staging.
func (b *bench) staged(t testing.TB) (keys []string) {
	t.Helper()
	for info, err := range b.staging.List(t.Context(), "") {
		must(t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

func (b *bench) upload(t testing.TB, name, content string) registry.Upload {
	t.Helper()
	u, err := b.as(t, registry.RoleDepositor).SendUpload(t.Context(), oneRequest{
		Filename: name, Body: strings.NewReader(content), Size: int64(len(content)),
	})
	must(t, err)
	return u
}

// claim takes the next item of a stage.
func (b *bench) claim(t testing.TB, stage registry.Stage) registry.Claim {
	t.Helper()
	c, err := b.store.Claim(t.Context(), registry.ClaimRequest{
		RequestID: string(stage) + time.Now().String(), Stage: stage, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute,
	})
	must(t, err)
	return c
}

func (b *bench) settle(t testing.TB, s registry.Settlement) {
	t.Helper()
	s.MaxAttempts = 5
	_, err := b.store.Settle(t.Context(), s)
	must(t, err)
}

// batchOf submits a URL and expands it into one job, which is left at its first stage.
func (b *bench) batchOf(t testing.TB, name string) (batchID, jobID string) {
	t.Helper()
	role := registry.RoleDepositor
	if b.collection != "" {
		role = registry.RoleAdmin
	}
	r, err := b.as(t, role).Submit(t.Context(), wire.SubmitRequest{
		URL: "http://h.test/" + name + "?sig=SECRET0123456789012345678901234567", Collection: b.collection, Title: b.mark,
	}, "")
	must(t, err)
	c := b.claim(t, registry.Expand)
	spec := registry.Spec{Type: registry.FileType, URL: "http://h.test/" + name, LocalIDs: []string{"local" + b.mark}}
	_, err = b.store.AddJobs(t.Context(), c.Lease, []registry.NewJob{{Line: 1, Name: name, Priority: 5, Spec: spec}})
	must(t, err)
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	page, err := b.store.Items(t.Context(), registry.ItemQuery{ParentID: r.BatchID})
	must(t, err)
	return r.BatchID, page.Rows[0].ID
}

// preserve makes an object with these files, in storage and in the inventory, by way of a job.
func (b *bench) preserve(t testing.TB, ark string, files map[string]string) (batchID, jobID string) {
	t.Helper()
	ctx := t.Context()
	batchID, jobID = b.batchOf(t, "payload"+b.mark)
	for _, stage := range []registry.Stage{registry.Estimate, registry.Provision, registry.Download} {
		b.settle(t, registry.Settlement{Lease: b.claim(t, stage).Lease, Outcome: registry.OutcomeDone})
	}
	c := b.claim(t, registry.Process)
	in, err := b.store.Collection(ctx, c.Item.Collection)
	must(t, err)
	id, err := b.store.Identify(ctx, c.Lease, registry.IdentifyRequest{Owner: in.Profile.Owner, LocalIDs: []string{"local" + b.mark}, Proposed: ark})
	must(t, err)
	_, err = b.store.Intend(ctx, c.Lease, registry.Intent{ObjectID: id.ARK, Version: 1, Plan: json.RawMessage(`{}`)})
	must(t, err)
	rows := b.commit(t, ark, files)
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{"version": json.RawMessage("1")}})
	if len(b.alsoIn) > 0 {
		b.settle(t, registry.Settlement{Lease: b.claim(t, registry.Replicate).Lease, Outcome: registry.OutcomeDone})
	}
	c = b.claim(t, registry.Record)
	must(t, b.store.RecordFiles(ctx, c.Lease, ark, 1, rows))
	algorithm, digest, err := b.objects.Sidecar(ctx, ark, "v1/inventory.json")
	must(t, err)
	var size int64
	for _, row := range rows {
		size += row.SizeBytes
	}
	must(t, b.store.RecordVersion(ctx, c.Lease, registry.VersionRecord{
		ObjectID: ark, Version: 1, Owner: in.Profile.Owner, Collection: in.Mnemonic, Title: "A title" + b.mark, Files: int64(len(rows)), SizeBytes: size, CreatedAt: time.Now(),
		Inventory: algorithm + ":" + digest, Replicas: b.replicas(), Events: []registry.Premis{{ID: "e1" + b.mark, ObjectID: ark, Version: 1, ItemID: c.Item.ID, Type: "ingestion", At: time.Now(), Agent: "Holdfast test"}},
	}))
	b.keepReceipt(t, ark, b.objects)
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	b.settle(t, registry.Settlement{Lease: b.claim(t, registry.Notify).Lease, Outcome: registry.OutcomeDone})
	c = b.claim(t, registry.Report)
	_, err = b.store.CloseReport(ctx, c.Lease)
	must(t, err)
	b.settle(t, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	return batchID, jobID
}

// keepReceipt writes the receipt of an object's version 1 beside its bytes.
func (b *bench) keepReceipt(t testing.TB, ark string, root *ocfl.Root) {
	t.Helper()
	in, err := evidence.In(root, ark, registry.Place{})
	must(t, err)
	must(t, evidence.KeepReceipts(t.Context(), b.store, 1, in))
}

// commit writes version 1 of an object and returns its inventory rows.
func (b *bench) commit(t testing.TB, ark string, files map[string]string) (rows []registry.File) {
	t.Helper()
	return b.write(t, ark, files, "m", time.Now())
}

func sha512Of(text string) string {
	sum := sha512.Sum512([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (b *bench) write(t testing.TB, ark string, files map[string]string, message string, created time.Time) (rows []registry.File) {
	t.Helper()
	inv, err := ocfl.New(ark, ocfl.SHA512)
	must(t, err)
	var list []ocfl.File
	for name, text := range files {
		digest := sha512Of(text)
		if _, err := storage.Put(t.Context(), b.staging, "test/"+digest, []byte(text)); err != nil && !errors.Is(err, storage.ErrExists) {
			t.Fatal(err)
		}
		list = append(list, ocfl.File{Path: name, Digest: digest})
	}
	inv, _, err = ocfl.NewVersion(inv, ocfl.Change{Files: ocfl.Files(list), Message: message, Created: created})
	must(t, err)
	must(t, b.objects.Commit(t.Context(), inv, func(f ocfl.ContentFile) (storage.Store, string, error) {
		return b.staging, "test/" + f.Digest, nil
	}, ocfl.CommitOptions{}))
	for _, f := range list {
		rows = append(rows, registry.File{
			Path: f.Path, Version: 1, ContentPath: inv.ContentPaths(f.Digest)[0], SizeBytes: int64(len(files[f.Path])),
			Digests: map[string]string{"sha512": f.Digest}, MIMEType: typeOf(f.Path),
		})
	}
	must(t, b.staging.DeletePrefix(t.Context(), "test"))
	return rows
}

// typeOf is the recorded type of a file: that of its extension, or a dangerous one.
func typeOf(name string) string {
	for end, kind := range map[string]string{".png": "image/png", ".svg": "image/svg+xml", ".js": "text/javascript", ".txt": "text/plain; charset=utf-8", ".css": "text/css"} {
		if strings.HasSuffix(name, end) {
			return kind
		}
	}
	return "text/html"
}

// scratch lists what uncommitted writers have in staging.
func (b *bench) scratch(t testing.TB) (names []string) {
	t.Helper()
	err := filepath.WalkDir(b.folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/staging/") && strings.Contains(path, "/pending/") {
			names = append(names, path)
		}
		return nil
	})
	must(t, err)
	return names
}

// replicas are those that versions are recorded with.
func (b *bench) replicas() []registry.Replica {
	all := []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}}
	for _, name := range b.alsoIn {
		all = append(all, registry.Replica{Storage: name, VerifiedAt: time.Now()})
	}
	return all
}

// roots is one storage root as the default storage.
func roots(r *ocfl.Root) ocfl.Roots {
	return ocfl.Roots{{Root: r, Name: registry.DefaultStorage, Address: "file:///objects"}}
}
