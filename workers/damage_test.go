package workers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// Damaged staged bytes are a system fault, never the depositor's, and are fetched again (R6).
func TestR06_DamageInStaging(t *testing.T) {
	bag := bagOf(sample(), nil)
	for _, tt := range []struct {
		name string
		typ  registry.PayloadType
		data string
		want map[string]string
		at   int64
	}{
		{"file", registry.FileType, "0123456789", map[string]string{"p": "0123456789"}, 3},
		{"zip", registry.ContainerType, zipOf(t, sample()), sample(), 37},
		{"bag", registry.BagType, tarOf(t, bag), bag, 520},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, staging, _ := newFaultyRig(t)
			job := r.job(registry.Spec{Type: tt.typ, URL: r.site.put("p", tt.data), Filename: "p"})
			r.advance(job, registry.Process)
			var payload string
			for _, key := range keys(t, r.staging, "items/"+job) {
				if strings.HasSuffix(key, ".files") {
					payload = key
				}
			}
			staging.Flip(payload, tt.at)
			if v, err := r.run(job); err == nil || v.Stage != registry.Download || v.Status != registry.Pending {
				t.Fatalf("verdict %+v, error %v; want to be sent back to download", v, err)
			}
			wantClass(t, r.item(job), registry.SystemFault, "damaged in staging", "fetched again")
			staging.Heal()
			o := r.complete(job)
			r.valid(o, 1)
			if diff := cmp.Diff(tt.want, r.producer(o, 1)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if n := r.site.gets("p"); n != 2 {
				t.Errorf("fetched %d times, want 2", n)
			}
			r.nothingStaged(job)
		})
	}
}

// An announced version is written as announced, even if all its staged data is lost (R2).
func TestR02_AnnouncedAndThenLost(t *testing.T) {
	for _, lost := range []string{"version.jsonl", "inventory.json", "unpacked", "system", "files"} {
		t.Run(lost, func(t *testing.T) {
			r, _, objects := newFaultyRig(t)
			id, want := r.zipJob(1)
			r.advance(id, registry.Process)
			objects.DieAt(3)
			if _, err := r.run(id); err == nil {
				t.Fatal("the step did not die")
			}
			objects.Heal()
			for _, key := range keys(t, r.staging, "items/"+id) {
				if strings.Contains(key, "/"+lost) {
					must(t, r.staging.Delete(t.Context(), key))
				}
			}
			r.wait(time.Hour)
			if lost == "files" { // the container and the list of it
				must(t, r.staging.DeletePrefix(t.Context(), "items/"+id))
				if v, err := r.run(id); err == nil || v.Stage != registry.Download {
					t.Fatalf("verdict %+v, error %v; want to be sent back to download", v, err)
				}
			}
			o := r.complete(id)
			r.valid(o, 1)
			if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// A disk that another program has filled makes jobs wait, uncounted; they continue when there is
// room.
func TestR24_DiskFull(t *testing.T) {
	for _, stage := range []registry.Stage{registry.Download, registry.Process} {
		r, staging, _ := newFaultyRig(t)
		id, want := r.zipJob(1)
		r.advance(id, stage)
		staging.Quota(12)
		if _, err := r.run(id); err == nil {
			t.Fatalf("%s succeeded on a full disk", stage)
		}
		waits(t, r.item(id))
		if why, err := r.registry.Why(t.Context(), id); err != nil || why.Reason != registry.ReasonNoSpace {
			t.Errorf("%s waits for %s (%v), want no-space", stage, why.Reason, err)
		}
		staging.Heal()
		r.wait(time.Hour)
		if diff := cmp.Diff(want, r.producer(r.complete(id), 1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", stage, diff)
		}
	}
}
