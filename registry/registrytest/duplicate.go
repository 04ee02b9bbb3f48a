package registrytest

import (
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// upload records an upload of bytes with a digest.
func (f *fixture) upload(id, digest string) {
	f.Helper()
	f.begin(id, 9)
	f.must(f.FinishUpload(f.Context(), registry.Upload{
		ID: id, Filename: id + ".zip", SizeBytes: 9, Digest: registry.Digest{Algorithm: "sha256", Value: digest}, CreatedBy: "depositor",
	}))
}

func sameBytes(f *fixture) {
	f.collection("other", registry.Profile{})
	for id, digest := range map[string]string{"u1": "aa", "u2": "aa", "u3": "bb"} {
		f.upload(id, digest)
	}
	of := func(upload string, change ...func(*registry.Submission)) func(*registry.Submission) {
		return func(s *registry.Submission) {
			s.Spec.URL = registry.UploadURL(upload)
			for _, c := range change {
				c(s)
			}
		}
	}
	first := f.submit(of("u1"))
	receipt, err := f.Submit(f.Context(), func() registry.Submission { s := submission(); of("u2")(&s); return s }())
	f.must(err)
	if receipt.BatchID != first || !receipt.Duplicate {
		f.Errorf("the same bytes: %+v, want a duplicate of %s", receipt, first)
	}
	for name, change := range map[string]func(*registry.Submission){
		"other bytes":       of("u3"),
		"other collection":  of("u1", func(s *registry.Submission) { s.Collection = "other" }),
		"other description": of("u1", func(s *registry.Submission) { s.Spec.LocalIDs = []string{"x"} }),
		"forced":            of("u1", func(s *registry.Submission) { s.Force = true }),
	} {
		if got := f.submit(change); got == first {
			f.Errorf("%s: taken for a duplicate", name)
		}
	}
	f.finish(first)
	if got := f.submit(of("u2")); got != first {
		f.Error("a completed submission is no duplicate any more")
	}
	third := f.submit(of("u3", func(s *registry.Submission) { s.Spec.Title = "t" }))
	f.fail(third, registry.ContentFault)
	if got := f.submit(of("u3", func(s *registry.Submission) { s.Spec.Title = "t" })); got == third {
		f.Error("a failed submission is taken for the content being here")
	}
}

func sameBytesRace(f *fixture) {
	const callers = 20
	f.upload("u1", "aa")
	receipts := make([]registry.Receipt, callers)
	var all sync.WaitGroup
	for i := range receipts {
		all.Go(func() {
			s := submission()
			s.Spec.URL = registry.UploadURL("u1")
			var err error
			if receipts[i], err = f.Submit(f.Context(), s); err != nil {
				f.Error(err)
			}
		})
	}
	all.Wait()
	made := 0
	for _, r := range receipts {
		if r.BatchID != receipts[0].BatchID {
			f.Errorf("batches %s and %s", r.BatchID, receipts[0].BatchID)
		}
		if !r.Duplicate {
			made++
		}
	}
	if got := len(f.all(registry.ItemQuery{})); got != 1 || made != 1 {
		f.Errorf("%d batches, %d of the answers say that they made one; want 1 and 1", got, made)
	}
}

const day = 24 * time.Hour

func duplicateWindow(f *fixture) {
	never, two := 0, 2
	f.collection("never", registry.Profile{DuplicateDays: &never})
	f.collection("two", registry.Profile{DuplicateDays: &two})
	f.upload("u1", "aa")
	for _, tt := range []struct {
		collection string
		within     time.Duration // the longest time after which it is a duplicate still
	}{{mnemonic, registry.DefaultDuplicateDays * day}, {"two", 2 * day}, {"never", 0}} {
		submit := func() string {
			return f.submit(func(s *registry.Submission) { s.Collection, s.Spec.URL = tt.collection, registry.UploadURL("u1") })
		}
		first := submit()
		if tt.within == 0 {
			if submit() == first {
				f.Errorf("%s: a duplicate, want none ever", tt.collection)
			}
			continue
		}
		f.clock.pass(tt.within)
		if got := submit(); got != first {
			f.Errorf("%s: no duplicate after %s", tt.collection, tt.within)
		}
		f.clock.pass(time.Minute)
		second := submit()
		if second == first {
			f.Errorf("%s: a duplicate after the window", tt.collection)
		}
		if got := submit(); got != second {
			f.Errorf("%s: %s is the first within the window, got %s", tt.collection, second, got)
		}
	}
}

// expanding submits a batch of an address and claims it.
func (f *fixture) expanding(change ...func(*registry.Submission)) registry.Claim {
	f.Helper()
	return f.take(registry.Expand, f.submit(change...))
}

func (f *fixture) firstOf(c registry.Claim, validator string) string {
	f.Helper()
	first, err := f.FirstOf(f.Context(), c.Lease, validator)
	f.must(err)
	return first
}

func sameValidator(f *fixture) {
	f.collection("other", registry.Profile{})
	one, two := `"one"`, `"two"`
	first := f.expanding()
	if got := f.firstOf(first, one); got != "" {
		f.Fatalf("the first repeats %s", got)
	}
	second := f.expanding()
	if second.Item.ID == first.Item.ID {
		f.Fatal("two submissions of one URL were taken for duplicates before anybody looked at it")
	}
	for range 2 { // an answer that was lost is asked for again
		if got := f.firstOf(second, one); got != first.Item.ID {
			f.Errorf("the same address and validator: %q, want %s", got, first.Item.ID)
		}
	}
	if got := f.firstOf(second, two); got != first.Item.ID {
		f.Errorf("what was found is %q, want %s still", got, first.Item.ID)
	}
	if got := f.firstOf(first, one); got != "" {
		f.Errorf("the first repeats %s", got)
	}
	if got := f.progress(second.Item.ID).DuplicateOf; got != first.Item.ID {
		f.Errorf("progress says %q, want %s", got, first.Item.ID)
	}
	f.done(second.Lease)
	f.done(f.take(registry.Report, second.Item.ID).Lease)
	if it := f.item(second.Item.ID); it.Status != registry.Completed || len(f.children(it.ID)) != 0 {
		f.Errorf("the duplicate is %s with %d jobs, want completed with none", it.Status, len(f.children(it.ID)))
	}
	if got := f.firstOf(f.expanding(), one); got != first.Item.ID {
		f.Errorf("the third repeats %q, want %s: the second brought nothing", got, first.Item.ID)
	}
	for name, other := range map[string]struct {
		validator string
		change    func(*registry.Submission)
	}{
		"other validator":   {two, func(*registry.Submission) {}},
		"no validator":      {"", func(*registry.Submission) {}},
		"other collection":  {one, func(s *registry.Submission) { s.Collection = "other" }},
		"other description": {one, func(s *registry.Submission) { s.Spec.Title = "t" }},
		"other mode":        {one, func(s *registry.Submission) { s.Spec.Mode = registry.Update }},
		"forced":            {one, func(s *registry.Submission) { s.Force = true }},
	} {
		if got := f.firstOf(f.expanding(other.change), other.validator); got != "" {
			f.Errorf("%s: taken for a duplicate of %s", name, got)
		}
	}
	f.clock.pass((registry.DefaultDuplicateDays + 1) * day)
	late := f.expanding()
	if got := f.firstOf(late, one); got != "" {
		f.Errorf("a duplicate of %s after the window", got)
	}
	f.settle(registry.Settlement{Lease: late.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	if got := f.firstOf(f.expanding(), one); got != "" {
		f.Errorf("a duplicate of %s, which failed", got)
	}
}

// A batch of whose jobs one was deleted is not all that was submitted: the same again is no duplicate of it, whatever is reported of the others.
func deletedNoDuplicate(f *fixture) {
	first := f.expanding()
	f.firstOf(first, `"v"`)
	_, err := f.AddJobs(f.Context(), first.Lease, newJobs(2))
	f.must(err)
	f.done(first.Lease)
	jobs := f.children(first.Item.ID)
	f.finish(jobs[0])
	f.fail(jobs[1], registry.ContentFault)
	f.delete(jobs[1])
	f.closing(first.Item.ID)
	f.state(first.Item.ID, registry.StateCompleted)
	if got := f.firstOf(f.expanding(), `"v"`); got != "" {
		f.Errorf("the same again is taken for a repeat of %s, which lacks a job", got)
	}
}

func sameValidatorRace(f *fixture) {
	const callers = 10
	claims := make([]registry.Claim, callers)
	for i := range claims {
		claims[i] = f.expanding()
	}
	firsts := make([]string, callers)
	var all sync.WaitGroup
	for i, c := range claims {
		all.Go(func() {
			var err error
			if firsts[i], err = f.FirstOf(f.Context(), c.Lease, `"v"`); err != nil {
				f.Error(err)
			}
		})
	}
	all.Wait()
	first := ""
	for i, c := range claims {
		if firsts[i] == "" {
			if first != "" {
				f.Errorf("%s and %s are both the first", first, c.Item.ID)
			}
			first = c.Item.ID
		}
	}
	for i := range claims {
		if firsts[i] != "" && firsts[i] != first {
			f.Errorf("%s is taken for the first, want %s", firsts[i], first)
		}
	}
}

func repeatsNone(f *fixture) {
	_, err := f.FirstOf(f.Context(), f.takeItem(f.job(registry.Download)).Lease, `"v"`)
	f.is(err, registry.ErrInvalid)
	f.upload("u1", "aa")
	upload := f.expanding(func(s *registry.Submission) { s.Spec.URL = registry.UploadURL("u1") })
	if got := f.firstOf(upload, `"v"`); got != "" {
		f.Errorf("an upload repeats %s", got)
	}
}
