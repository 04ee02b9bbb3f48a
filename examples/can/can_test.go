package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// source makes a folder with files.
func source(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for path, text := range map[string]string{"a.txt": "one", "deep/er/b.xml": "<two/>", "deep/c": "three"} {
		must(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600))
	}
	return folder
}

// TestCAN runs the graph: the tape has every file, and only the proxies' links are left.
func TestCAN(t *testing.T) {
	from, work, archive := source(t), t.TempDir(), filepath.Join(t.TempDir(), "archive")
	store, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t)})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	var m task.Mux
	g := Register(&m).Graph(from, work, archive)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- task.Serve(ctx, store, &m, task.Options{}) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	var p registry.PreparedGraph
	for limit := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // until the functions are announced
		if p, err = g.Submit(t.Context(), store, "curator", ""); err == nil {
			break
		}
		if !errors.Is(err, registry.ErrNotFound) || time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	for key, id := range p.Items {
		for limit := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			it, err := store.Item(t.Context(), id)
			must(t, err)
			if it.Status == registry.Completed {
				break
			}
			if it.Status.Settled() || time.Now().After(limit) {
				t.Fatalf("%s is %s: %s", key, it.Status, it.Note)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(archive, "deep/er/b.xml"))
	if err != nil || string(text) != "<two/>" {
		t.Errorf("the archive has %q, %v", text, err)
	}
	for tree, kept := range map[string]bool{"tape": false, "metadata": false, "proxy": true} {
		if _, err := os.Stat(filepath.Join(work, tree)); kept != (err == nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, kept should be %v", tree, err, kept)
		}
	}
	it, err := store.Item(t.Context(), p.Items["metadata"])
	must(t, err)
	var scan Scan
	must(t, json.Unmarshal(it.Results[registry.ResultReturned], &scan))
	if scan.Bytes != 14 || scan.Types["text/plain"] != 1 {
		t.Errorf("scan %+v", scan)
	}
}

// TestGraph_IsWhatTheProposalDraws looks at the graph without running it (C31).
func TestGraph_IsWhatTheProposalDraws(t *testing.T) {
	var m task.Mux
	g := Register(&m).Graph("/from", "/work", "/archive")
	must(t, g.Check())
	requires := map[string][]string{}
	for _, n := range g.Nodes() {
		for _, r := range n.Requires() {
			requires[n.Key] = append(requires[n.Key], r.Key)
		}
	}
	for key, want := range map[string][]string{
		"assets": nil, "tape-links": {"assets"}, "metadata-links": {"assets"}, "proxy-links": {"assets"},
		"tape": {"tape-links", "assets"}, "metadata": {"metadata-links"}, "clean-tape": {"tape"}, "clean-metadata": {"metadata"},
	} {
		if !slices.Equal(requires[key], want) {
			t.Errorf("%s requires %v, want %v", key, requires[key], want)
		}
	}
}

// TestSteps_AreSafeToRepeat stops a tree half-way and makes it again (C20).
func TestSteps_AreSafeToRepeat(t *testing.T) {
	from, to := source(t), filepath.Join(t.TempDir(), "tape")
	var m task.Mux
	f := Register(&m)
	assets, err := f.AssetTree.Test(t.Context(), task.TestRun(), Folder{from})
	must(t, err)
	text, err := json.Marshal(assets)
	must(t, err)
	parent := registry.Parent{Key: "assets", Status: registry.Completed, Result: text}
	must(t, os.MkdirAll(to+".test/half", 0o755)) // as a killed attempt leaves it
	for range 2 {
		_, err := f.LinkTree.Test(t.Context(), task.TestRun(parent), Link{to})
		must(t, err)
	}
	var found []string
	must(t, each(t.Context(), to, func(path string) error { found = append(found, path); return nil }))
	if want := []string{"a.txt", "deep/c", "deep/er/b.xml"}; !slices.Equal(found, want) {
		t.Errorf("tree %v, want %v", found, want)
	}
	_, err = f.AssetTree.Test(t.Context(), task.TestRun(), Folder{filepath.Join(from, "nowhere")})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(from, "nowhere")) {
		t.Errorf("%v, want that this folder does not exist", err)
	}
	must(t, os.WriteFile(filepath.Join(from, "a.txt"), []byte("changed"), 0o600))
	_, err = f.StoreTree.Test(t.Context(), task.TestRun(parent), Store{from, filepath.Join(t.TempDir(), "archive")})
	if err == nil {
		t.Error("a changed file was stored")
	}
}
