package deposittest

import (
	"errors"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func releaseTests() tests {
	return tests{
		"the_bytes_of_a_batch_that_waits_stay":              releaseWaits,
		"the_bytes_that_a_failed_job_would_need_again_stay": releaseFailed,
		"an_item_releases_no_other_upload":                  releaseOther,
		"a_search_for_orphans_releases_what_it_was_told_to": releaseOrphans,
	}
}

// fromUpload submits a batch from an upload, which other batches may share.
func (f *fixture) fromUpload(id string) (batch string) {
	f.Helper()
	return f.Submit(func(s *registry.Submission) {
		s.Spec.Type, s.Spec.URL, s.Force = registry.FileType, registry.UploadURL(id), true
	})
}

// releases makes an item release an upload, and checks whether the upload is retired.
func (f *fixture) releases(what string, l registry.Lease, upload string, want bool) {
	f.Helper()
	for range 2 { // a repeat changes nothing
		released, err := f.Store.ReleaseUpload(f.Context(), l, upload)
		f.Must(err)
		if released != want {
			f.Errorf("%s: released %v, want %v", what, released, want)
		}
	}
	dropped, err := f.Store.DroppedUploads(f.Context())
	f.Must(err)
	if (len(dropped) > 0) != want {
		f.Errorf("%s: its bytes are to go: %+v, want %v", what, dropped, want)
	}
}

// mayNot checks that an item may not release an upload.
func (f *fixture) mayNot(what string, l registry.Lease, upload string) {
	f.Helper()
	if _, err := f.Store.ReleaseUpload(f.Context(), l, upload); !errors.Is(err, registry.ErrInvalid) {
		f.Errorf("%s: %v, want that it is invalid", what, err)
	}
}

// tidies claims the item that tidies up after an aborted batch.
func (f *fixture) tidies(batch string) registry.Lease {
	f.Helper()
	f.Confirm(batch, registry.ActAbort)
	f.Clock.Pass(time.Hour)
	return f.TakeItem(f.TidyOf(batch).ID).Lease
}

func releaseWaits(f *fixture) {
	f.Upload("u", "u")
	given, waits := f.fromUpload("u"), f.fromUpload("u")
	l := f.tidies(given)
	f.releases("while another batch waits", l, "u", false)
	f.Confirm(waits, registry.ActAbort)
	f.releases("when none does", l, "u", true)
	f.Done(l)
	if _, err := f.Store.ReleaseUpload(f.Context(), l, "u"); !errors.Is(err, registry.ErrClaimLost) {
		f.Errorf("by an attempt that is over: %v", err)
	}
}

// releaseFailed: a batch at its report no longer needs its upload itself, but its jobs that can be
// requeued do.
func releaseFailed(f *fixture) {
	f.Upload("u", "u")
	batch := f.fromUpload("u")
	c := f.TakeItem(batch)
	f.mayNot("a batch that is being expanded", c.Lease, "u")
	jobs := registrytest.NewJobs(2)
	for i := range jobs {
		jobs[i].Spec.URL = registry.UploadURL("u")
	}
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	made := f.Children(batch)
	f.Finish(made[0])
	f.FailItem(made[1], registry.ContentFault)
	l := f.Take(registry.Report, batch).Lease
	f.releases("with a failed job", l, "u", false)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	f.Command(made[1], registry.ActRequeue, "")
	f.Finish(made[1])
	f.releases("when all are completed", f.Take(registry.Report, batch).Lease, "u", true)
}

func releaseOther(f *fixture) {
	f.Upload("mine", "mine")
	f.Upload("theirs", "theirs")
	l := f.tidies(f.fromUpload("mine"))
	for _, id := range []string{"theirs", "", "unknown"} {
		f.mayNot("upload "+id, l, id)
	}
	f.mayNot("of an address", f.TakeItem(f.Submit()).Lease, "theirs")
	f.mayNot("of a check of an object", f.TakeItem(f.ItemAbout(registry.FixityCheck, f.Object()).ID).Lease, "theirs")
	f.releases("its own", l, "mine", true)
}

func releaseOrphans(f *fixture) {
	f.Upload("old", "old")
	search := func(remove bool) registry.Lease {
		it, err := f.Store.SearchOrphans(f.Context(), registry.OrphanRequest{
			Search: registry.OrphanSearch{Older: registry.LeastOrphanAge, Remove: remove, Reason: "because"}, Actor: "admin",
		})
		f.Must(err)
		return f.TakeItem(it.ID).Lease
	}
	f.Clock.Pass(2 * registry.LeastOrphanAge)
	f.Upload("young", "young")
	f.Begin("incoming", 9)
	f.mayNot("a search that is to remove nothing", search(false), "old")
	l := search(true)
	for _, id := range []string{"young", "incoming"} {
		f.mayNot("one that somebody may be about to submit: "+id, l, id)
	}
	batch := f.fromUpload("old")
	f.releases("one that was submitted meanwhile", l, "old", false)
	f.Confirm(batch, registry.ActAbort)
	f.releases("one that nobody needs", l, "old", true)
}
