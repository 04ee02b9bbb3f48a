package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/tasktest"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

var (
	worker    = registry.Token{Name: "harvest", Role: registry.RoleWorker, Stages: []registry.Stage{registry.Run.Of(name)}}
	depositor = registry.Token{Name: "harvest-deposits", Role: registry.RoleDepositor, Collections: []string{"maps"}}
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// source is an OAI-PMH source with two records a page.
type source struct {
	*httptest.Server

	mu      sync.Mutex
	records []stored
	asked   []string                            // the queries, without Identify
	before  func(http.ResponseWriter, int) bool // true: it answers; gets the number of the request
}

type stored struct {
	id, link string
	changed  time.Time
	deleted  bool
}

func newSource(t *testing.T, records ...stored) *source {
	s := &source{records: records}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

const pageSize = 2

func (s *source) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	body := `<Identify><granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>`
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, each := range s.records {
		if each.changed.After(newest) {
			newest = each.changed
		}
	}
	if q.Get("verb") == "ListRecords" {
		s.asked = append(s.asked, r.URL.RawQuery)
		if s.before != nil && s.before(w, len(s.asked)) {
			return
		}
		body = s.page(q.Get("from"), q.Get("resumptionToken"))
	}
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>%s</responseDate>%s</OAI-PMH>`,
		newest.Format(time.RFC3339), body)
}

// page is an answer to ListRecords. A token is "FROM POSITION".
func (s *source) page(from, token string) string {
	at := 0
	if token != "" {
		if n, err := fmt.Sscanf(token, "%s %d", &from, &at); n != 2 || err != nil {
			return `<error code="badResumptionToken">it has expired</error>`
		}
	} else if from == "" {
		from = "0001-01-01T00:00:00Z"
	}
	since, err := time.Parse(time.RFC3339, from)
	if err != nil {
		return `<error code="badArgument">from</error>`
	}
	found := slices.DeleteFunc(slices.Clone(s.records), func(r stored) bool { return r.changed.Before(since) })
	if len(found) == 0 {
		return `<error code="noRecordsMatch"/>`
	}
	var b strings.Builder
	b.WriteString("<ListRecords>")
	for _, r := range found[at:min(at+pageSize, len(found))] {
		status := ""
		if r.deleted {
			status = ` status="deleted"`
		}
		_, _ = fmt.Fprintf(&b, `<record><header%s><identifier>%s</identifier><datestamp>%s</datestamp></header>`, status, r.id, r.changed.Format(time.RFC3339))
		if !r.deleted {
			_, _ = fmt.Fprintf(&b, `<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">`+
				`<dc:title>Map %s</dc:title><dc:creator>Ann</dc:creator><dc:identifier>shelf 7</dc:identifier><dc:identifier>`, r.id)
			_ = xml.EscapeText(&b, []byte(r.link))
			b.WriteString(`</dc:identifier></oai_dc:dc></metadata>`)
		}
		b.WriteString(`</record>`)
	}
	if at+pageSize < len(found) {
		_, _ = fmt.Fprintf(&b, "<resumptionToken>%s %d</resumptionToken>", from, at+pageSize)
	} else if at > 0 {
		b.WriteString("<resumptionToken/>")
	}
	b.WriteString("</ListRecords>")
	return b.String()
}

func day(n int) time.Time { return time.Date(2026, 2, n, 0, 0, 0, 0, time.UTC) }

func (s *source) queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func maps() []stored {
	return []stored{
		{id: "oai:a", link: "https://maps.test/a.pdf?x=1&y=2", changed: day(1)},
		{id: "oai:b", link: "https://maps.test/b.pdf", changed: day(2)},
		{id: "oai:c", changed: day(3), deleted: true},
		{id: "oai:d", link: "no address", changed: day(4)},
		{id: "oai:e", link: "https://maps.test/e.pdf", changed: day(5)},
	}
}

// holdfast is a Registry with its API.
type holdfast struct {
	*testing.T
	store *sqlstore.Store
	api   *tasktest.API
	ahead atomic.Int64
}

func newHoldfast(t *testing.T) *holdfast {
	t.Helper()
	h := &holdfast{T: t}
	var err error
	h.store, err = sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t), Now: func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }})
	must(t, err)
	t.Cleanup(func() { _ = h.store.Close() })
	must(t, h.store.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: registry.Profile{Owner: "ark:/99999/o"}}, "test"))
	h.api = tasktest.NewAPI(t, h.store)
	return h
}

