package api_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/web/api/checkpoint"
)

// dying is a store whose writers write up to a number of bytes, and then as after a kill: nothing
// more is written, committed or thrown away.
type dying struct {
	storage.Store
	after int
}

var errKilled = errors.New("killed")

func (d *dying) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := d.Store.Create(ctx, key)
	return &dyingWriter{Writer: w, d: d}, err
}

type dyingWriter struct {
	storage.Writer
	d *dying
}

// Write writes one byte after the other, so that a kill can come between any two.
func (w *dyingWriter) Write(p []byte) (int, error) {
	for i := range p {
		if w.d.after == 0 {
			return i, errKilled
		}
		w.d.after--
		if _, err := w.Writer.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func (w *dyingWriter) Commit(ctx context.Context) (storage.Info, error) {
	if w.d.after == 0 {
		return storage.Info{}, errKilled
	}
	w.d.after--
	return w.Writer.Commit(ctx)
}

func (w *dyingWriter) Abort() error { return w.Close() }

// TestCheckpointer_Kills kills a process at each call while it writes a checkpoint, in a folder and
// in a bucket. No incomplete checkpoint remains, and the next process writes it.
func TestCheckpointer_Kills(t *testing.T) {
	for name, open := range map[string]func(*testing.T, *bench) storage.Store{
		"folder": nil,
		"S3": func(t *testing.T, _ *bench) storage.Store {
			server := s3test.Start(t)
			s3test.Setenv(t)
			s, err := s3.Open(t.Context(), server.Address("objects"))
			must(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, r, _ := audited(t)
			b.preserve(t, objectARK, testFiles())
			store := b.objects.Store()
			if open != nil {
				store = open(t, b)
			}
			d := &dying{Store: store, after: -1}
			root, err := ocfl.OpenRoot(t.Context(), d, "", nil)
			must(t, err)
			at := ocfl.Roots{{Root: root, Name: registry.DefaultStorage, Address: "file:///objects"}}
			day := time.Date(2026, 8, 1, 23, 59, 0, 0, time.UTC)
			write := func() error {
				c := checkpoint.Checkpointer{Registry: r, Objects: at, Now: func() time.Time { return day }}
				return c.Make(t.Context())
			}
			there := func() (names []string) {
				for info, err := range store.List(t.Context(), root.CheckpointKey("")) {
					must(t, err)
					names = append(names, info.Key)
				}
				return names
			}
			must(t, write())
			if len(there()) != 1 {
				t.Fatalf("there are %v", there())
			}
			whole, err := storage.ReadAll(t.Context(), store, there()[0], 1<<20)
			must(t, err)
			before := len(there())
			for _, after := range []int{0, 1, len(whole) / 2, bytes.IndexByte(whole, '\n') + 1, len(whole) - 1, len(whole)} {
				day = day.AddDate(0, 0, 1)
				d.after = after
				if err := write(); !errors.Is(err, errKilled) {
					t.Fatalf("killed after %d bytes of %d: %v", after, len(whole), err)
				}
				d.after = -1
				if got := there(); len(got) != before {
					t.Errorf("killed after %d bytes: %v, want %d", after, got, before)
				}
				report, err := checkpoint.Audit(t.Context(), r, at[0], "")
				must(t, err)
				if !report.Valid || report.Name == "" || report.Objects != 1 {
					t.Errorf("killed after %d bytes: %+v", after, report)
				}
				must(t, write())
				must(t, write())
				if got := there(); len(got) != min(before+1, 7) {
					t.Errorf("after a kill: %v, want %d", got, min(before+1, 7))
				}
				before = len(there())
			}
		})
	}
}
