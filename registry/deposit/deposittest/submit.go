package deposittest

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func submitTests() tests {
	return tests{
		"create_batch":                                        createBatch,
		"the_profile_is_frozen":                               profileIsFrozen,
		"priority":                                            submitPriority,
		"unknown_collection_and_upload":                       unknownThings,
		"a_key_is_answered_once":                              keyIsAnsweredOnce,
		"a_key_of_a_duplicate_is_kept":                        keyOfDuplicate,
		"a_key_sent_at_the_same_time_makes_one_batch":         keyRace,
		"the_same_bytes_are_a_duplicate":                      sameBytes,
		"the_same_bytes_at_the_same_time_make_one_batch":      sameBytesRace,
		"a_duplicate_is_one_within_the_window":                duplicateWindow,
		"urls_are_compared_by_their_validators":               sameValidator,
		"the_same_validators_at_the_same_time_have_one_first": sameValidatorRace,
		"a_batch_with_a_deleted_job_is_repeated_by_nothing":   deletedNoDuplicate,
		"what_is_no_batch_being_expanded_repeats_none":        repeatsNone,
		"a_failed_row_is_corrected_once":                      correctedOnce,
		"a_failed_object_is_unresolved_when_it_can_be_mended": unresolved,
		"a_correction_is_compared_with_the_failed_rows":       correctedJudged,
		"a_batch_is_corrected_as_a_whole_once":                correctedWhole,
		"a_row_that_fails_later_is_not_corrected":             correctedLater,
		"of_corrections_at_the_same_time_one_is_taken":        correctedRace,
		"R10_bad_text_is_made_good":                           badText,
	}
}

func createBatch(f *fixture) {
	id := f.Submit()
	it := f.Item(id)
	if it.Action != registry.Batch || it.Stage != registry.Expand || it.Status != registry.Pending || it.State != registry.StatePending {
		f.Errorf("new batch is %s %s %s %s", it.Action, it.Stage, it.Status, it.State)
	}
	if it.Name != "batch.checkm" || it.Collection != registrytest.Mnemonic || it.CreatedBy != "depositor" || !it.CreatedAt.Equal(f.Clock.Now()) {
		f.Errorf("name=%q collection=%q by=%q at=%v", it.Name, it.Collection, it.CreatedBy, it.CreatedAt)
	}
	if !it.Retry || it.NeedsAdminReview || it.Attempt != 0 || it.Tries != 0 || it.RetryCount != 0 {
		f.Errorf("new batch: %+v", it)
	}
	if got := f.Events(id); len(got) != 1 || got[0] != "submit" {
		f.Errorf("events=%v, want one submit", got)
	}
}

func profileIsFrozen(f *fixture) {
	before := f.Submit(func(s *registry.Submission) { s.Spec.Profile = registry.Profile{Name: "forged", Owner: "forged"} })
	f.Collection(registrytest.Mnemonic, registry.Profile{Name: "Changed", Owner: "ark:/99999/other"})
	after := f.Submit()
	if got := f.Spec(before); got.Profile.Name != "Demo" || got.Profile.Owner != registrytest.Owner || got.RouteVersion != 1 || got.SubmittedAt.IsZero() {
		f.Errorf("spec of the first: %+v", got)
	}
	if got := f.Spec(after).Profile.Name; got != "Changed" {
		f.Errorf("profile of the second is %q, want the new one", got)
	}
}

func submitPriority(f *fixture) {
	seven, two := 7, 2
	f.Collection("prio", registry.Profile{Priority: &seven})
	for _, tt := range []struct {
		collection string
		given      *int
		want       int
	}{{registrytest.Mnemonic, nil, 5}, {"prio", nil, 7}, {"prio", &two, 2}} {
		id := f.Submit(func(s *registry.Submission) { s.Collection, s.Priority = tt.collection, tt.given })
		if got := f.Item(id).Priority; got != tt.want {
			f.Errorf("priority in %s=%d, want %d", tt.collection, got, tt.want)
		}
	}
}

