package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
)

func TestRoutes(t *testing.T) {
	// What must come before what, whatever else a route has.
	order := map[registry.Action][]registry.Stage{
		registry.Batch: {registry.Expand, registry.Report},
		registry.Ingest: {
			registry.Estimate, registry.Provision, registry.Download, registry.Scan, registry.Process, registry.Replicate, registry.Record,
			registry.Notify,
		},
	}
	var all []registry.Stage
	for _, r := range registry.Routes() {
		var stages []registry.Stage
		for _, step := range r.Steps {
			stages = append(stages, step.Stage)
			if step.State == "" || r.Version < 1 {
				t.Errorf("%s of %s has state %q, version %d", step.Stage, r.Action, step.State, r.Version)
			}
			if a, ok := registry.ActionOf(step.Stage); !ok || a != r.Action {
				t.Errorf("ActionOf(%s)=%s, want %s", step.Stage, a, r.Action)
			}
		}
		if want := order[r.Action]; !slices.Equal(want, slices.DeleteFunc(slices.Clone(stages), func(s registry.Stage) bool { return !slices.Contains(want, s) })) {
			t.Errorf("route of %s is %v, want these in this order: %v", r.Action, stages, want)
		}
		all = append(all, stages...)
	}
	if got := registry.AllStages(); !slices.Equal(got, all) {
		t.Errorf("AllStages() is %v, want %v", got, all)
	}
	if _, ok := registry.ActionOf("nonsense"); ok {
		t.Error("an unknown stage has an action")
	}
}

// TestGeneratedStages: the documents list the stages in the order of the routes.
func TestGeneratedStages(t *testing.T) {
	var names, optional, programs []string
	for _, route := range registry.Routes() {
		for _, step := range route.Steps {
			if route.Functions {
				programs = append(programs, "`"+string(step.Stage)+"`")
				continue
			}
			names = append(names, "`"+string(step.Stage)+"`")
			if step.Optional {
				optional = append(optional, "`"+string(step.Stage)+"`")
			}
		}
	}
	generatedtest.Part(t, "docs/*.md", "stages", generatedtest.Wrap("The stages are "+listed(names)+".\nEach needs a worker, but "+
		listed(optional)+" only where a collection asks for it. Programs of your own serve "+listed(programs)+" ([tasks.md](tasks.md)).\n"))
}

// listed is "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func TestRoutesAreTheCallersOwn(t *testing.T) {
	registry.Routes()[0].Steps[0].Stage = "changed"
	if got := registry.Routes()[0].Steps[0].Stage; got != registry.Expand {
		t.Errorf("a caller changed the route to %s", got)
	}
}

func TestRoute_With(t *testing.T) {
	r := registry.Route{Steps: []registry.Step{{Stage: "a"}, {Stage: "b", Optional: true}, {Stage: "c", Optional: true}, {Stage: "d"}}}
	for _, tt := range []struct {
		optional []registry.Stage
		want     []registry.Stage
	}{
		{nil, []registry.Stage{"a", "d"}},
		{[]registry.Stage{"b"}, []registry.Stage{"a", "b", "d"}},
		{[]registry.Stage{"c"}, []registry.Stage{"a", "c", "d"}},
		{[]registry.Stage{"c", "b"}, []registry.Stage{"a", "b", "c", "d"}},
		{[]registry.Stage{"d", "nonsense"}, []registry.Stage{"a", "d"}},
	} {
		own := r.With(tt.optional)
		got := []registry.Stage{own.First()}
		for next, more := own.Next(got[0]); more; next, more = own.Next(next) {
			got = append(got, next)
		}
		if !slices.Equal(got, tt.want) || !slices.Equal(own.UpTo("d"), tt.want) {
			t.Errorf("with %v the route is %v, up to its end %v; want %v", tt.optional, got, own.UpTo("d"), tt.want)
		}
	}
	if len(r.Steps) != 4 {
		t.Errorf("the route itself has %d steps left", len(r.Steps))
	}
}

func TestRoutes_BeginAndEndForAll(t *testing.T) {
	for _, r := range registry.Routes() {
		if r.Steps[0].Optional || r.Steps[len(r.Steps)-1].Optional {
			t.Errorf("the first or last step of %s is optional", r.Action)
		}
	}
}

func TestRouteOf(t *testing.T) {
	if _, ok := registry.RouteOf("nonsense"); ok {
		t.Error("an unknown action has a route")
	}
	r, ok := registry.RouteOf(registry.Ingest)
	if !ok || r.First() != registry.Estimate {
		t.Fatalf("route of ingest: %+v", r)
	}
	for _, tt := range []struct {
		at   registry.Stage
		next registry.Stage
		upTo int
	}{
		{registry.Estimate, registry.Provision, 1},
		{registry.Provision, registry.Download, 2},
		{registry.Notify, "", len(r.Steps)},
		{registry.Report, "", 0},
	} {
		next, more := r.Next(tt.at)
		if next != tt.next || more != (tt.next != "") {
			t.Errorf("Next(%s)=%s,%v", tt.at, next, more)
		}
		if got := r.UpTo(tt.at); len(got) != tt.upTo || (tt.upTo > 0 && got[tt.upTo-1] != tt.at) {
			t.Errorf("UpTo(%s)=%v", tt.at, got)
		}
		if step, ok := r.Step(tt.at); ok != (tt.upTo > 0) || (ok && step.Stage != tt.at) {
			t.Errorf("Step(%s)=%+v,%v", tt.at, step, ok)
		}
	}
	for _, step := range r.Steps {
		if step.NeverFails != (step.Stage == registry.Estimate) {
			t.Errorf("%s: NeverFails=%v", step.Stage, step.NeverFails)
		}
	}
}
