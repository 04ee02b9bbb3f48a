package sqlstore_test

import (
	"fmt"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// BenchmarkGraph prepares, seals and runs a graph of 10,000 tasks in 100 layers. Each task but those
// of the first layer requires two of the layer before. The targets: it seals in 2 s, and settling
// costs as much for each edge as in a small graph.
func BenchmarkGraph(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"SQLite": sqlstoretest.SQLite, "PostgreSQL": sqlstoretest.DurablePostgres} {
		for _, width := range []int{10, 100} {
			b.Run(fmt.Sprintf("%s/%d", name, 100*width), func(b *testing.B) {
				for range b.N {
					benchGraph(b, url(b), width)
				}
			})
		}
	}
}

func benchGraph(b *testing.B, url string, width int) {
	b.StopTimer()
	s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: url})
	must(b, err)
	defer func() { must(b, s.Close()) }()
	must(b, s.Announce(b.Context(), []registry.Function{{Name: "work"}}))
	const layers = 100
	var nodes []registry.Node
	for layer := range layers {
		for i := range width {
			n := registry.Node{Key: fmt.Sprintf("%d/%d", layer, i), Task: &registry.NewTask{Function: "work"}}
			if layer > 0 {
				for _, before := range []int{i, (i + 1) % width} {
					n.Task.Requires = append(n.Task.Requires, registry.Requirement{Key: fmt.Sprintf("%d/%d", layer-1, before)})
				}
			}
			nodes = append(nodes, n)
		}
	}
	b.StartTimer()
	begun := b.Elapsed()
	id := ""
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), registry.MostNodes)]
		nodes = nodes[len(part):]
		p, err := s.Prepare(b.Context(), registry.Graph{ID: id, Nodes: part})
		must(b, err)
		id = p.GraphID
	}
	prepared := b.Elapsed()
	must(b, s.Seal(b.Context(), id, "bench"))
	sealed := b.Elapsed()
	for n := range layers * width {
		c, err := s.Claim(b.Context(), registry.ClaimRequest{RequestID: fmt.Sprint("r", n), Stage: "run:work", Worker: "w", Lease: registry.MostLease, StuckAfter: registry.MostStuck})
		must(b, err)
		_, err = s.Settle(b.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
		must(b, err)
	}
	b.ReportMetric(float64((prepared - begun).Milliseconds()), "prepare-ms")
	b.ReportMetric(float64((sealed - prepared).Milliseconds()), "seal-ms")
	b.ReportMetric(float64((b.Elapsed()-sealed).Microseconds())/float64(2*layers*width), "µs/edge")
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
