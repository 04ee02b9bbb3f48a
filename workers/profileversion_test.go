package workers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// Changing a profile between any two steps does not affect earlier submissions: a job keeps the
// batch's version to its end.
func TestProfileVersion_OfJobs(t *testing.T) {
	r := newRig(t, nil)
	p := registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, DigestAlgorithm: "sha256", NOIDTemplate: "fk4old{.reeeeeeeek}"}
	r.profile(collection, p)
	spec := func(id string) (s registry.Spec) {
		t.Helper()
		if err := json.Unmarshal(r.item(id).Spec, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	batch := r.submit(registry.Spec{Type: registry.FileType, URL: r.site.put("a.txt", "a"), Filename: "a.txt"})
	first := spec(batch).ProfileVersion
	change := func() {
		p.Name += "x"
		p.DigestAlgorithm, p.NOIDTemplate, p.Collections = "sha512", "fk4new{.reeeeeeeek}", []string{"ark:/99999/other"}
		r.profile(collection, p)
	}
	change()
	job := r.expand(batch)[0].ID
	for !r.item(job).Status.Settled() {
		if _, err := r.run(job); err != nil {
			t.Fatal(err)
		}
		change()
	}
	if s := spec(job); first == 0 || s.ProfileVersion != first || s.Profile.DigestAlgorithm != "sha256" {
		t.Errorf("the job has version %d, %+v, want %d", s.ProfileVersion, s.Profile, first)
	}
	o := r.complete(job)
	if files := r.files(o, 1); files["system/mrt-membership.txt"] != "ark:/99999/test\n" || !strings.HasPrefix(o.ID, "ark:/99999/fk4old") {
		t.Errorf("object %s, member of %q", o.ID, files["system/mrt-membership.txt"])
	}
	later := r.submit(registry.Spec{Type: registry.FileType, URL: r.site.put("b.txt", "b"), Filename: "b.txt"})
	if s := spec(later); s.ProfileVersion <= first || s.Profile.DigestAlgorithm != "sha512" {
		t.Errorf("a later batch has version %d, %+v", s.ProfileVersion, s.Profile)
	}
}
