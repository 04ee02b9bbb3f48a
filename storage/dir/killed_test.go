package dir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/internal/powerloss"
	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// successors are what a process does after another was killed between giving a file the name
// "a/b/key" and syncing the folder. Each ends with the object durable.
var successors = map[string]func(ctx context.Context, s *dir.Store) error{
	"rely": func(ctx context.Context, s *dir.Store) error { return storage.Rely(ctx, s, "a/b/key") },
	"create": func(ctx context.Context, s *dir.Store) error {
		_, err := storage.Put(ctx, s, "a/b/key", []byte("another"))
		return wantExists(err)
	},
	"batch": func(ctx context.Context, s *dir.Store) error {
		b := s.Batch()
		defer b.Close()
		if err := storage.PutIn(ctx, b, "a/b/key", []byte("another")); err != nil {
			return err
		}
		taken, err := b.Publish(ctx)
		if err == nil && len(taken) != 1 {
			err = fmt.Errorf("taken %q", taken)
		}
		return err
	},
	"show, then bytes": func(ctx context.Context, s *dir.Store) error {
		b := s.Batch()
		defer b.Close()
		if err := b.Rely(ctx, "a/b/key"); err != nil {
			return err
		}
		if err := storage.PutIn(ctx, b, "other", []byte("bytes")); err != nil {
			return err
		}
		_, err := b.Show(ctx)
		return err
	},
}

func wantExists(err error) error {
	if errors.Is(err, storage.ErrExists) {
		return nil
	}
	return fmt.Errorf("error=%w, want that it exists", err)
}

// act is what this binary does as a traced program: it makes the object, or does as a successor.
func act(path, what string) (err error) {
	var opts []dir.Option
	if what == crowdedBatch {
		opts = append(opts, dir.Crowded)
	}
	s, err := dir.Open(path, opts...)
	if err != nil {
		return err
	}
	defer s.Close()
	if what == crowdedBatch {
		return publishTwo(context.Background(), s)
	}
	if do, ok := successors[what]; ok {
		return do(context.Background(), s)
	}
	_, err = storage.Put(context.Background(), s, "a/b/key", []byte("bytes"))
	return err
}

// TestKilledBeforeItsSync checks that who relies on an object whose maker was killed, or finds its
// key taken, makes it durable first.
func TestKilledBeforeItsSync(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		proctest.Absent(t, "strace", err)
	}
	base := t.TempDir()
	run := func(t *testing.T, path, what string) (trace string) {
		t.Helper()
		trace = path + ".trace"
		cmd := powerloss.Command(trace, os.Args[0])
		cmd.Env = append(os.Environ(), "DIR_TEST_PATH="+path, "DIR_TEST_ACT="+what)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
		return trace
	}
	has := func(t *testing.T, image *powerloss.Image, err error) bool {
		t.Helper()
		path := filepath.Join(t.TempDir(), "image")
		if err == nil {
			err = image.Write(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(path, "a/b/key"))
		if err == nil && string(text) != "bytes" {
			t.Errorf("the object has %q", text)
		}
		return err == nil
	}
	first := filepath.Join(base, "first")
	if err := os.Mkdir(first, 0o755); err != nil {
		t.Fatal(err)
	}
	history, err := powerloss.Read(run(t, first, "make"), first)
	if err != nil {
		t.Fatal(err)
	}
	killed := -1
	for _, point := range history.Syncs() {
		seen, err := history.Seen(point)
		if has(t, seen, err) {
			killed = point
			break
		}
	}
	if worst, err := history.Worst(killed); has(t, worst, err) {
		t.Fatal("the object is durable as soon as it is seen")
	}
	for what := range successors {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			seen, err := history.Seen(killed)
			if err == nil {
				err = seen.Write(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			next, err := history.Continue(killed, run(t, path, what), path)
			if err != nil {
				t.Fatal(err)
			}
			if worst, err := next.Worst(next.Len()); !has(t, worst, err) {
				t.Error("the object was relied upon, and is lost")
			}
		})
	}
}
