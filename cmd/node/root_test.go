package node

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
)

// TestOpenRoot: the address of preservation storage says in which layout a new root is made; a root that exists keeps its own.
func TestOpenRoot(t *testing.T) {
	t.Parallel()
	n := &Node{Common: Common{Log: slog.New(slog.DiscardHandler)}}
	t.Cleanup(func() {
		for _, closes := range n.closers {
			if err := closes(); err != nil {
				t.Error(err)
			}
		}
	})
	address := "file://" + t.TempDir()
	flat := address + "?layout=" + url.QueryEscape("0006,delimiter=/")
	for _, a := range []string{flat, address, flat} {
		root, err := n.openRoot(t.Context(), a)
		if err != nil {
			t.Fatalf("open %s: %v", a, err)
		}
		if key, err := root.ObjectKey("ark:/99999/fk4x"); key != "fk4x" || err != nil {
			t.Errorf("key = %q, %v, want fk4x", key, err)
		}
	}
	_, err := n.openRoot(t.Context(), address+"?layout=0004")
	if !errors.Is(err, ocfl.ErrLayout) || !strings.Contains(err.Error(), "leave layout out") {
		t.Errorf("another layout: err = %v, want ErrLayout and what to do", err)
	}
	for _, a := range []string{address + "?layout=0006", address + "?layout=hunter2&x=y", address + "?x=y"} {
		if _, err := n.openRoot(t.Context(), a); err == nil {
			t.Errorf("%s was opened", a)
		}
	}
	plain, err := n.openRoot(t.Context(), "file://"+t.TempDir())
	if err != nil || plain.Layout().Name() != "0004-hashed-n-tuple-storage-layout" {
		t.Errorf("the default: %v, %v", plain, err)
	}
}
