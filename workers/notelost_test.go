package workers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers"
)

// wiped is a store of interim data that is empty from the first note on, until it is told to keep
// what it is given.
type wiped struct {
	interim.Store
	keeps *bool
}

func (w wiped) Put(ctx context.Context, a interim.Attempt, entries map[string][]byte) error {
	if !*w.keeps {
		return nil
	}
	return w.Store.Put(ctx, a, entries)
}

// Interim data lost during a fetch cost time and no try (I1).
func TestI1_NoteLost(t *testing.T) {
	keeps := false
	r := newRig(t, func(d *workers.Deps) { d.Interim = wiped{d.Interim, &keeps} })
	url := r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.put("a", "alpha"), Name: "a"}, checkm.Row{URL: r.site.put("b", "beta"), Name: "b"})
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: url, Filename: "m"})
	r.advance(job, registry.Download)
	if v, err := r.run(job); err == nil || v.Status != registry.Pending || v.Tries != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if it := r.item(job); it.Tries != 0 || !strings.Contains(it.Note, "fetched again") {
		t.Errorf("%d tries, note %q", it.Tries, it.Note)
	}
	keeps = true
	r.wait(time.Minute)
	r.complete(job)
}
