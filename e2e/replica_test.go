package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// TestReplicas: in a collection with three storages, two directories and S3, a version is complete
// when all have it, as is shown. Damage in one of them is reported, and the file is read from
// another.
func TestReplicas(t *testing.T) {
	t.Parallel()
	second := filepath.Join(t.TempDir(), "second")
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	bucket := s3test.Start(t)
	h := up(t, append(s3test.Env(), "HOLDFAST_STORAGE_URL=second=file://"+second+" third="+bucket.Address("third"))...)
	h.storedIn("kept", registry.DefaultStorage, "second", "third")
	folder := t.TempDir()
	for name, text := range map[string]string{"a.txt": "alpha", "b.txt": "beta"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, code := h.submit(folder, "--collection", "kept")
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	id := s.Jobs[0].ObjectID
	var o registry.Object
	if err := json.Unmarshal([]byte(h.must(0, "object", "show", id, "--json").stdout), &o); err != nil {
		t.Fatal(err)
	}
	if len(o.Versions) != 1 || len(o.Versions[0].Replicas) != 3 {
		t.Fatalf("versions %+v, want one with three replicas", o.Versions)
	}
	says(t, "the object", h.must(0, "object", "show", id).stdout, "storage", "second", "third")
	says(t, "the history", h.must(0, "item", "history", s.Jobs[0].ItemID).stdout, "replicate")
	says(t, "the events", h.must(0, "object", "events", id).stdout, "replication", "file://"+second)
	says(t, "a sound object", h.must(0, "object", "verify", id).stdout, "sound", "in storage second")

	lost := contentNamed(t, filepath.Join(h.dir, "storage"), "a.txt")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	damage(t, contentNamed(t, second, "b.txt"))
	verdict := h.must(1, "object", "verify", id).stdout
	says(t, "a damaged object", verdict, "DAMAGED  in storage storage", "DAMAGED  in storage second", "sound    in storage third", "a.txt", "b.txt")
	got := h.exportAll(s)
	if got["a.txt"] != "alpha" || got["b.txt"] != "beta" {
		t.Errorf("exported %v", got)
	}
}

// storedIn makes a collection whose versions are kept in these storages.
func (h *holdfast) storedIn(name string, storages ...string) {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{
		"owner": "ark:/99999/owner", "collections": []string{"ark:/99999/" + name}, "storages": storages,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	url, token := h.address()
	q, err := http.NewRequestWithContext(h.t.Context(), http.MethodPut, url+"/api/v1/collections/"+name, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		h.t.Fatalf("collection %s: %s", name, answer.Status)
	}
}

// contentNamed is the only producer's file of a name below a folder.
func contentNamed(t *testing.T, folder, name string) (found string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() == name && strings.Contains(path, "/content/producer/") {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no %s below %s (%v)", name, folder, err)
	}
	return found
}
