package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// opened opens the storage root at an address like a process whose Registry knows replicas there or
// not.
func opened(t *testing.T, address string, known func(context.Context, string) (bool, error)) (*ocfl.Root, error) {
	t.Helper()
	n := &Node{Common: Common{Log: slog.New(slog.DiscardHandler)}}
	t.Cleanup(func() {
		for _, closes := range n.closers {
			if err := closes(); err != nil {
				t.Error(err)
			}
		}
	})
	var found foundRoots
	if err := n.meet(t.Context(), found.find(n, []Storage{{registry.DefaultStorage, address}})); err != nil {
		return nil, err
	}
	roots, err := found.complete(t.Context(), n, "", known)
	return roots[0].Root, err
}

func empty(context.Context, string) (bool, error) { return false, nil }

// TestOpenRoot: the address of preservation storage names the layout of a new root. An existing
// root keeps its own.
func TestOpenRoot(t *testing.T) {
	t.Parallel()
	address := "file://" + t.TempDir()
	flat := address + "?layout=0006,delimiter=/" // as docs/operating.md has it
	for _, a := range []string{flat, address, flat} {
		root, err := opened(t, a, empty)
		if err != nil {
			t.Fatalf("open %s: %v", a, err)
		}
		if key, err := root.ObjectKey("ark:/99999/fk4x"); key != "fk4x" || err != nil {
			t.Errorf("key = %q, %v, want fk4x", key, err)
		}
	}
	_, err := opened(t, address+"?layout=0004", empty)
	if !errors.Is(err, ocfl.ErrLayout) || !strings.Contains(err.Error(), "leave layout out") {
		t.Errorf("another layout: err = %v, want ErrLayout and what to do", err)
	}
	for _, a := range []string{address + "?layout=0006", address + "?layout=hunter2&x=y", address + "?x=y"} {
		if _, err := opened(t, a, empty); err == nil {
			t.Errorf("%s was opened", a)
		}
	}
	plain, err := opened(t, "file://"+t.TempDir(), empty)
	if err != nil || plain.Layout().Name() != "0004-hashed-n-tuple-storage-layout" {
		t.Errorf("the default: %v, %v", plain, err)
	}
}

