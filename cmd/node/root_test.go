package node

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// opened opens the storage root at an address as a process does, whose Registry says so of its replicas.
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
	roots, err := found.complete(t.Context(), n, known)
	return roots[0].Root, err
}

func empty(context.Context, string) (bool, error) { return false, nil }

// TestOpenRoot: the address of preservation storage says in which layout a new root is made; a root that exists keeps its own.
func TestOpenRoot(t *testing.T) {
	t.Parallel()
	address := "file://" + t.TempDir()
	flat := address + "?layout=" + url.QueryEscape("0006,delimiter=/")
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

// TestOpenRoot_NotMounted: where the Registry knows replicas no root is made, and nothing is written.
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
