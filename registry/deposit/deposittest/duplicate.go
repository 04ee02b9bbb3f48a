package deposittest

import (
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func sameBytes(f *fixture) {
	f.Collection("other", registry.Profile{})
	for id, digest := range map[string]string{"u1": "aa", "u2": "aa", "u3": "bb"} {
		f.Upload(id, digest)
	}
	of := func(upload string, change ...func(*registry.Submission)) func(*registry.Submission) {
		return func(s *registry.Submission) {
			s.Spec.URL = registry.UploadURL(upload)
			for _, c := range change {
				c(s)
			}
		}
	}
	first := f.Submit(of("u1"))
	receipt, err := f.Store.Submit(f.Context(), func() registry.Submission { s := registrytest.Submission(); of("u2")(&s); return s }())
	f.Must(err)
	if receipt.BatchID != first || !receipt.Duplicate {
		f.Errorf("the same bytes: %+v, want a duplicate of %s", receipt, first)
	}
	for name, change := range map[string]func(*registry.Submission){
		"other bytes":       of("u3"),
		"other collection":  of("u1", func(s *registry.Submission) { s.Collection = "other" }),
		"other description": of("u1", func(s *registry.Submission) { s.Spec.LocalIDs = []string{"x"} }),
		"forced":            of("u1", func(s *registry.Submission) { s.Force = true }),
	} {
		if got := f.Submit(change); got == first {
			f.Errorf("%s: taken for a duplicate", name)
		}
	}
	f.Finish(first)
	if got := f.Submit(of("u2")); got != first {
		f.Error("a completed submission is no duplicate any more")
	}
	third := f.Submit(of("u3", func(s *registry.Submission) { s.Spec.Title = "t" }))
	f.FailItem(third, registry.ContentFault)
	if got := f.Submit(of("u3", func(s *registry.Submission) { s.Spec.Title = "t" })); got == third {
		f.Error("a failed submission is taken for the content being here")
	}
}

func sameBytesRace(f *fixture) {
	const callers = 20
	f.Upload("u1", "aa")
	receipts := make([]registry.Submitted, callers)
	var all sync.WaitGroup
	for i := range receipts {
		all.Go(func() {
			s := registrytest.Submission()
			s.Spec.URL = registry.UploadURL("u1")
			var err error
			if receipts[i], err = f.Store.Submit(f.Context(), s); err != nil {
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
	if got := len(f.All(registry.ItemQuery{})); got != 1 || made != 1 {
		f.Errorf("%d batches, %d of the answers say that they made one; want 1 and 1", got, made)
	}
}

func duplicateWindow(f *fixture) {
	never, two := 0, 2
	f.Collection("never", registry.Profile{DuplicateDays: &never})
	f.Collection("two", registry.Profile{DuplicateDays: &two})
	f.Upload("u1", "aa")
	for _, tt := range []struct {
		collection string
		within     time.Duration // the longest time after which it is a duplicate still
	}{{registrytest.Mnemonic, registry.DefaultDuplicateDays * registrytest.Day}, {"two", 2 * registrytest.Day}, {"never", 0}} {
		submit := func() string {
			return f.Submit(func(s *registry.Submission) { s.Collection, s.Spec.URL = tt.collection, registry.UploadURL("u1") })
		}
		first := submit()
		if tt.within == 0 {
			if submit() == first {
				f.Errorf("%s: a duplicate, want none ever", tt.collection)
			}
			continue
		}
		f.Clock.Pass(tt.within)
		if got := submit(); got != first {
			f.Errorf("%s: no duplicate after %s", tt.collection, tt.within)
		}
		f.Clock.Pass(time.Minute)
		second := submit()
		if second == first {
			f.Errorf("%s: a duplicate after the window", tt.collection)
		}
		if got := submit(); got != second {
			f.Errorf("%s: %s is the first within the window, got %s", tt.collection, second, got)
		}
	}
}

// expanding submits a batch with an address and claims it.
func (f *fixture) expanding(change ...func(*registry.Submission)) registry.Claim {
	f.Helper()
	return f.Take(registry.Expand, f.Submit(change...))
}

func (f *fixture) firstOf(c registry.Claim, validator string) string {
	f.Helper()
	first, err := f.Store.FirstOf(f.Context(), c.Lease, validator)
	f.Must(err)
	return first
}

func sameValidator(f *fixture) {
	f.Collection("other", registry.Profile{})
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
	if got := f.Progress(second.Item.ID).DuplicateOf; got != first.Item.ID {
		f.Errorf("progress says %q, want %s", got, first.Item.ID)
	}
	f.Done(second.Lease)
	f.Done(f.Take(registry.Report, second.Item.ID).Lease)
	if it := f.Item(second.Item.ID); it.Status != registry.Completed || len(f.Children(it.ID)) != 0 {
		f.Errorf("the duplicate is %s with %d jobs, want completed with none", it.Status, len(f.Children(it.ID)))
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
	f.Clock.Pass((registry.DefaultDuplicateDays + 1) * registrytest.Day)
	late := f.expanding()
	if got := f.firstOf(late, one); got != "" {
		f.Errorf("a duplicate of %s after the window", got)
	}
	f.Settle(registry.Settlement{Lease: late.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	if got := f.firstOf(f.expanding(), one); got != "" {
		f.Errorf("a duplicate of %s, which failed", got)
	}
}

// deletedNoDuplicate: a batch with a deleted job is incomplete, so submitting the same again is no
// duplicate.
func deletedNoDuplicate(f *fixture) {
	first := f.expanding()
	f.firstOf(first, `"v"`)
	_, err := f.Store.AddJobs(f.Context(), first.Lease, registrytest.NewJobs(2))
	f.Must(err)
	f.Done(first.Lease)
	jobs := f.Children(first.Item.ID)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	f.DeleteItem(jobs[1])
	f.Closing(first.Item.ID)
	f.State(first.Item.ID, registry.StateCompleted)
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
			if firsts[i], err = f.Store.FirstOf(f.Context(), c.Lease, `"v"`); err != nil {
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
	_, err := f.Store.FirstOf(f.Context(), f.TakeItem(f.Job(registry.Download)).Lease, `"v"`)
	f.Is(err, registry.ErrInvalid)
	f.Upload("u1", "aa")
	upload := f.expanding(func(s *registry.Submission) { s.Spec.URL = registry.UploadURL("u1") })
	if got := f.firstOf(upload, `"v"`); got != "" {
		f.Errorf("an upload repeats %s", got)
	}
}
