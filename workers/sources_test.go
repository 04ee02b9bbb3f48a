package workers_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/s3source"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/workers/payload"
)

const (
	sealText   = "the key of these tests has 32 characters or more"
	sitesOwner = "ann"
	password   = "p:w geheim ☃" // a colon, a space, no ASCII
)

// guarded is a rig whose site is on TLS and gives nothing without a password.
type guarded struct {
	*rig
	keys    *secret.Keys
	setKeys func(*secret.Keys) // of the workers
	origin  string
	denied  atomic.Int32
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	keys, err := secret.Parse(sealText)
	must(t, err)
	g := &guarded{rig: newRig(t, nil), keys: keys}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, secret, ok := r.BasicAuth(); !ok || user != sitesOwner || secret != password {
			g.denied.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.site.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	g.site.url, g.origin = server.URL+"/", server.URL
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	fetcher := source.NewHTTP(source.HTTPOptions{
		Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, RootCAs: roots,
	})
	t.Cleanup(fetcher.Close)
	g.work(fetcher, keys)
	g.deps.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 10} }
	return g
}

// work gives the workers these keys.
func (g *guarded) work(h *source.HTTP, keys *secret.Keys) {
	s := &payload.Sources{Registry: g.registry, Keys: keys, HTTP: h, S3: s3source.New(h), Uploads: source.NewUploads(g.staging)}
	g.deps.Source = func(collection string) source.Fetcher { return s.Of(collection) }
	g.setKeys = func(keys *secret.Keys) { s.Keys = keys }
}

// set keeps a credential, as the API does.
func (g *guarded) set(c registry.Credential, secret string) {
	g.t.Helper()
	var err error
	c.Sealed, err = g.keys.Seal(secret, c.About()...)
	must(g.t, err)
	must(g.t, g.registry.PutCredential(g.t.Context(), c))
}

func (g *guarded) setBasic(collection string) {
	g.t.Helper()
	g.set(registry.Credential{Collection: collection, Origin: g.origin, Kind: registry.CredentialBasic, Name: sitesOwner}, password)
}

// TestCredentials_EveryStage: with its collection's credential a batch is expanded, its sizes are
// requested and its files fetched, including those in a bag's fetch.txt. Nothing stored contains
// the secret.
func TestCredentials_EveryStage(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.setBasic(collection)
	bag := bagOf(map[string]string{"here.txt": "here", "far.txt": "far"}, map[string]string{"far.txt": g.site.put("far", "far")})
	g.site.manifest("batch.checkm", checkm.ContainerBatch,
		checkm.Row{URL: g.site.put("b.zip", zipOf(t, bag)), Name: "b.zip"}, checkm.Row{URL: g.site.put("c.zip", zipOf(t, sample())), Name: "c.zip"})
	jobs := g.expand(g.submit(registry.Spec{Type: registry.ContainerBatch, URL: g.site.url + "batch.checkm"}))
	for _, job := range jobs {
		if it := g.advance(job.ID, registry.Download); it.SizeBytes <= 0 {
			t.Errorf("row %d: size %d after its estimate", job.Row, it.SizeBytes)
		}
		g.valid(g.complete(job.ID), 1)
	}
	single := g.job(registry.Spec{Type: registry.AutoType, URL: g.site.put("f", "a file"), Filename: "f"})
	if diff := cmp.Diff(map[string]string{"f": "a file"}, g.producer(g.complete(single), 1)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if g.denied.Load() != 0 {
		t.Errorf("%d requests came without the password", g.denied.Load())
	}
	for _, folder := range []string{filepath.Dir(g.path), g.folder} {
		nowhere(t, folder, password, "YW5uOnA6dy") // and what basic makes of it
	}
}

// nowhere checks that no file in a folder has one of these texts in it.
func nowhere(t *testing.T, folder string, texts ...string) {
	t.Helper()
	seen := 0
	must(t, filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		seen++
		for _, text := range texts {
			if strings.Contains(string(raw), text) {
				t.Errorf("%s has the secret in it", path)
			}
		}
		return err
	}))
	if seen == 0 {
		t.Errorf("nothing in %s", folder)
	}
}

