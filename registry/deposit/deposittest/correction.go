package deposittest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// correctBy submits a URL that corrects lines of a batch; no lines: the whole batch.
func (f *fixture) correctBy(url, collection, id string, rows int64, lines ...registry.LineRange) (string, error) {
	s := registrytest.Submission()
	s.Collection, s.Spec.URL, s.Spec.Corrects = collection, url, &registry.Corrects{BatchID: id, Lines: lines, Rows: rows}
	r, err := f.Store.Submit(f.Context(), s)
	return r.BatchID, err
}

// failedRows makes a batch with a good row and the failed rows of lines 2 to n+1.
func (f *fixture) failedRows(n int) (id string) {
	id = f.Submit()
	c := f.TakeItem(id)
	jobs := registrytest.NewJobs(n + 1)
	for i := range jobs {
		if jobs[i].Line = int64(i + 1); i > 0 {
			jobs[i].Fault, jobs[i].Class = "it is broken", registry.ContentFault
		}
	}
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	return id
}

// endRows ends a batch of failedRows: its good row is cancelled.
func (f *fixture) endRows(id string) {
	f.Helper()
	for _, job := range f.Children(id) {
		if f.Item(job).Status == registry.Pending {
			_, err := f.Store.Command(f.Context(), registry.Command{ItemID: job, Act: registry.ActCancel, Reason: "x", Actor: "a"})
			f.Must(err)
		}
	}
	f.Done(f.Take(registry.Report, id).Lease)
}

func lineOf(n int64) registry.LineRange { return registry.LineRange{First: n, Last: n} }

// correctedLines returns the lines of a batch that others correct, with them.
func (f *fixture) correctedLines(id string) map[int64]string {
	f.Helper()
	by, err := f.Store.CorrectedJobs(f.Context(), id, f.Children(id))
	f.Must(err)
	lines := map[int64]string{}
	for job, batch := range by {
		lines[f.Item(job).Line] = batch
	}
	p, err := f.Store.BatchProgress(f.Context(), id)
	f.Must(err)
	if p.Corrected != int64(len(lines)) {
		f.Errorf("%d rows are corrected, want %d", p.Corrected, len(lines))
	}
	f.wantUnresolved(f.Item(id), p)
	return lines
}

// wantUnresolved wants that lists find a batch as unresolved if, and only if, its progress says so.
func (f *fixture) wantUnresolved(batch registry.WorkItem, p registry.BatchProgress) {
	f.Helper()
	faulty := p.Content > 0 || batch.FailedItself() && batch.ErrorClass == registry.ContentFault
	want := faulty && p.CorrectedBy() == ""
	switch {
	case batch.Status == registry.Failed:
		want = want || !faulty
	case batch.Status.Settled():
		want = false
	default:
		want = want && p.Jobs > 1
	}
	for value, listed := range map[string]bool{"yes": want, "no": !want} {
		q := registry.ItemQuery{Match: registry.Query{Terms: []registry.Term{{Field: "id", Value: batch.ID}, {Field: "unresolved", Value: value}}}}
		if got := len(f.All(q)) == 1; got != listed {
			f.Errorf("unresolved:%s lists the batch: %t, want %t: it is %v (%v), progress %+v", value, got, listed, batch.Status, batch.ErrorClass, p)
		}
	}
}

func (f *fixture) wantCorrected(id string, want map[int64]string) {
	f.Helper()
	if got := f.correctedLines(id); !maps.Equal(got, want) {
		f.Errorf("corrected lines %v, want %v", got, want)
	}
}

// unresolved: of a batch that has not ended, rows can be corrected already, its only object cannot.
func unresolved(f *fixture) {
	for rows, before := range map[int]int{1: 0, 2: 1} {
		id := f.Submit()
		c := f.TakeItem(id)
		jobs := registrytest.NewJobs(rows)
		for i := range jobs {
			jobs[i].Line, jobs[i].Fault, jobs[i].Class = int64(i+1), "it is broken", registry.ContentFault
		}
		_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
		f.Must(err)
		f.Done(c.Lease)
		want := func(n int, when string) {
			q := registry.ItemQuery{Match: registry.Query{Terms: []registry.Term{{Field: "id", Value: id}, {Field: "unresolved", Value: "yes"}}}}
			if got := len(f.All(q)); got != n {
				f.Errorf("%s, a batch of %d rows is listed %d times, want %d", when, rows, got, n)
			}
			p, err := f.Store.BatchProgress(f.Context(), id)
			f.Must(err)
			f.wantUnresolved(f.Item(id), p)
		}
		want(before, "before its report")
		f.Done(f.Take(registry.Report, id).Lease)
		want(1, "when it has failed")
	}
}

