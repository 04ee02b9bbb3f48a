package searchtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func failuresTests() tests {
	return tests{
		"are_grouped_by_their_cause":               failuresGrouped,
		"one_group_is_requeued_and_the_rest_stays": failuresRequeued,
		"end_with_the_failure":                     failuresEnd,
		"of_whatever_the_registry_fails":           failuresOfRegistry,
		"offer_a_requeue_where_it_is_the_fix":      failuresOffered,
		"are_narrowed_as_lists_are":                failuresNarrowed,
		"come_in_pages":                            failuresPages,
		"cannot_be_asked_with_what_nobody_parsed":  failuresRefused,
	}
}

// answered settles a job whose source answered with an HTTP status.
func (f *fixture) answered(job string, status int, more string) {
	f.Helper()
	class, outcome, remedy := registry.SystemFault, registry.OutcomeRetry, "see to the server"
	if status == 404 {
		class, outcome, remedy = registry.ContentFault, registry.OutcomeFailed, "put the file there"
	}
	f.Settle(registry.Settlement{
		Lease: f.TakeItem(job).Lease, Outcome: outcome, Class: class, MaxAttempts: 1, Remedy: remedy,
		Error: fmt.Sprintf("open https://h.example.org/%s.tif: the server answered %d%s", job, status, more),
		Code:  fmt.Sprintf("http-%d", status), Host: "h.example.org",
	})
}

// mixed makes a batch of five jobs: three failed on a busy server, one minute apart, one lacks its
// file, and one waits.
func (f *fixture) mixed() (batch string, jobs []string) {
	f.Helper()
	batch, jobs = f.Batch(5)
	for _, job := range jobs[:4] {
		f.Bring(job, registry.Download)
	}
	f.answered(jobs[0], 503, "")
	f.Clock.Pass(time.Minute)
	f.answered(jobs[1], 404, "")
	f.answered(jobs[2], 503, " (asks to wait 30s)")
	f.Clock.Pass(time.Minute)
	f.answered(jobs[3], 503, "\nand 3 more files")
	return batch, jobs
}

func failuresGrouped(f *fixture) {
	begin := f.Clock.Now()
	batch, jobs := f.mixed()
	want := []registry.FailureGroup{
		{
			Cause: registry.CauseOf(registry.Download, registry.SystemFault, "http-503", "h.example.org", f.Item(jobs[3]).Note),
			Count: 3, First: begin, Last: begin.Add(2 * time.Minute), ItemID: jobs[3], Name: f.Item(jobs[3]).Heading(), Note: f.Item(jobs[3]).Note, Act: "see to the server, then requeue the item",
			Remedy: registry.Remedy{Advice: registry.AdviceKnown, Text: "see to the server"},
		},
		{
			Cause: registry.CauseOf(registry.Download, registry.ContentFault, "http-404", "h.example.org", f.Item(jobs[1]).Note),
			Count: 1, First: begin.Add(time.Minute), Last: begin.Add(time.Minute), ItemID: jobs[1], Name: f.Item(jobs[1]).Heading(), Note: f.Item(jobs[1]).Note,
			Act:    "the producer puts the file there, then an admin requeues the item; if the address is wrong, the producer corrects it, and submits this deposit alone",
			Remedy: registry.Remedy{Advice: registry.AdvicePut, Anew: registry.AnewAlone},
		},
	}
	for i, g := range want {
		want[i].Fingerprint = g.Cause.Fingerprint()
		why, err := f.Store.Why(f.Context(), g.ItemID)
		f.Must(err)
		if why.Act != g.Act {
			f.Errorf("the item itself says %q, the group %q", why.Act, g.Act)
		}
	}
	for _, text := range []string{"", "batch:" + batch, "stage:download collection:" + registrytest.Mnemonic, "example.org"} {
		if diff := cmp.Diff(want, f.Failures(text)); diff != "" {
			f.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	f.wantMatch("cause:"+want[0].Fingerprint, jobs[3], jobs[2], jobs[0])
	f.wantMatch("cause:"+want[0].Fingerprint+" batch:"+batch, jobs[0], jobs[2], jobs[3])
	f.wantMatch("batch:"+batch+" -cause:"+want[0].Fingerprint, jobs[1], jobs[4])
	f.wantMatch("cause:"+want[0].Fingerprint+","+want[1].Fingerprint+" class:content", jobs[1])
	f.wantMatch("cause:" + want[0].Fingerprint + " cause:" + want[1].Fingerprint)
	f.wantMatch("cause:0000000000000000")
}

func failuresRequeued(f *fixture) {
	batch, jobs := f.mixed()
	_, others := f.Batch(1)
	f.Bring(others[0], registry.Download)
	f.answered(others[0], 503, "")
	q := f.Parsed("batch:" + batch)
	groups := f.Failures(q.String())
	match, ok := groups[0].Requeue(q)
	if !ok {
		f.Fatalf("cannot be requeued: %+v", groups[0])
	}
	it, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: match, Act: registry.ActRequeue, Reason: "it is mended", Actor: "admin", Confirmed: true})
	f.Must(err)
	if p := f.Apply(it.ID); p.Applied != 3 || p.Refused != 0 || p.Matched != 3 {
		f.Errorf("%+v", p)
	}
	for i, want := range []int{1, 0, 1, 1, 0} {
		if got := f.Item(jobs[i]); got.RetryCount != want || (got.Status == registry.Failed) != (i == 1) {
			f.Errorf("job %d: %+v", i+1, got)
		}
	}
	if got := f.Item(others[0]); got.Status != registry.Failed {
		f.Errorf("of another batch: %+v", got)
	}
	if got := f.Failures("batch:" + batch); len(got) != 1 || got[0].Fingerprint != groups[1].Fingerprint {
		f.Errorf("what is left: %+v", got)
	}
}

