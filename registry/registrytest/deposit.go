package registrytest

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Progress returns the progress of a batch.
func (f *Fixture) Progress(batch string) registry.BatchProgress {
	f.Helper()
	p, err := f.Store.BatchProgress(f.Context(), batch)
	f.Must(err)
	return p
}

// Upload records a finished upload with a digest.
func (f *Fixture) Upload(id, digest string) {
	f.Helper()
	f.Begin(id, 9)
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{
		ID: id, Filename: id + ".zip", SizeBytes: 9, Digest: registry.Digest{Algorithm: "sha256", Value: digest}, CreatedBy: "depositor",
	}))
}

// Day is how long most things are kept that expire in these tests.
const Day = 24 * time.Hour

// KeepUploads is how long an incoming upload is kept.
const KeepUploads = 24 * time.Hour

// Begin begins an upload.
func (f *Fixture) Begin(id string, size int64) registry.Incoming {
	f.Helper()
	in, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: id, Filename: "a b.zip", SizeBytes: size, CreatedBy: "somebody", Keep: KeepUploads})
	f.Must(err)
	return in
}

// Reportable makes a batch that is at its report. Its second job failed.
func (f *Fixture) Reportable() (id string, jobs []string) {
	f.Helper()
	id, jobs = f.Batch(2)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	return id, jobs
}

// CloseReport makes the report of a claimed batch.
func (f *Fixture) CloseReport(l registry.Lease) registry.BatchReport {
	f.Helper()
	r, err := f.Store.CloseReport(f.Context(), l)
	f.Must(err)
	return r
}

// DeleteItem deletes an item, with all consequences.
func (f *Fixture) DeleteItem(id string) {
	f.Helper()
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActDelete, Reason: "because", Actor: "admin", Confirmed: true})
	f.Must(err)
}

// Closing makes a batch's next report and settles the batch.
func (f *Fixture) Closing(batch string) registry.BatchReport {
	f.Helper()
	l := f.Take(registry.Report, batch).Lease
	r := f.CloseReport(l)
	f.Done(l)
	return r
}

// Spec returns the spec of an item.
func (f *Fixture) Spec(id string) registry.Spec {
	f.Helper()
	var s registry.Spec
	f.Must(json.Unmarshal(f.Item(id).Spec, &s))
	return s
}