func correctedOnce(f *fixture) {
	f.Collection("other", registry.Profile{})
	old := f.failedRows(4)
	must := func(url string, rows int64, lines ...registry.LineRange) string {
		f.Helper()
		id, err := f.correctBy(url, registrytest.Mnemonic, old, rows, lines...)
		f.Must(err)
		return id
	}
	_, unknown := f.correctBy("http://h.test/1", "other", registrytest.Mnemonic, 1, lineOf(2))
	_, foreign := f.correctBy("http://h.test/1", "other", old, 1, lineOf(2))
	if !errors.Is(unknown, registry.ErrNotFound) || !errors.Is(foreign, registry.ErrNotFound) {
		f.Errorf("an unknown batch: %v; one of another collection: %v", unknown, foreign)
	}
	f.wantCorrected(old, map[int64]string{})
	first := must("http://h.test/1", 2, registry.LineRange{First: 2, Last: 3})
	f.wantCorrected(old, map[int64]string{2: first, 3: first})
	var refused *registry.CorrectedError
	if _, err := f.correctBy("http://h.test/2", registrytest.Mnemonic, old, 2, registry.LineRange{First: 3, Last: 4}); !errors.As(err, &refused) || *refused != (registry.CorrectedError{BatchID: old, Line: 3, By: first}) {
		f.Errorf("a second correction: %v, want a refusal that names line 3 and %s", err, first)
	}
	f.wantCorrected(old, map[int64]string{2: first, 3: first})
	second := must("http://h.test/2", 2, registry.LineRange{First: 4, Last: 9})
	f.wantCorrected(old, map[int64]string{2: first, 3: first, 4: second, 5: second})
	p, err := f.Store.BatchProgress(f.Context(), old)
	f.Must(err)
	if p.CorrectedBy() != first || len(p.Corrections) != 2 || p.Corrections[1] != (registry.Correction{BatchID: first, Rows: 2, State: registry.StatePending, Status: registry.Pending}) {
		f.Errorf("corrections %+v, by %q, want %s", p.Corrections, p.CorrectedBy(), first)
	}

	// What a correction had that failed as a whole may be submitted again.
	f.FailItem(first, registry.ContentFault)
	f.wantCorrected(old, map[int64]string{4: second, 5: second})
	third := must("http://h.test/3", 1, lineOf(2))
	f.wantCorrected(old, map[int64]string{2: third, 4: second, 5: second})
	if p, err = f.Store.BatchProgress(f.Context(), old); err != nil || p.CorrectedBy() != "" || len(p.Corrections) != 3 || !p.Corrections[2].Void {
		f.Errorf("corrections %+v by %q, %v, want %s as void", p.Corrections, p.CorrectedBy(), err, first)
	}
	f.endRows(old)
	whole := must("http://h.test/4", 0)
	f.wantCorrected(old, map[int64]string{2: third, 3: whole, 4: second, 5: second})
	if _, err := f.correctBy("http://h.test/5", registrytest.Mnemonic, old, 1, lineOf(3)); !errors.As(err, &refused) || refused.By != whole {
		f.Errorf("a row of what is corrected as a whole: %v, want a refusal that names %s", err, whole)
	}
	f.refusedWhole(old, registry.CorrectedError{BatchID: old, By: whole})
}

// refusedWhole wants that a batch cannot be corrected as a whole: the Registry says so before, when it
// is submitted, and leaves nothing.
func (f *fixture) refusedWhole(id string, want registry.CorrectedError) {
	f.Helper()
	before := f.correctedLines(id)
	_, err := f.correctBy("http://h.test/whole", registrytest.Mnemonic, id, 0)
	judged := f.Store.JudgeCorrection(f.Context(), registrytest.Mnemonic, registry.Corrects{BatchID: id})
	for _, err := range []error{err, judged} {
		var refused *registry.CorrectedError
		var wrong *registry.FieldError
		switch {
		case want.By != "" && (!errors.As(err, &refused) || *refused != want):
			f.Errorf("%v, want %v", err, &want)
		case want.By == "" && (!errors.As(err, &wrong) || !errors.Is(err, registry.ErrInvalid) || wrong.Field != "corrects.batch_id"):
			f.Errorf("%v, want a fault of corrects.batch_id", err)
		}
	}
	f.wantCorrected(id, before)
}