// TestCredentials_Unusable: without its credential, or without the key that decrypts it, an item
// waits as a system fault that says what to do. Nothing is sent with an undecrypted credential.
// After the fix the item continues.
func TestCredentials_Unusable(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.profile("other", registry.Profile{Owner: "ark:/99999/other", Collections: []string{"ark:/99999/other"}})
	g.setBasic("other")
	job := g.job(registry.Spec{Type: registry.FileType, URL: g.site.put("f", "a file"), Filename: "f"})
	g.advance(job, registry.Download)
	fails := func(words ...string) {
		t.Helper()
		g.wait(12 * 3600e9)
		_, _ = g.run(job)
		it := g.item(job)
		if it.Status != registry.Pending || it.Stage != registry.Download {
			t.Errorf("stage=%s status=%s, want it to wait: %s", it.Stage, it.Status, it.Note)
		}
		wantClassOf(t, it, words...)
		w, err := g.registry.Why(t.Context(), job)
		must(t, err)
		if !strings.Contains(w.Act, "holdfast collection credential set") || strings.Contains(w.Act, "nothing") {
			t.Errorf("what lets it go on: %q", w.Act)
		}
	}
	fails("401", "collection credential set")

	// Another collection's credential, put in this one's place behind the Registry's back.
	must(t, g.registry.RemoveCredential(t.Context(), "other", g.origin, "tester"))
	moved := registry.Credential{Collection: "other", Origin: g.origin, Kind: registry.CredentialBasic, Name: sitesOwner}
	sealed, err := g.keys.Seal(password, moved.About()...)
	must(t, err)
	moved.Collection, moved.Sealed = collection, sealed
	must(t, g.registry.PutCredential(t.Context(), moved))
	sent := g.denied.Load()
	fails("changed, or belongs elsewhere", "set the credential again")

	g.setBasic(collection)
	other, err := secret.Parse("another key that has 32 characters or more")
	must(t, err)
	g.setKeys(other)
	fails("not among those given", "HOLDFAST_SECRET_KEY")
	g.setKeys(nil)
	fails("no key", "HOLDFAST_SECRET_KEY")
	if g.denied.Load() != sent {
		t.Error("a request was sent without the credential that it needs")
	}
	g.setKeys(g.keys)
	g.wait(12 * 3600e9)
	g.valid(g.complete(job), 1)
}

func wantClassOf(t *testing.T, it registry.WorkItem, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(it.Note, w) {
			t.Errorf("note %q does not say %q", it.Note, w)
		}
	}
	if strings.Contains(it.Note, password) {
		t.Errorf("note %q tells the secret", it.Note)
	}
}

// TestCredentials_Bucket: a manifest's s3:// rows are fetched by the collection's credential for
// the bucket; a bucket without one gets no request.
func TestCredentials_Bucket(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	g := newGuarded(t)
	g.setBasic(collection)
	must(t, os.WriteFile(filepath.Join(server.Folder, "a b.txt"), []byte("in a bucket"), 0o600))
	g.set(registry.Credential{
		Collection: collection, Origin: "s3://" + s3test.Bucket, Kind: registry.CredentialS3, Name: "test", Endpoint: server.Endpoint, PathStyle: true,
	}, "test-secret")
	g.site.manifest("object.checkm", checkm.Object,
		checkm.Row{URL: "s3://" + s3test.Bucket + "/a%20b.txt", Name: "a b.txt", Size: 11}, checkm.Row{URL: g.site.put("w", "web"), Name: "w"})
	job := g.job(registry.Spec{Type: registry.ObjectManifest, URL: g.site.url + "object.checkm", Filename: "object.checkm"})
	o := g.complete(job)
	if diff := cmp.Diff(map[string]string{"a b.txt": "in a bucket", "w": "web"}, g.producer(o, 1)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	it := g.fails(g.job(registry.Spec{Type: registry.FileType, URL: "s3://another-bucket/x", Filename: "x"}))
	wantClass(t, it, registry.SystemFault, "no credential", "s3://another-bucket", "collection credential set")
	it = g.fails(g.job(registry.Spec{Type: registry.FileType, URL: "s3://" + s3test.Bucket + "/none", Filename: "x"}))
	isContent(t, it, "NoSuchKey", "404")
}

// TestCredentials_InRow: a row with a password in its address fails alone, and its record has no
// password.
func TestCredentials_InRow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	bad := strings.Replace(r.site.put("a", "a"), "://", "://ann:geheim@", 1)
	text := "#%checkm_0.7\n#%profile | " + checkm.FileBatch.ProfileURI() + "\n#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\n" +
		bad + " | | | | | a\n" + r.site.put("b", "b") + " | | | | | b\n#%eof\n"
	jobs := r.expand(r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.put("batch.checkm", text)}))
	if len(jobs) != 2 || jobs[0].Status != registry.Failed || jobs[1].Status == registry.Failed {
		t.Fatalf("jobs %+v, want the first one failed", jobs)
	}
	isContent(t, jobs[0], "url-secret")
	if kept := string(jobs[0].Spec) + jobs[0].Note; strings.Contains(kept, "geheim") {
		t.Errorf("kept: %s", kept)
	}
	nested := r.fails(r.job(registry.Spec{Type: registry.FileType, URL: bad, Filename: "a"}))
	isContent(t, nested, "credentials in it")
}
