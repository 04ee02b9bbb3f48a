package ui_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/cputest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// BenchmarkIngestBesidePages takes jobs through all their stages, in turns without open pages and
// beside 200 of 20 people, which follow what changes. It reports how much longer the jobs take beside
// them, and how much more processor time: that of readers, too. The target is 1.10. Workers, Registry
// and pages share this process, as in holdfast up.
func BenchmarkIngestBesidePages(b *testing.B) {
	const jobs, callers, people, each = 1000, 16, 20, 10
	s := uitest.New(b, uitest.Options{})
	const collection = "bench"
	must(b, s.Store.PutCollection(b.Context(), registry.Collection{Mnemonic: collection, Profile: registry.Profile{Owner: registrybench.Owner}}, "bench"))
	server := httptest.NewServer(s.Handler)
	b.Cleanup(server.Close)
	tokens := make([]string, people)
	for i := range tokens {
		tokens[i] = s.TokenOf(b, fmt.Sprintf("person %d", i), registry.RoleOperator)
	}
	// ingest adds how long the jobs took, by the clock and in processor time.
	ingest := func(took, used *time.Duration) {
		begun, before := time.Now(), cputest.Used(b)
		_, err := registrybench.Preserve(b.Context(), s.Store, collection, jobs, callers)
		must(b, err)
		*took += time.Since(begun)
		*used += cputest.Used(b) - before
	}
	ingest(new(time.Duration), new(time.Duration)) // what comes first warms up
	batch := (&archive{Server: s}).list(b, "action:batch", 1)[0].ID
	pages := []string{"/operations", "/deposits?of=all", "/items", "/items?q=status%3Arunning", "/batches/" + batch}
	var alone, beside, usedAlone, usedBeside time.Duration
	var sent atomic.Int64
	for b.Loop() {
		ingest(&alone, &usedAlone)
		ctx, end := context.WithCancel(b.Context())
		var readers, opened sync.WaitGroup
		for i := range people * each {
			opened.Add(1)
			readers.Go(func() {
				follow(ctx, b, server.URL+"/live?page="+url.QueryEscape(pages[i/people%len(pages)]), tokens[i%people], &sent, opened.Done)
			})
		}
		opened.Wait()
		ingest(&beside, &usedBeside)
		end()
		readers.Wait()
	}
	b.ReportMetric(float64(beside)/float64(alone), "x-alone")
	b.ReportMetric(float64(usedBeside)/float64(usedAlone), "cpu-x-alone")
	b.ReportMetric(float64(b.N)*jobs/alone.Seconds(), "jobs/s-alone")
	b.ReportMetric(float64(b.N)*jobs/beside.Seconds(), "jobs/s-beside")
	b.ReportMetric(float64(sent.Load())/1024/float64(b.N), "KiB-sent")
	b.ReportMetric(0, "ns/op")
}

// follow reads the stream of a page until ctx ends, and counts its bytes. It calls opened once.
func follow(ctx context.Context, t testing.TB, page, token string, sent *atomic.Int64, opened func()) {
	t.Helper()
	once := sync.OnceFunc(opened)
	defer once()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: status %s", page, answer.Status)
	}
	once()
	n, _ := io.Copy(io.Discard, answer.Body) // ctx ends it
	sent.Add(n)
}