// failuresEnd: an item that fails again has only its new cause.
func failuresEnd(f *fixture) {
	job := f.Job(registry.Download)
	f.answered(job, 503, "")
	before := f.Failures("")[0].Fingerprint
	requeue := func() {
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: job, Act: registry.ActRequeue, Actor: "admin"})
		f.Must(err)
	}
	requeue()
	if got := f.Failures(""); len(got) != 0 {
		f.Errorf("requeued: %+v", got)
	}
	f.wantMatch("cause:" + before)
	f.answered(job, 404, "")
	if got := f.Failures(""); len(got) != 1 || got[0].Code != "http-404" || got[0].Fingerprint == before {
		f.Errorf("failed anew: %+v", got)
	}
	requeue()
	f.Finish(job)
	if got := f.Failures(""); len(got) != 0 {
		f.Errorf("completed: %+v", got)
	}
	// A repeat of the same failure is the same cause.
	job = f.Job(registry.Download)
	f.answered(job, 503, "")
	if got := f.Failures(""); len(got) != 1 || got[0].Fingerprint != before || got[0].ItemID != job {
		f.Errorf("another item: %+v", got)
	}
}

// failuresOfRegistry: refused rows, lost workers and batches with failed jobs have causes as well.
func failuresOfRegistry(f *fixture) {
	id := f.Submit()
	c := f.TakeItem(id)
	jobs := registrytest.NewJobs(3)
	for i := range jobs {
		jobs[i].Fault, jobs[i].Code = fmt.Sprintf("line %d: the digest has %d digits", i+1, i+7), "digest-length"
	}
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	f.TakeItem(f.Submit())
	f.Clock.Pass(registrytest.Lease)
	_, err = f.Store.Sweep(f.Context(), registrytest.Lease)
	f.Must(err)
	f.Settle(registry.Settlement{Lease: f.TakeItem(f.Job(registry.Process)).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: `read "a": no`})
	l := f.TakeItem(id).Lease
	_, err = f.Store.CloseReport(f.Context(), l)
	f.Must(err)
	f.Done(l)
	got := map[string]int64{}
	for _, g := range f.Failures("") {
		got[g.Code+": "+g.Text] += g.Count
		if _, ok := g.Requeue(registry.Query{}); ok == (g.Class == registry.JobsFault || g.Code == "digest-length") {
			f.Errorf("requeue of %+v: %v", g, ok)
		}
	}
	want := map[string]int64{"digest-length: line <n>: the digest has <n> digits": 3, ": read <text>: no": 1, "jobs: <n> of <n> jobs did not complete": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
}

// failuresOffered: no requeue is offered for an upload, since its content cannot change. Content
// that was corrected at its address must be fetched again. The item and its group give the same
// advice.
func failuresOffered(f *fixture) {
	f.Upload("u1", "aa")
	id := f.Submit(func(s *registry.Submission) { s.Spec.URL = registry.UploadURL("u1") })
	c := f.TakeItem(id)
	jobs := registrytest.NewJobs(2)
	jobs[0].Spec.URL = registry.UploadURL("u1")
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	for i, job := range f.Children(id) {
		f.Bring(job, registry.Process)
		f.Settle(registry.Settlement{
			Lease: f.TakeItem(job).Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Code: "unpack-format", Error: []string{"no container", "no archive"}[i],
		})
		group := f.Failures("id:" + job)[0]
		why, err := f.Store.Why(f.Context(), job)
		f.Must(err)
		_, offered := group.Requeue(registry.Query{})
		if told := strings.Contains(group.Act, "requeue"); offered != told || offered != (i == 1) || why.Act != group.Act {
			f.Errorf("job %d: a requeue is offered: %v; group: %q; why: %q", i+1, offered, group.Act, why.Act)
		}
		if want := []registry.Stage{"", registry.Download}[i]; group.From != want {
			f.Errorf("job %d: requeued from %q, want %q", i+1, group.From, want)
		}
	}
}

func failuresNarrowed(f *fixture) {
	batch, jobs := f.mixed()
	f.Collection("other", registry.Profile{})
	for text, want := range map[string][]int64{
		"class:system": {3}, "-class:system": {1}, "stage:process": nil, "collection:other": nil, "batch:" + batch + " class:content": {1},
		"id:" + jobs[0]: {1}, "state:pending": nil, "retries:>0": nil, "action:ingest": {3, 1}, "action:batch": nil, jobs[0] + ".tif": {1}, "error:wait": {1},
		"batch:nothing": nil, "held:no": {3, 1}, "by:depositor": {3, 1}, "priority:<0": nil, "newer:1h": {3, 1},
	} {
		var got []int64
		for _, g := range f.Failures(text) {
			got = append(got, g.Count)
		}
		if !slices.Equal(got, want) {
			f.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, tt := range []struct {
		q    registry.ItemQuery
		want int
	}{
		{registry.ItemQuery{Within: []string{}}, 0},
		{registry.ItemQuery{Within: []string{"other"}}, 0},
		{registry.ItemQuery{Within: []string{"other", registrytest.Mnemonic}}, 2},
		{registry.ItemQuery{Status: registry.Pending}, 0},
		{registry.ItemQuery{ParentID: batch, Status: registry.Failed, Stage: registry.Download}, 2},
		{registry.ItemQuery{Action: registry.Batch}, 0},
	} {
		if page, err := f.Store.Failures(f.Context(), tt.q); err != nil || len(page.Rows) != tt.want {
			f.Errorf("%+v: %d groups, %v; want %d", tt.q, len(page.Rows), err, tt.want)
		}
	}
}

func failuresPages(f *fixture) {
	_, jobs := f.Batch(6)
	for i, job := range jobs {
		f.Bring(job, registry.Download)
		f.Settle(registry.Settlement{
			Lease: f.TakeItem(job).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "n", Code: fmt.Sprintf("code-%d", max(i, 1)),
		})
	}
	var counts []int64
	seen := map[string]bool{}
	q := registry.ItemQuery{Limit: 2}
	for {
		page, err := f.Store.Failures(f.Context(), q)
		f.Must(err)
		if len(page.Rows) > 2 {
			f.Fatalf("%d groups on a page of 2", len(page.Rows))
		}
		for _, g := range page.Rows {
			counts = append(counts, g.Count)
			seen[g.Fingerprint] = true
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if want := []int64{2, 1, 1, 1, 1}; !slices.Equal(counts, want) || len(seen) != len(want) {
		f.Errorf("groups of %v, %d causes; want %v", counts, len(seen), want)
	}
	_, err := f.Store.Failures(f.Context(), registry.ItemQuery{After: "nonsense"})
	f.Is(err, registry.ErrNotFound)
}

func failuresRefused(f *fixture) {
	_, err := f.Store.Failures(f.Context(), registry.ItemQuery{Match: registrytest.Match("nothing:x")})
	if wrong := (*registry.QueryError)(nil); !errors.As(err, &wrong) {
		f.Errorf("error %v, want a *QueryError", err)
	}
}
