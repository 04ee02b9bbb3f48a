package registrytest

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Progress is how far a batch is.
func (f *Fixture) Progress(batch string) registry.BatchProgress {
	f.Helper()
	p, err := f.Store.BatchProgress(f.Context(), batch)
	f.Must(err)
	return p
}

// Upload records an upload of bytes with a digest.
func (f *Fixture) Upload(id, digest string) {
	f.Helper()
	f.Begin(id, 9)
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{
		ID: id, Filename: id + ".zip", SizeBytes: 9, Digest: registry.Digest{Algorithm: "sha256", Value: digest}, CreatedBy: "depositor",
	}))
}

// Day is how long most of what expires in these tests is kept.
const Day = 24 * time.Hour

// KeepUploads is how long an upload may take.
const KeepUploads = 24 * time.Hour

// Begin records an upload that is to come.
func (f *Fixture) Begin(id string, size int64) registry.Incoming {
	f.Helper()
	in, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: id, Filename: "a b.zip", SizeBytes: size, CreatedBy: "somebody", Keep: KeepUploads})
	f.Must(err)
	return in
}

// Reportable makes a batch at its report, whose second job failed.
func (f *Fixture) Reportable() (id string, jobs []string) {
	f.Helper()
	id, jobs = f.Batch(2)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	return id, jobs
}

// CloseReport makes the report of a batch whose turn has come.
func (f *Fixture) CloseReport(l registry.Lease) registry.BatchReport {
	f.Helper()
	r, err := f.Store.CloseReport(f.Context(), l)
	f.Must(err)
	return r
}

// DeleteItem gives an item up, whatever that takes along.
func (f *Fixture) DeleteItem(id string) {
	f.Helper()
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActDelete, Reason: "because", Actor: "admin", Confirmed: true})
	f.Must(err)
}

// Closing makes a batch's next report and settles it.
func (f *Fixture) Closing(batch string) registry.BatchReport {
	f.Helper()
	l := f.Take(registry.Report, batch).Lease
	r := f.CloseReport(l)
	f.Done(l)
	return r
}

// Spec is what an item is to do.
func (f *Fixture) Spec(id string) registry.Spec {
	f.Helper()
	var s registry.Spec
	f.Must(json.Unmarshal(f.Item(id).Spec, &s))
	return s
}