// archive is the API as the depositor sees it.
func (h *holdfast) archive() *client.Client {
	return h.api.Client(depositor)
}

// serve runs the program until the test ends.
func (h *holdfast) serve() {
	h.Helper()
	ctx, stop := context.WithCancel(h.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-url", h.api.URL, "-token", h.api.Token(worker), "-depositor", h.api.Token(depositor)})
	}()
	h.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	})
	h.await(func() bool { all, err := h.store.Functions(h.Context()); return err == nil && len(all) == 1 })
}

func (h *holdfast) await(is func() bool) {
	h.Helper()
	tasktest.Await(h, is)
}

// links are the addresses that were submitted, sorted.
func (h *holdfast) links() (all []string) {
	h.Helper()
	page, err := h.store.Items(h.Context(), registry.ItemQuery{Action: registry.Batch, Collection: "maps", Limit: 500})
	must(h.T, err)
	for _, listed := range page.Rows {
		it, err := h.store.Item(h.Context(), listed.ID)
		must(h.T, err)
		var spec registry.Spec
		must(h.T, json.Unmarshal(it.Spec, &spec))
		all = append(all, spec.URL+" "+strings.Join(spec.LocalIDs, ","))
	}
	slices.Sort(all)
	return all
}

// wants compares what was submitted.
func (h *holdfast) wants(want ...string) {
	h.Helper()
	if got := h.links(); !slices.Equal(got, want) {
		h.Errorf("submitted %q, want %q", got, want)
	}
}

// TestHarvest_ByASchedule runs two nights of a schedule against a source that is busy at first.
func TestHarvest_ByASchedule(t *testing.T) {
	h, s := newHoldfast(t), newSource(t, maps()...)
	s.before = func(w http.ResponseWriter, n int) bool {
		if n == 1 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n == 1
	}
	h.serve()
	args, err := json.Marshal(Source{Source: s.URL, Collection: "maps"})
	must(t, err)
	_, err = h.store.AddSchedule(t.Context(), registry.ScheduleRequest{Name: "nightly", Actor: "curator", ScheduleSpec: registry.ScheduleSpec{
		Cron: "30 2 * * *", Zone: "Europe/Berlin", Task: &registry.ScheduledTask{Function: name, Args: args, Collection: "maps"},
	}})
	must(t, err)
	night := func() registry.WorkItem {
		t.Helper()
		h.ahead.Add(int64(24 * time.Hour))
		item := ""
		h.await(func() bool { // a transaction that began before the clock moved fires nothing
			fired, err := h.store.FireSchedules(t.Context())
			must(t, err)
			for _, f := range fired {
				item = f.ItemID
			}
			return item != ""
		})
		var it registry.WorkItem
		h.await(func() bool {
			it, err = h.store.Item(t.Context(), item)
			must(t, err)
			if wait := time.Until(it.RunAt) - time.Duration(h.ahead.Load()); it.Status == registry.Pending && wait > 0 {
				h.ahead.Add(int64(wait)) // the source is no longer busy
			}
			return it.Status.Settled()
		})
		if it.Status != registry.Completed || it.Tries != 0 {
			t.Fatalf("the harvest is %s after %d failures: %s", it.Status, it.Tries, it.Note)
		}
		return it
	}
	report := func(it registry.WorkItem) (r Report) {
		must(t, json.Unmarshal(it.Results[registry.ResultReturned], &r))
		return r
	}
	if got, want := report(night()), (Report{Until: day(5), Records: 5, Submitted: 3, Deleted: 1, Refused: 1}); got != want {
		t.Errorf("the first night: %+v, want %+v", got, want)
	}
	first := []string{"https://maps.test/a.pdf?x=1&y=2 oai:a", "https://maps.test/b.pdf oai:b", "https://maps.test/e.pdf oai:e"}
	h.wants(first...)

	s.mu.Lock()
	s.asked = nil
	s.before = nil
	s.records[0] = stored{id: "oai:a", link: "https://maps.test/a2.pdf", changed: day(6)} // changed
	s.records = append(s.records, stored{id: "oai:f", link: "https://maps.test/f.pdf", changed: day(7)})
	s.mu.Unlock()
	if got, want := report(night()), (Report{Until: day(7), Records: 3, Submitted: 2, Known: 1}); got != want {
		t.Errorf("the second night: %+v, want %+v", got, want)
	}
	if asked := s.queries(); !strings.Contains(asked[0], "from=2026-02-05T00%3A00%3A00Z") {
		t.Errorf("the second night asks %q", asked)
	}
	second := append(slices.Clone(first), "https://maps.test/a2.pdf oai:a", "https://maps.test/f.pdf oai:f")
	slices.Sort(second)
	h.wants(second...)
}

