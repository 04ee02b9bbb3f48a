package e2e

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/clamd/clamdtest"
	"github.com/holdfast/holdfast/internal/cfntest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// secondBucket is the bucket of the storage second.
const secondBucket = "second"

// TestRoles_Permissions takes deposits through a fleet with one process for each stage. In front of S3
// stands what IAM does: a process may only do what its role in ecs/services.yaml allows. Objects are
// made, updated, checked, mended, restored and deleted, and nothing is refused. Each stage and what docs/tracing.md names
// below it has a span.
func TestRoles_Permissions(t *testing.T) {
	t.Parallel()
	source, clam := newChaosSource(t, 1), clamdtest.Start(t)
	received := &spans{}
	otel := httptest.NewServer(received)
	t.Cleanup(otel.Close)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	var front *guarded
	var server *s3test.Server
	var stages []string
	for _, stage := range registry.Stages() {
		stages = append(stages, string(stage))
	}
	f := newFleet(t, fleetSpec{
		s3: true, workers: stages, env: []string{"HOLDFAST_CLAMD_ADDR=" + clam.Socket, "HOLDFAST_TRACES_URL=" + otel.URL},
		inFront: func(s *s3test.Server) (staging, storage string) {
			server, front = s, guard(t, s.Endpoint)
			if err := os.Mkdir(filepath.Join(filepath.Dir(s.Folder), secondBucket), 0o755); err != nil {
				t.Fatal(err)
			}
			second := strings.Replace(s3test.Address(front.URL, "storage"), s3test.Bucket, secondBucket, 1)
			return s3test.Address(front.URL, "staging"), s3test.Address(front.URL, "storage") + " second=" + second
		},
	})
	f.collection("kept", `"scan": true, "storages": ["storage", "second"], "callback": {"url": "`+receiver.URL+`"}`)

	var another string
	for _, payload := range []string{"/files.checkm", "/manifests.checkm", "/containers.checkm", "/bag.zip"} {
		s, code := f.submit(source.url+payload, "--collection", "kept")
		if code != 0 || len(s.Jobs) == 0 {
			t.Fatalf("submit %s: exit=%d summary=%+v", payload, code, s)
		}
		another = s.Jobs[0].ObjectID
	}
	file := filepath.Join(t.TempDir(), "uploaded.txt")
	var ark string
	for _, text := range []string{"alpha", "beta"} { // an upload, and an update of its object
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := f.submit(file, "--collection", "kept", "--local-id", "l1")
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("upload: exit=%d summary=%+v", code, s)
		}
		ark = s.Jobs[0].ObjectID
	}
	f.must(0, "object", "verify", "--all")

	// What was downloaded is damaged before it is scanned: it is downloaded again.
	f.must(0, "hold", "add", "--scope", "stage", "--key", "scan", "--reason", "damage it")
	late := f.begin(source.url+"/bag.zip", "--collection", "kept", "--force")
	f.until("it is downloaded", func() bool { return len(f.list("stage:scan", "status:pending")) == 1 })
	if n := damageAll(t, filepath.Join(server.Folder, "staging", "items")); n == 0 {
		t.Error("nothing was downloaded")
	}
	f.must(0, "hold", "remove", "--scope", "stage", "--key", "scan")
	f.must(0, "watch", late)
	f.must(0, "item", "redeliver", f.job(late).ID, "--reason", "say it again")

	damage(t, contentNamed(t, filepath.Join(server.Folder, "storage"), "uploaded.txt"))
	f.must(0, "object", "fixity", ark, "--reason", "the disk sounds odd")
	f.until("the file is mended", func() bool { return f.run("object", "verify", ark).code == 0 })
	f.until("the damage and the mend are told beside the bytes", func() bool {
		for _, bucket := range []string{server.Folder, filepath.Join(filepath.Dir(server.Folder), secondBucket)} {
			segments := 0
			err := filepath.WalkDir(filepath.Join(bucket, "storage"), func(path string, _ fs.DirEntry, err error) error {
				if strings.HasPrefix(filepath.Base(path), "events-") && strings.Contains(path, "/extensions/holdfast-evidence/") {
					segments++
				}
				return err
			})
			if err != nil || segments == 0 {
				return false
			}
		}
		return true
	})
	f.must(0, "object", "restore", ark, "--out", filepath.Join(t.TempDir(), "restored.tar"))

	// What failed is deleted by an act on all that match. It is cleaned up minutes later.
	if s, code := f.submit(source.url+"/there-is-no-such-file", "--collection", "kept"); code == 0 {
		t.Errorf("a missing file is preserved: %+v", s)
	}
	f.must(0, "item", "delete", "--match", "state:failed", "--yes", "--reason", "it is not there")
	f.until("it is deleted", func() bool { return len(f.list("state:failed")) == 0 })
	f.run("queue", "orphans", "--storages") // its exit code says whether it has found something

	// A collection gets a second storage, which is filled with what it has.
	f.collection("alone", `"storages": ["storage"]`)
	if s, code := f.submit(file, "--collection", "alone"); code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("upload: exit=%d summary=%+v", code, s)
	}
	if r := f.run("storage", "add", "second", "--collection", "alone", "--dry-run"); r.code != 0 || !strings.Contains(r.stderr, "to be copied: 1 object,") {
		t.Errorf("it would do: %d %s", r.code, r.stderr)
	}
	f.must(0, "storage", "add", "second", "--collection", "alone", "--yes", "--reason", "one copy is none")
	f.until("the storage is filled", func() bool { return len(f.list("state:completed", "action:copy")) == 1 })
	f.must(0, "object", "verify", "--all")
	if r := f.run("storage", "list"); r.code != 0 || !strings.Contains(r.stdout, "second") {
		t.Errorf("storages: %d %s%s", r.code, r.stdout, r.stderr)
	}

	ben, _ := f.token("--name", "ben", "--role", "operator")
	ann, _ := f.token("--name", "ann", "--role", "admin")
	if r := f.as(ben, "object", "delete", another, "--reason", "rights were withdrawn"); r.code != 0 {
		t.Errorf("asked: %d %s", r.code, r.stderr)
	}
	if r := f.as(ann, "object", "delete", another, "--approve"); r.code != 0 {
		t.Errorf("approved: %d %s", r.code, r.stderr)
	}
	f.until("the object is deleted", func() bool { return len(f.list("state:completed", "action:delete")) == 1 })
	f.stopAll()

	traced := received.names()
	for _, name := range append(documentedSpans(t), stages...) {
		if traced[name] == 0 {
			t.Errorf("no span %q: %v", name, traced)
		}
	}
	front.mu.Lock()
	defer front.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(front.refused)) {
		t.Error(text)
	}
	for _, role := range append(stages, "registry") {
		if len(front.done[role]) == 0 {
			t.Errorf("%s asked S3 for nothing: it was not tried", role)
		}
		t.Logf("%s: %v", role, slices.Sorted(maps.Keys(front.done[role])))
	}
}

