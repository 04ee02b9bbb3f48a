package node_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/mint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T, dir string) node.UpOptions {
	t.Helper()
	template, err := mint.ParseTemplate("99999/fk4{.reeeeeeeek}")
	if err != nil {
		t.Fatal(err)
	}
	return node.UpOptions{
		Common: node.Common{Listen: "127.0.0.1:0", Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))},
		Work:   node.Work{Template: template, StagingFull: 1, StagingFullUnestimated: 1},
		Dir:    dir,
	}
}

func readClient(t *testing.T, dir string) node.Client {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, node.ClientFile))
	if err != nil {
		t.Fatal(err)
	}
	var c node.Client
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUp_ClientFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var tokens []string
	for range 2 {
		n, err := node.Up(t.Context(), options(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		c := readClient(t, dir)
		if c.URL != n.URL() || c.Token != n.Token() || c.Token == "" {
			t.Errorf("client file says %+v, the node %s and its token", c, n.URL())
		}
		tokens = append(tokens, c.Token)
		info, err := os.Stat(filepath.Join(dir, node.ClientFile))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("client file has mode %o, want 600", mode)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close again: %v", err)
		}
	}
	if tokens[0] != tokens[1] {
		t.Error("a restart made a new token although the Registry knew the last one")
	}
}

func TestUp_Refusals(t *testing.T) {
	dir := t.TempDir()
	n, err := node.Up(t.Context(), options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := node.Up(t.Context(), options(t, dir)); !errors.Is(err, node.ErrInUse) {
		t.Errorf("a second node on the folder: %v, want ErrInUse", err)
	}
	taken := options(t, t.TempDir())
	taken.Listen = n.URL()[len("http://"):]
	if _, err := node.Up(t.Context(), taken); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second node on the address: %v, want EADDRINUSE", err)
	}
	if left, _ := os.ReadDir(taken.Dir); len(left) > 1 {
		t.Errorf("the refused node left %d files behind", len(left))
	}
}
