package sqlstore_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// BenchmarkBatchProgress counts a batch of many jobs and reports the growth of this process,
// because SQLite's memory is outside Go's heap. It needs Linux.
func BenchmarkBatchProgress(b *testing.B) {
	for _, jobs := range []int{10_000, 300_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "registry.db")
			s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: "sqlite:" + path})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			batch := expandingBatch(b, s).ItemID
			db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)")
			if err != nil {
				b.Fatal(err)
			}
			_, err = db.ExecContext(b.Context(), fmt.Sprintf(prefill, jobs)+`UPDATE work_item SET parent_id = '`+batch+`' WHERE action = 'ingest';`)
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
			var p registry.BatchProgress
			before := memory(b, "VmRSS:")
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the most so far is what is used now
				b.Skip(err)
			}
			for b.Loop() {
				if p, err = s.BatchProgress(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if p.Jobs != int64(jobs) || p.Completed != p.Jobs*9/10 || p.Open != p.Jobs/10 {
				b.Errorf("%+v", p)
			}
			b.ReportMetric(float64(memory(b, "VmHWM:")-before)/(1<<20), "growth-MiB")
		})
	}
}

// memory is a figure of /proc/self/status, in bytes.
func memory(b *testing.B, name string) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := bytes.Cut(status, []byte(name))
	fields := bytes.Fields(rest)
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib << 10
}
