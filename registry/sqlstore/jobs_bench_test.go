package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/cputest"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// BenchmarkAddJobs adds the rows of one batch manifest as jobs, like expand: `-benchtime 50x` adds
// 20,000. Processor time is this process's, without PostgreSQL's. If the collection has a callback,
// bad rows are delivered.
func BenchmarkAddJobs(b *testing.B) {
	const portion = 400
	for _, database := range []struct {
		name string
		url  func() string
	}{
		{"sqlite", func() string { return "sqlite:" + filepath.Join(b.TempDir(), "registry.db") }},
		{"postgres", func() string { return sqlstoretest.Postgres(b) }},
	} {
		for _, kind := range []string{"good", "bad", "bad-told"} {
			b.Run(database.name+"/"+kind, func(b *testing.B) {
				s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: database.url()})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				batch := expandingBatch(b, s)
				jobs := make([]registry.NewJob, portion)
				row := 0
				before := cputest.Used(b)
				for b.Loop() {
					for i := range jobs {
						row++
						jobs[i] = registry.NewJob{
							Line: int64(row), Row: int64(row), Name: fmt.Sprintf("f%07d.tif", row), Priority: 99, Spec: registry.Spec{
								Type: registry.FileType, URL: fmt.Sprintf("https://data.example.org/collection/2026/f%07d.tif", row),
								Filename: fmt.Sprintf("f%07d.tif", row), SizeBytes: 1024, LocalIDs: []string{fmt.Sprintf("local-%07d", row)},
								Title: "A photograph", Creator: "Unknown", Profile: registry.Profile{Owner: "ark:/99999/fk4owner"},
							},
						}
						if kind != "good" {
							jobs[i].Fault, jobs[i].Code = "line is wrong", "E007"
						}
						if kind == "bad-told" {
							jobs[i].Spec.Profile.Callback = &registry.Callback{URL: "https://receiver.example.org/mc/{job}"}
						}
					}
					if _, err := s.AddJobs(b.Context(), batch, jobs); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(row), "µs/row")
				b.ReportMetric(float64((cputest.Used(b)-before).Microseconds())/float64(row), "cpu-µs/row")
			})
		}
	}
}

// expandingBatch submits a batch and claims its expansion.
func expandingBatch(b testing.TB, s *sqlstore.Store) registry.Lease {
	b.Helper()
	if err := s.PutCollection(b.Context(), registry.Collection{Mnemonic: "own"}, "admin"); err != nil {
		b.Fatal(err)
	}
	r, err := s.Submit(b.Context(), registry.Submission{Collection: "own"})
	if err != nil {
		b.Fatal(err)
	}
	c, err := s.Claim(b.Context(), registry.ClaimRequest{RequestID: "expand", Stage: registry.Expand, Hint: r.BatchID, Worker: "w", Lease: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	return c.Lease
}