func unknownThings(f *fixture) {
	s := registrytest.Submission()
	s.Collection = "nowhere"
	_, err := f.Store.Submit(f.Context(), s)
	f.Is(err, registry.ErrNotFound)
	s = registrytest.Submission()
	s.Spec.URL = registry.UploadURL("nothing")
	_, err = f.Store.Submit(f.Context(), s)
	f.Is(err, registry.ErrNotFound)
	if got := f.All(registry.ItemQuery{}); len(got) != 0 {
		f.Errorf("%d items were made", len(got))
	}
	_, err = f.Store.Item(f.Context(), "nothing")
	f.Is(err, registry.ErrNotFound)
}

func keyIsAnsweredOnce(f *fixture) {
	s := registrytest.Submission()
	s.IdempotencyKey = "k1"
	first, err := f.Store.Submit(f.Context(), s)
	f.Must(err)
	s.Spec.UserAgent = "another version of the client"
	again, err := f.Store.Submit(f.Context(), s)
	f.Must(err)
	if again.BatchID != first.BatchID {
		f.Errorf("repeat made %s, want %s", again.BatchID, first.BatchID)
	}
	other := s
	other.Spec.Title = "something else"
	_, err = f.Store.Submit(f.Context(), other)
	f.Is(err, registry.ErrIdempotencyConflict)
	other.IdempotencyKey = "k2"
	second, err := f.Store.Submit(f.Context(), other)
	f.Must(err)
	if second.BatchID == first.BatchID {
		f.Error("another key got the first answer")
	}
	f.FailItem(first.BatchID, registry.ContentFault)
	again, err = f.Store.Submit(f.Context(), s)
	f.Must(err)
	if again.BatchID != first.BatchID {
		f.Error("the key was forgotten when its batch failed")
	}
	if got := len(f.All(registry.ItemQuery{})); got != 2 {
		f.Errorf("%d batches, want 2", got)
	}
}

func keyOfDuplicate(f *fixture) {
	f.Upload("u1", "aa")
	bytes := func(key string) func(*registry.Submission) {
		return func(s *registry.Submission) { s.Spec.URL, s.IdempotencyKey = registry.UploadURL("u1"), key }
	}
	first := f.Submit(bytes("k1"))
	if second := f.Submit(bytes("k2")); second != first {
		f.Fatalf("the same bytes made %s, want %s", second, first)
	}
	f.FailItem(first, registry.ContentFault)
	if again := f.Submit(bytes("k2")); again != first {
		f.Errorf("the key's second answer is %s, its first was %s", again, first)
	}
}

func keyRace(f *fixture) {
	const callers = 20
	ids := make([]string, callers)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			s := registrytest.Submission()
			s.IdempotencyKey = "the same"
			r, err := f.Store.Submit(f.Context(), s)
			if err != nil {
				f.Error(err)
			}
			ids[i] = r.BatchID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			f.Errorf("batches %s and %s", id, ids[0])
		}
	}
	if got := len(f.All(registry.ItemQuery{})); got != 1 {
		f.Errorf("%d batches, want 1", got)
	}
}

func badText(f *fixture) {
	bad := "a\x00b\xff" + strings.Repeat("é", 3000)
	id := f.Submit(func(s *registry.Submission) { s.Name, s.Actor = bad, bad })
	c := f.TakeItem(id)
	jobs := registrytest.NewJobs(1)
	jobs[0].Name, jobs[0].Fault = bad, bad
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Error: bad})
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: id, Reason: bad, Actor: bad}))
	why, err := f.Store.Why(f.Context(), id)
	f.Must(err)
	batch, job := f.Item(id), f.Item(f.Children(id)[0])
	for _, text := range []string{batch.Name, batch.Note, batch.CreatedBy, job.Name, job.Note, why.Sentence, f.AttemptsOf(id)[0].Error} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 5000 || !strings.Contains(text, "a\uFFFDb\uFFFD") {
			f.Errorf("kept text %.20q of %d bytes", text, len(text))
		}
	}
}