// TestHarvest_GoesOnAfterAStop loses the answer to the first, second and third submission, each time
// in an attempt of its own. The last attempt asks for the last page only.
func TestHarvest_GoesOnAfterAStop(t *testing.T) {
	h, s := newHoldfast(t), newSource(t, maps()...)
	archive := &cutArchive{Archive: h.archive(), left: 0}
	var m task.Mux
	f, attempt, args := Register(&m, archive), task.TestRun(), Source{Source: s.URL, Collection: "maps"}
	for range 3 {
		if _, err := f.Test(t.Context(), attempt, args); !errors.Is(err, errCut) {
			t.Fatalf("%v, want %v", err, errCut)
		}
		archive.left++
		archive.done = 0
	}
	archive.left = 100
	before := len(s.queries())
	got, err := f.Test(t.Context(), attempt, args)
	must(t, err)
	if want := (Report{Until: day(5), Records: 5, Submitted: 0, Known: 3, Deleted: 1, Refused: 1}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	if asked := s.queries()[before:]; len(asked) != 1 || !strings.Contains(asked[0], "resumptionToken=") {
		t.Errorf("the last attempt asks %q", asked)
	}
	h.wants("https://maps.test/a.pdf?x=1&y=2 oai:a", "https://maps.test/b.pdf oai:b", "https://maps.test/e.pdf oai:e")
}

// TestHarvest_Refusals is about sources that refuse, are slow or fail.
func TestHarvest_Refusals(t *testing.T) {
	h, s := newHoldfast(t), newSource(t, maps()...)
	var m task.Mux
	f := Register(&m, h.archive())
	args := Source{Source: s.URL, Collection: "maps"}
	reply := ""
	s.before = func(w http.ResponseWriter, _ int) bool {
		_, _ = io.WriteString(w, reply)
		return reply != ""
	}
	reply = `<OAI-PMH><responseDate>2026-02-09T00:00:00Z</responseDate><error code="noRecordsMatch">none</error></OAI-PMH>`
	got, err := f.Test(t.Context(), task.TestRun(), args)
	must(t, err)
	if got != (Report{Until: day(9)}) {
		t.Errorf("nothing new: %+v", got)
	}
	for text, want := range map[string]string{
		`<OAI-PMH><error code="noSetHierarchy">no sets</error></OAI-PMH>`: "noSetHierarchy: no sets",
		`<html><p>Maintenance</html>`:                                     "is no OAI-PMH",
		`<OAI-PMH><ListRecords><record>`:                                  "is no OAI-PMH",
	} {
		reply = text
		if _, err := f.Test(t.Context(), task.TestRun(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A token that the source has forgotten: from the beginning, once.
	reply = ""
	run := task.TestRun()
	must(t, run.SetState(t.Context(), place{Token: "forgotten", Report: Report{Until: day(1), Records: 7}}))
	got, err = f.Test(t.Context(), run, args)
	must(t, err)
	if got.Records != 5 || got.Until != day(1) {
		t.Errorf("after a forgotten token: %+v", got)
	}
	// A slow answer ends with the attempt.
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := f.Test(ctx, task.TestRun(), Source{Source: slow.URL, Collection: "maps"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slow source: %v", err)
	}
}

var errCut = errors.New("the connection was cut")

// cutArchive loses an answer, after some submissions.
type cutArchive struct {
	Archive
	left, done int
}

// Submit implements Archive.
func (c *cutArchive) Submit(ctx context.Context, r wire.SubmitRequest, key string) (wire.SubmitResponse, error) {
	out, err := c.Archive.Submit(ctx, r, key)
	if c.done++; err == nil && c.done > c.left {
		return out, errCut
	}
	return out, err
}
