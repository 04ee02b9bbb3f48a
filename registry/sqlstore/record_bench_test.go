package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// BenchmarkRecord records a version of many files like a worker: 500 rows a transaction, then one
// that makes it visible, with its receipt. Meanwhile another item renews its lease; its longest
// wait is that of the longest transaction (R25). The heap must not grow with the number of files.
func BenchmarkRecord(b *testing.B) {
	for _, files := range []int{1_000, 360_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			for b.Loop() {
				benchRecord(b, files)
			}
		})
	}
}

func benchRecord(b *testing.B, files int) {
	b.Helper()
	ctx := b.Context()
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: sqlstoretest.SQLite(b), ReceiptKey: sqlstoretest.ReceiptKey(b)})
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	must(err)
	defer func() { must(s.Close()) }()
	must(s.PutCollection(ctx, registry.Collection{Mnemonic: "c", Profile: registry.Profile{Owner: "o"}}, "a"))
	lease := func(name string) registry.Lease {
		_, err := s.Submit(ctx, registry.Submission{Collection: "c", Spec: registry.Spec{URL: "http://h/" + name, Type: registry.FileType}, Actor: "a"})
		must(err)
		c, err := s.Claim(ctx, registry.ClaimRequest{Stage: registry.Expand, Worker: "w", RequestID: name, Lease: time.Hour})
		must(err)
		return c.Lease
	}
	mine, other := lease("mine"), lease("other")
	const ark = "ark:/99999/fk4many"
	_, err = s.Identify(ctx, mine, registry.IdentifyRequest{Owner: "o", LocalIDs: []string{"l"}, Proposed: ark})
	must(err)
	_, err = s.Intend(ctx, mine, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage(`{}`)})
	must(err)
	var peak, longest atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			begun := time.Now()
			_, err := s.Renew(ctx, registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w"}, Lease: time.Hour, Beats: []registry.Beat{{Lease: other}}})
			if err != nil {
				b.Error(err)
			}
			longest.Store(max(longest.Load(), uint64(time.Since(begun))))
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	runtime.GC()
	begun := time.Now()
	rows := make([]registry.File, 0, 500)
	for i := range files {
		path := fmt.Sprintf("producer/folder-%03d/file-%06d.tif", i%200, i)
		rows = append(rows, registry.File{
			Path: path, Version: 1, ContentPath: "v1/content/" + path, SizeBytes: 5, MIMEType: "image/tiff",
			Digests: map[string]string{"sha512": fmt.Sprintf("%0128x", i), "md5": fmt.Sprintf("%032x", i)},
		})
		if len(rows) == cap(rows) || i == files-1 {
			must(s.RecordFiles(ctx, mine, ark, 1, rows))
			rows = rows[:0]
		}
	}
	entered := time.Since(begun)
	begun = time.Now()
	must(s.RecordVersion(ctx, mine, registry.VersionRecord{
		ObjectID: ark, Version: 1, Collection: "c", Owner: "o", Files: int64(files), SizeBytes: 5 * int64(files), CreatedAt: time.Now(),
		Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}},
	}))
	b.ReportMetric(time.Since(begun).Seconds(), "s-visible")
	b.ReportMetric(entered.Seconds(), "s-rows")
	close(done)
	<-ended
	b.ReportMetric(float64(peak.Load())/(1<<20), "MiB-peak")
	b.ReportMetric(time.Duration(longest.Load()).Seconds()*1000, "ms-longest-wait")
}
