package workers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// uploadOf makes an upload with these bytes and returns the address of it.
func (r *rig) uploadOf(id, data string) string {
	r.t.Helper()
	_, err := r.registry.BeginUpload(r.t.Context(), registry.NewUpload{ID: id, SizeBytes: int64(len(data)), Keep: 1000 * time.Hour})
	must(r.t, err)
	must(r.t, r.registry.FinishUpload(r.t.Context(), registry.Upload{
		ID: id, SizeBytes: int64(len(data)), Digest: registry.Digest{Algorithm: "sha256", Value: sha256Of(data)},
	}))
	_, err = storage.Put(r.t.Context(), r.staging, "uploads/"+id+"/payload", []byte(data))
	must(r.t, err)
	return registry.UploadURL(id)
}

// An upload is read where it is, for every type of payload and both digests: no step copies it, and
// it stays until the last item that needs it is completed. Two objects from it share no file.
func TestUpload_InPlace(t *testing.T) {
	for _, algorithm := range []string{"sha256", "sha512"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, DigestAlgorithm: algorithm})
			long := strings.Repeat("a long file ", 1000)
			r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.put("b", long), Name: "b"})
			for _, tt := range []struct {
				kind registry.PayloadType
				data string
				want map[string]string
			}{
				{registry.FileType, long, map[string]string{"payload": long}},
				{registry.ContainerType, zipOf(t, map[string]string{"a": long}), map[string]string{"a": long}},
				{registry.ObjectManifest, r.site.files["m"], map[string]string{"b": long}},
			} {
				id := string(tt.kind)
				spec := registry.Spec{Type: tt.kind, URL: r.uploadOf(id, tt.data), Filename: "payload"}
				one, two := r.submit(spec), r.submit(spec)
				jobs := []string{r.expand(one)[0].ID, r.expand(two)[0].ID}
				r.advance(jobs[0], registry.Process)
				for _, key := range keys(t, r.staging, staging.ItemPrefix(jobs[0])) {
					if string(r.stagedBytes(key)) == tt.data {
						t.Errorf("%s: %s is a copy of the upload", tt.kind, key)
					}
				}
				for i, batch := range []string{one, two} {
					o := r.complete(jobs[i])
					r.valid(o, 1)
					if diff := cmp.Diff(tt.want, r.producer(o, 1)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", tt.kind, diff)
					}
					if v, err := r.run(batch); err != nil || v.Status != registry.Completed {
						t.Fatalf("report: %+v, %v", v, err)
					}
					if left := keys(t, r.staging, "uploads/"+id); len(left) != 1-i {
						t.Errorf("%s: after report %d there are %q", tt.kind, i+1, left)
					}
				}
			}
		})
	}
}

// Bytes of an upload that changed after it arrived are never preserved, and never removed: they are
// all that there is. The depositor is not blamed (R6).
func TestUpload_Damaged(t *testing.T) {
	for _, stage := range []registry.Stage{registry.Download, registry.Process} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.job(registry.Spec{Type: registry.FileType, URL: r.uploadOf("u", "as it was sent"), Filename: "u"})
			r.advance(job, stage)
			must(t, r.staging.Replace(t.Context(), "uploads/u/payload", []byte("as it was sent?")[1:]))
			it := r.ends(job)
			if it.Status != registry.Failed || it.ErrorClass != registry.SystemFault || !strings.Contains(it.Note, "when it arrived") {
				t.Errorf("%s, %s: %s", it.Status, it.ErrorClass, it.Note)
			}
			if got := string(r.stagedBytes("uploads/u/payload")); got != "s it was sent?" {
				t.Errorf("the upload is now %q", got)
			}
			// As an operator does who has the right bytes.
			must(t, r.staging.Replace(t.Context(), "uploads/u/payload", []byte("as it was sent")))
			r.command(job, registry.ActRequeue, "")
			o := r.complete(job)
			r.valid(o, 1)
			if got := r.producer(o, 1)["u"]; got != "as it was sent" {
				t.Errorf("preserved is %q", got)
			}
		})
	}
}