// damageAll changes a byte in each file below a folder, and returns how many there are.
func damageAll(t *testing.T, folder string) (n int) {
	t.Helper()
	must(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			n++
			damage(t, path)
		}
		return err
	}))
	return n
}

// documentedSpans returns the names of the spans in docs/tracing.md, but those of programs with functions,
// see TestTraces.
func documentedSpans(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/tracing.md")
	must(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			if name = strings.Trim(name, "`"); !strings.Contains(name, ":") {
				names = append(names, name)
			}
		}
	}
	if len(names) < 10 {
		t.Fatalf("docs/tracing.md has the spans %v", names)
	}
	return names
}

// guarded is an S3 server that asks the policies of ecs/services.yaml first.
type guarded struct {
	*httptest.Server
	allowed map[string][]cfntest.Statement // by role

	mu      sync.Mutex
	refused map[string]bool
	done    map[string]map[string]bool // by role: action and place
}

// guard starts a server in front of another.
func guard(t *testing.T, endpoint string) *guarded {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{allowed: map[string][]cfntest.Statement{}, refused: map[string]bool{}, done: map[string]map[string]bool{}}
	template := cfntest.Load(t, "../ecs/services.yaml")
	with := cfntest.Values{
		Parameters: map[string]any{"SecondBucket": secondBucket, "SecondRegion": "us-east-1"},
		Imports:    map[string]string{"StagingBucket": s3test.Bucket, "StorageBucket": s3test.Bucket},
	}
	for id := range template.Resources {
		if name, ok := strings.CutSuffix(id, "Role"); ok && !strings.HasPrefix(id, "Nsqd") {
			if g.allowed[strings.ToLower(name)], err = template.Allowed(id, with); err != nil {
				t.Fatal(err)
			}
		}
	}
	transport := &http.Transport{}
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Host = r.In.Host // what the request was signed for
	}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.permits(r) {
			forward.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>the role does not allow it</Message></Error>")
	}))
	t.Cleanup(func() { g.Close(); transport.CloseIdleConnections() })
	return g
}