// TestOpenRoot_NotMounted: if the Registry knows replicas, no root is made and nothing is written.
func TestOpenRoot_NotMounted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	address := "file://" + folder
	for name, known := range map[string]func(context.Context, string) (bool, error){
		"replicas are known": func(_ context.Context, storage string) (bool, error) { return storage == registry.DefaultStorage, nil },
		"nobody can say":     func(context.Context, string) (bool, error) { return false, registry.ErrUnavailable },
	} {
		_, err := opened(t, address, known)
		var refused *NeedError
		if !errors.As(err, &refused) || refused.Setting != settingStorage || !strings.Contains(err.Error(), folder) || !strings.Contains(refused.Fix, "mount") {
			t.Errorf("%s: err = %v, want what is wrong with which storage, and what to do", name, err)
		}
		if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
			t.Errorf("%s: it wrote %v, %v", name, files, err)
		}
	}
	for _, want := range []bool{true, false} {
		layout, made, err := InitStorage(t.Context(), Common{Log: slog.New(slog.DiscardHandler)}, address)
		if err != nil || made != want || layout != "0004-hashed-n-tuple-storage-layout" {
			t.Errorf("begun anew: %q, %v, %v", layout, made, err)
		}
	}
	if _, err := opened(t, address, func(context.Context, string) (bool, error) { return true, nil }); err != nil {
		t.Errorf("a storage that was begun anew: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.doc"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := InitStorage(t.Context(), Common{Log: slog.New(slog.DiscardHandler)}, "file://"+other); !errors.Is(err, ocfl.ErrLayout) {
		t.Errorf("a folder that is not empty: %v", err)
	}
}

// told is the knowledge of a Registry's database.
type told struct {
	had     bool
	other   bool // it knows objects in another storage
	objects []string
	here    []string // recorded in the storage
	err     error
}

const testSource = "urn:uuid:6f1d1bb2-96a5-4c46-a30a-7a5e0a1d6a11"

func (k told) HadReplicas(context.Context, string) (bool, error) { return k.had, k.err }
func (k told) Source(context.Context) (string, error)            { return testSource, nil }

func (k told) Replicated(context.Context, string, int) ([]string, error) { return k.here, k.err }

func (k told) HadObjects(context.Context) (bool, error) { return k.had || k.other, k.err }

func (k told) KnowsObject(_ context.Context, id string) (bool, error) {
	return slices.Contains(k.objects, id), k.err
}

// TestStorageOfAnother: a Registry that never recorded anything in a storage starts there only if
// it knows what it finds: nothing, or an object that it announced, or after a person accepted the
// storage.
func TestStorageOfAnother(t *testing.T) {
	t.Parallel()
	quiet := Common{Log: slog.New(slog.DiscardHandler)}
	n := &Node{Common: quiet}
	var all []Storage
	for _, name := range []string{registry.DefaultStorage, "second"} {
		all = append(all, Storage{name, "file://" + t.TempDir()})
		if _, _, err := InitStorage(t.Context(), quiet, all[len(all)-1].Address); err != nil {
			t.Fatal(err)
		}
	}
	var found foundRoots
	if err := n.meet(t.Context(), found.find(n, all)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, closes := range n.closers {
			if err := closes(); err != nil {
				t.Error(err)
			}
		}
	})
	judge := func(known told) error { return found.judge(t.Context(), n, known) }
	if err := judge(told{}); err != nil {
		t.Errorf("storages without objects: %v", err)
	}

	second := found.roots[1].Root
	const id = "ark:/99999/fk4stranger"
	folder, err := second.ObjectKey(id)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, content string) {
		t.Helper()
		if _, err := storage.Put(t.Context(), second.Store(), folder+name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	put("/0=ocfl_object_1.1", "ocfl_object_1.1\n")
	put("/v1/content/a", "a")
	if err := judge(told{}); err != nil {
		t.Errorf("an object whose first version is not committed: %v", err)
	}
	put("/inventory.json", `{"id":"`+id+`","type":"https://ocfl.io/1.1/spec/#inventory","digestAlgorithm":"sha512","head":"v1","contentDirectory":"content"`)
	err = judge(told{})
	var refused *NeedError
	if !errors.Is(err, errUnknownObjects) || !errors.As(err, &refused) || !strings.Contains(err.Error(), `"second"`) || strings.Contains(err.Error(), `"storage"`) ||
		!strings.Contains(err.Error(), id) || !strings.Contains(refused.Fix, "backup") || !strings.Contains(refused.Fix, "holdfast storage accept "+all[1].Address+" --registry "+testSource) {
		t.Errorf("a strange object: %v, want which storage, which object and what to do", err)
	}
	err = judge(told{other: true})
	if !errors.Is(err, errUnknownObjects) || !errors.As(err, &refused) || strings.Contains(refused.Fix, "empty database") ||
		!strings.Contains(refused.Fix, "accept the loss") || !strings.HasSuffix(refused.Fix, "holdfast storage accept "+all[1].Address+" --registry "+testSource) {
		t.Errorf("a database that knows objects elsewhere: %v, %+v, want words that fit", err, refused)
	}
	for name, known := range map[string]told{"announced": {objects: []string{id}}, "recorded": {had: true}} {
		if err := judge(known); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nothing of what was recorded in a storage is there, and something else is: it was swapped.
	err = judge(told{had: true, here: []string{"ark:/99999/fk4own"}})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), "ark:/99999/fk4own") || !strings.Contains(refused.Fix, "mount the right volume") {
		t.Errorf("a swapped storage: %v, want it refused", err)
	}
	if err := judge(told{had: true, here: []string{"ark:/99999/fk4own", id}}); err != nil {
		t.Errorf("a storage with a lost object: %v", err)
	}
	if err := judge(told{err: registry.ErrUnavailable}); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("nobody can say: %v", err)
	}
	for _, bad := range []string{"", "source", "urn:uuid:../../../../../../../../../../../../x"} {
		if err := AcceptStorage(t.Context(), quiet, all[1].Address, bad); !errors.Is(err, ocfl.ErrRegistryName) {
			t.Errorf("accepted for %q: %v", bad, err)
		}
	}
	if err := AcceptStorage(t.Context(), quiet, "file://"+t.TempDir(), testSource); !errors.Is(err, errNoRoot) {
		t.Errorf("accepted without a root: %v", err)
	}
	for range 2 {
		if err := AcceptStorage(t.Context(), quiet, all[1].Address, testSource); err != nil {
			t.Fatal(err)
		}
	}
	if err := judge(told{}); err != nil {
		t.Errorf("accepted: %v", err)
	}
}

// Staging that several users of a group share stays the group's, and is closed to others.
func TestTightenStaging(t *testing.T) {
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"s3://bucket" + folder, "file://" + folder, "file://" + folder} {
		tightenStaging(t.Context(), slog.New(slog.DiscardHandler), address)
		want := os.FileMode(0o770)
		if strings.HasPrefix(address, "s3:") {
			want = 0o777
		}
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", address, info.Mode(), err, want)
		}
	}
}