// correctedWhole: a batch is corrected as a whole once, when it has ended, and if its content was wrong.
func correctedWhole(f *fixture) {
	running, jobs := f.Batch(2)
	f.FailItem(jobs[0], registry.ContentFault)
	f.refusedWhole(running, registry.CorrectedError{}) // the other job may fail, too
	system, jobs := f.Batch(1)
	f.FailItem(jobs[0], registry.SystemFault)
	f.Done(f.Take(registry.Report, system).Lease)
	f.refusedWhole(system, registry.CorrectedError{})

	rows := f.failedRows(2) // each of which somebody corrects
	by, err := f.correctBy("http://h.test/1", registrytest.Mnemonic, rows, 2, registry.LineRange{First: 2, Last: 3})
	f.Must(err)
	f.endRows(rows)
	f.refusedWhole(rows, registry.CorrectedError{BatchID: rows, By: by})

	itself := f.Submit()
	f.FailItem(itself, registry.ContentFault)
	corrects := registry.Corrects{BatchID: itself}
	f.Must(f.Store.JudgeCorrection(f.Context(), registrytest.Mnemonic, corrects))
	f.Must(f.Store.JudgeCorrection(f.Context(), registrytest.Mnemonic, corrects)) // the first one left nothing
	by, err = f.correctBy("http://h.test/2", registrytest.Mnemonic, itself, 0)
	f.Must(err)
	f.refusedWhole(itself, registry.CorrectedError{BatchID: itself, By: by})
	f.FailItem(by, registry.ContentFault) // as a whole, so it is free again
	f.Must(f.Store.JudgeCorrection(f.Context(), registrytest.Mnemonic, corrects))
	if err := f.Store.JudgeCorrection(f.Context(), "other", corrects); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("in another collection: %v", err)
	}
}

// correctedJudged: what a caller says of the rows is compared with them.
func correctedJudged(f *fixture) {
	old := f.failedRows(2)
	for _, c := range []struct {
		field string
		rows  int64
		lines []registry.LineRange
	}{
		{"corrects.lines", 2, nil},
		{"corrects.lines[0]", 0, []registry.LineRange{lineOf(0)}},
		{"corrects.lines[0]", 0, []registry.LineRange{{First: 3, Last: 2}}},
		{"corrects.lines[1]", 0, []registry.LineRange{{First: 2, Last: 3}, lineOf(3)}},
		{"corrects.lines[0]", 0, []registry.LineRange{lineOf(1)}},
		{"corrects.lines[1]", 0, []registry.LineRange{lineOf(2), lineOf(9)}},
		{"corrects.rows", 1, []registry.LineRange{{First: 1, Last: 9}}},
		{"corrects.rows", -1, nil},
		{"corrects.lines", 0, slices.Repeat([]registry.LineRange{lineOf(2)}, registry.MostLineRanges+1)},
	} {
		_, err := f.correctBy("http://h.test/1", registrytest.Mnemonic, old, c.rows, c.lines...)
		var wrong *registry.FieldError
		if !errors.As(err, &wrong) || !errors.Is(err, registry.ErrInvalid) || wrong.Field != c.field {
			f.Errorf("%d rows on lines %v: %v, want a fault of %s", c.rows, c.lines, err, c.field)
		}
	}
	f.wantCorrected(old, map[int64]string{})
}

// correctedLater: a row that fails after a correction was submitted is not corrected by it, although
// it lies between the lines of that one.
func correctedLater(f *fixture) {
	id, jobs := f.Batch(3)
	f.FailItem(jobs[0], registry.ContentFault)
	f.FailItem(jobs[2], registry.ContentFault)
	all := registry.LineRange{First: 1, Last: 9}
	first, err := f.correctBy("http://h.test/1", registrytest.Mnemonic, id, 2, all)
	f.Must(err)
	f.Clock.Pass(time.Second)
	f.FailItem(jobs[1], registry.ContentFault)
	lines := []int64{f.Item(jobs[0]).Line, f.Item(jobs[1]).Line, f.Item(jobs[2]).Line}
	f.wantCorrected(id, map[int64]string{lines[0]: first, lines[2]: first})
	second, err := f.correctBy("http://h.test/2", registrytest.Mnemonic, id, 1, lineOf(lines[1]))
	f.Must(err)
	f.wantCorrected(id, map[int64]string{lines[0]: first, lines[1]: second, lines[2]: first})
}

// correctedRace: of several that correct the same row at the same time, one is taken, and the others
// are told which.
func correctedRace(f *fixture) {
	const tabs = 6
	old := f.failedRows(3)
	ids, errs := make([]string, tabs), make([]error, tabs)
	var all sync.WaitGroup
	for i := range tabs {
		all.Go(func() {
			ids[i], errs[i] = f.correctBy(fmt.Sprintf("http://h.test/%d", i), registrytest.Mnemonic, old, 0, registry.LineRange{First: 3, Last: int64(3 + i%2)})
		})
	}
	all.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if won < 0 {
		f.Fatalf("none was taken: %v", errs)
	}
	for i, err := range errs {
		var refused *registry.CorrectedError
		if i != won && (!errors.As(err, &refused) || refused.By != ids[won] || refused.Line != 3) {
			f.Errorf("number %d is %s, %v; want a refusal that names %s", i, ids[i], err, ids[won])
		}
	}
	if got := f.correctedLines(old); got[3] != ids[won] || len(got) != 1+won%2 {
		f.Errorf("corrected lines %v, want those of %s", got, ids[won])
	}
}