var appID = regexp.MustCompile(`\bapp/(\S+)`)

// permits reports whether the role of the process that sent a request allows it.
func (g *guarded) permits(r *http.Request) bool {
	role := ""
	if m := appID.FindStringSubmatch(r.UserAgent()); m != nil {
		role = m[1]
	}
	actions, err := actionsOf(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done[role] == nil {
		g.done[role] = map[string]bool{}
	}
	if err != nil {
		g.refused[fmt.Sprintf("%s sent %s %s: %v", role, r.Method, r.URL, err)] = true
		return false
	}
	for _, a := range actions {
		if !cfntest.Allows(g.allowed[role], a.name, "arn:aws:s3:::"+a.resource) {
			g.refused[fmt.Sprintf("%s may not %s %s", role, a.name, a.resource)] = true
			return false
		}
		bucket, key, _ := strings.Cut(a.resource, "/")
		place, rest, _ := strings.Cut(key, "/")
		if !strings.HasPrefix(rest, "extensions/holdfast-scratch/probe/") { // of each start
			g.done[role][a.name+" "+bucket+"/"+place] = true
		}
	}
	return true
}

// action is what IAM calls a request, and its bucket with the key.
type action struct{ name, resource string }

// actionsOf returns what a request needs to be allowed.
func actionsOf(r *http.Request) ([]action, error) {
	resource := strings.TrimPrefix(r.URL.Path, "/")
	bucket, key, _ := strings.Cut(resource, "/")
	q := r.URL.Query()
	if key == "" {
		switch {
		case r.Method == http.MethodGet && q.Has("uploads"):
			return []action{{"s3:ListBucketMultipartUploads", bucket}}, nil
		case r.Method == http.MethodHead, r.Method == http.MethodGet && q.Has("list-type"):
			return []action{{"s3:ListBucket", bucket}}, nil
		case r.Method == http.MethodPost && q.Has("delete"):
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			var names struct {
				Object []struct{ Key string }
			}
			if err == nil {
				err = xml.Unmarshal(body, &names)
			}
			var all []action
			for _, o := range names.Object {
				all = append(all, action{"s3:DeleteObject", bucket + "/" + o.Key})
			}
			return all, err
		}
		return nil, fmt.Errorf("unknown here")
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return []action{{"s3:GetObject", resource}}, nil
	case http.MethodPut:
		all := []action{{"s3:PutObject", resource}}
		if from := r.Header.Get("X-Amz-Copy-Source"); from != "" {
			from, err := url.PathUnescape(strings.TrimPrefix(from, "/"))
			return append(all, action{"s3:GetObject", from}), err
		}
		return all, nil
	case http.MethodPost:
		if q.Has("restore") {
			return []action{{"s3:RestoreObject", resource}}, nil
		}
		return []action{{"s3:PutObject", resource}}, nil
	case http.MethodDelete:
		if q.Has("uploadId") {
			return []action{{"s3:AbortMultipartUpload", resource}}, nil
		}
		return []action{{"s3:DeleteObject", resource}}, nil
	}
	return nil, fmt.Errorf("unknown here")
}
