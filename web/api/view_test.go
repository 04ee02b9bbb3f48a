package api_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestViews checks who sees, shares, changes and removes saved views.
func TestViews(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	depositor, viewer, operator, admin := b.as(t, registry.RoleDepositor), b.as(t, registry.RoleViewer), b.as(t, registry.RoleOperator), b.as(t, registry.RoleAdmin)
	names := func(c *caller) (all []string) {
		t.Helper()
		views, err := c.Views(ctx)
		must(t, err)
		for _, v := range views {
			all = append(all, v.Name)
		}
		return all
	}
	ask := wire.ViewRequest{Name: " Stuck ", Query: "STATE:Failed  collection:x", Columns: []string{"size"}, Oldest: true}
	own, err := operator.AddView(ctx, ask)
	must(t, err)
	if own.Name != "Stuck" || own.Query != "state:failed collection:x" || own.Owner != "the operator" || !own.Oldest || own.Shared || own.Version != 1 {
		t.Errorf("saved %+v", own)
	}
	if again, err := operator.AddView(ctx, ask); err != nil || again.ID != own.ID {
		t.Errorf("repeated: %+v %v", again, err)
	}
	ask.Query = ""
	if _, err := operator.AddView(ctx, ask); !errors.Is(err, registry.ErrViewExists) {
		t.Errorf("the name again: %v", err)
	}
	if _, err := admin.View(ctx, own.ID); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an admin reads what is not shared: %v", err)
	}
	if err := admin.RemoveView(ctx, own.ID); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an admin removes what is not shared: %v", err)
	}
	change := wire.ViewRequestOf(own)
	change.Shared = true
	shared, err := operator.EditView(ctx, own.ID, change)
	must(t, err)
	if got := names(viewer); len(got) != 1 || got[0] != "Stuck" || shared.Version != 2 {
		t.Errorf("shared as version %d, and a viewer sees %q", shared.Version, got)
	}
	if got := names(depositor); len(got) != 0 {
		t.Errorf("a depositor sees %q", got)
	}
	change.Name = "Stale"
	if _, err := operator.EditView(ctx, own.ID, change); !errors.Is(err, registry.ErrViewChanged) {
		t.Errorf("an edit of an older version: %v", err)
	}
	p := new(wire.Problem)
	if _, err := admin.EditView(ctx, own.ID, change); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("an edit by another: %v", err)
	}
	if _, err := depositor.AddView(ctx, wire.ViewRequest{Name: "x", Shared: true}); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("a depositor shares: %v", err)
	}
	mine, err := depositor.AddView(ctx, wire.ViewRequest{Name: "mine"})
	must(t, err)
	if got := names(depositor); len(got) != 1 {
		t.Errorf("the depositor's own: %q", got)
	}
	if _, err := viewer.AddView(ctx, wire.ViewRequest{Name: "x"}); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("a viewer saves: %v", err)
	}
	for name, r := range map[string]wire.ViewRequest{"a query": {Name: "x", Query: "weather:fine"}, "no name": {Name: " "}, "a column": {Name: "x", Columns: []string{"a,b"}}} {
		if _, err := operator.AddView(ctx, r); !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, depositor.RemoveView(ctx, mine.ID))
	must(t, admin.RemoveView(ctx, own.ID))
	if got := names(operator); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}
