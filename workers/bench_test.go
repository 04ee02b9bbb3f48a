package workers_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// many is a source of a manifest of any number of rows, and of the files that it names.
type many struct {
	rows int
	head atomic.Int64
}

func (m *many) Head(context.Context, string) (source.Info, error) {
	m.head.Add(1)
	return source.Info{Size: 1}, nil
}

func (m *many) Open(_ context.Context, rawURL string, _ source.Point) (*source.Body, error) {
	if !strings.HasSuffix(rawURL, "/manifest") {
		return &source.Body{ReadCloser: io.NopCloser(strings.NewReader("x")), Info: source.Info{URL: rawURL, Size: 1}}, nil
	}
	in, out := io.Pipe()
	go func() {
		_, _ = fmt.Fprintf(out, "#%%checkm_0.7\n#%%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n")
		for i := range m.rows {
			_, _ = fmt.Fprintf(out, "http://many/files/%d | | | 1 | | folder/%d.txt\n", i, i)
		}
		_, _ = fmt.Fprintf(out, "#%%eof\n")
		_ = out.Close()
	}()
	return &source.Body{ReadCloser: in, Info: source.Info{URL: rawURL, Size: -1}}, nil
}

// shallow is a staging store that keeps lists and manifests, and of files nothing but that they are
// there.
type shallow struct{ storage.Store }

func (s shallow) Create(ctx context.Context, key string) (storage.Writer, error) {
	if strings.Contains(key, ".files") {
		return devNull{}, nil
	}
	return s.Store.Create(ctx, key)
}

type devNull struct{ storage.Writer }

func (devNull) Write(p []byte) (int, error) { return len(p), nil }

func (devNull) Commit(context.Context) (storage.Info, error) { return storage.Info{}, nil }

func (devNull) Abort() error { return nil }

func (devNull) Close() error { return nil }

// BenchmarkRows estimates and downloads jobs with many files. Memory must not grow with their
// number.
func BenchmarkRows(b *testing.B) {
	for _, rows := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				benchRows(b, rows)
			}
		})
	}
}

func benchRows(b *testing.B, rows int) {
	b.Helper()
	r := newRig(b, nil)
	r.deps.Source, r.deps.Staging = func(string) source.Fetcher { return &many{rows: rows} }, shallow{r.staging}
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: "http://many/manifest", Filename: "m"})
	var peak atomic.Uint64
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
	}()
	r.advance(job, registry.Process)
	close(done)
	<-ended
	if it := r.item(job); it.Files != int64(rows) {
		b.Fatalf("%d files", it.Files)
	}
	b.ReportMetric(float64(peak.Load())/(1<<20), "MiB-peak")
}
