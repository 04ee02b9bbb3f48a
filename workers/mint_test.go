package workers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// counter gives the bytes 0, 1, 2 and so on, which a template of one digit draws the names 0 to 9
// from, in their order.
type counter struct{ next byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.next
		c.next = (c.next + 1) % 250
	}
	return len(p), nil
}

// A small template gives each of its names once, also to processes with the same random numbers and
// after a restart, and reports when it is exhausted. The Registry ensures uniqueness.
func TestI10_EachNameOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.profile(collection, registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, NOIDTemplate: "fk4{.rdk}",
	})
	file := func(n int) string {
		return r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("f", fmt.Sprint(n)), Filename: "f"})
	}
	named := map[string]string{}
	for n := range 10 {
		if n%3 == 0 {
			r.deps.Random = &counter{} // another process, which begins at the first name
		}
		job := file(n)
		if o := r.complete(job); named[o.ID] != "" {
			t.Errorf("%s is of %s and of %s", o.ID, named[o.ID], job)
		} else {
			named[o.ID] = job
		}
	}
	wantClass(t, r.fails(file(10)), registry.SystemFault, "all taken", "longer NOID template")
}

// Many jobs that mint from few names at the same time get one each.
func TestI10_EachNameOnceAtTheSameTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.profile(collection, registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, NOIDTemplate: "fk4{.redk}",
	})
	var jobs []string
	for n := range 12 {
		job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put(fmt.Sprint(n), fmt.Sprint(n)), Filename: "f"})
		r.advance(job, registry.Process)
		jobs = append(jobs, job)
	}
	var all sync.WaitGroup
	for _, job := range jobs {
		all.Go(func() { _, _ = r.run(job) }) // what became of it is asked of the Registry
	}
	all.Wait()
	named := map[string]bool{}
	for _, job := range jobs {
		o := r.complete(job)
		if named[o.ID] || !strings.HasPrefix(o.ID, "ark:/99999/fk4") {
			t.Errorf("%s is given twice, or not of the template", o.ID)
		}
		named[o.ID] = true
	}
}
