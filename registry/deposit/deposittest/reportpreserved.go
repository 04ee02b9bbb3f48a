package deposittest

import (
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// reportPreserved: progress, report and lists count a failed job with a preserved object as
// preserved, not as failed.
func reportPreserved(f *fixture) {
	batch := f.SubmitWithCallback(registrytest.Receiver())
	c := f.TakeItem(batch)
	jobs := registrytest.NewJobs(3)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	ids := f.Children(batch)
	f.Finish(ids[0])
	f.FailItem(ids[2], registry.ContentFault)
	f.Bring(ids[1], registry.Process)
	l := f.TakeItem(ids[1]).Lease
	f.Preserve(l, f.Named(l, f.Unique("object")).ARK, 1, registrytest.File(registrytest.FilePath))
	f.Done(l)
	f.Bring(ids[1], registry.Notify)
	f.FailItem(ids[1], registry.SystemFault)
	if p := f.Progress(batch); p.Jobs != 3 || p.Completed != 1 || p.Preserved != 1 || p.Failed != 1 || p.Content != 1 || p.Open != 0 {
		f.Errorf("progress %+v", p)
	}
	l = f.TakeItem(batch).Lease
	if r := f.CloseReport(l); r.Jobs != 3 || r.Completed != 1 || r.Preserved != 1 || r.Failed != 1 || r.Content != 1 || r.Stopped != 0 {
		f.Errorf("report %+v", r)
	}
	f.Done(l)
	it := f.Item(batch)
	if it.Status != registry.Failed || !strings.Contains(it.Note, "2 of 3 jobs did not complete") || !strings.Contains(it.Note, "1 of them is preserved") {
		f.Errorf("the batch is %s: %s", it.Status, it.Note)
	}
	for list, want := range map[registry.ReportList]string{registry.ListCompleted: ids[0], registry.ListPreserved: ids[1], registry.ListFailed: ids[2]} {
		rows, err := f.Store.ReportJobs(f.Context(), registry.ReportQuery{BatchID: batch, List: list})
		f.Must(err)
		if len(rows) != 1 || rows[0].ItemID != want || rows[0].Preserved != (list == registry.ListPreserved) {
			f.Errorf("list %s: %+v, want %s", list, rows, want)
		}
	}
	// What is left of it is deleted: it is preserved all the same.
	f.Confirm(ids[1], registry.ActDelete)
	f.Command(batch, registry.ActUpdateReport, "")
	l = f.TakeItem(batch).Lease
	if r := f.CloseReport(l); r.Preserved != 1 || r.Failed != 1 || r.Stopped != 0 {
		f.Errorf("report after the delete %+v", r)
	}
	f.Done(l)
}
