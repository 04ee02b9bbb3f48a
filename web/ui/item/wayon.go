package item

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// wayOn is the one act that lets an item go on.
type wayOn struct {
	ItemID string       // the item to act on: itself, its batch, or one that it waits for
	Name   string       // of another item; "": itself
	Act    registry.Act // "": none of one item's
	// Release is the address of the form that releases a hold on more than a batch; "": none keeps it.
	Release string
	Limits  bool // an admin may raise the limit that keeps it
}

// whyPart is what the part of a page shows that explains why an item waits.
type whyPart struct {
	Why   registry.Why
	Class registry.ErrorClass
	WayOn *wayOn
}

// wayOn returns the act that lets an item go on; nil if nothing keeps it, or if the viewer may not
// act.
func (p pages) wayOn(ctx context.Context, it registry.WorkItem, why registry.Why) (*wayOn, error) {
	if !p.MayAct(ctx) {
		return nil, nil //nolint:nilnil // as it says
	}
	may := func(act registry.Act) bool { return slices.Contains(it.AllowedActs, act) }
	switch {
	case it.HeldBy != nil && !it.Status.Settled():
		return p.releaseOf(ctx, *it.HeldBy, it), nil
	case it.Status == registry.Failed && may(registry.ActRequeue), it.Status == registry.Cancelled && may(registry.ActRequeue):
		return &wayOn{ItemID: it.ID, Act: registry.ActRequeue}, nil
	case it.Status == registry.Pending && may(registry.ActRetryNow):
		return &wayOn{ItemID: it.ID, Act: registry.ActRetryNow}, nil
	case why.Reason == registry.ReasonBlocked && it.Status == registry.Pending:
		return p.wayOnOf(ctx, it)
	}
	if why.Reason == registry.ReasonLimit && p.May(ctx, "set-limit") {
		return &wayOn{Limits: true}, nil
	}
	return nil, nil //nolint:nilnil // as it says
}

// wayOnOf returns the act that lets the first item go on which an item waits for.
func (p pages) wayOnOf(ctx context.Context, it registry.WorkItem) (*wayOn, error) {
	near, err := p.API.Around(ctx, it.ID, nearShown)
	if err != nil {
		return nil, err
	}
	for _, n := range near.Nodes {
		if !slices.ContainsFunc(near.Edges, func(e registry.Edge) bool {
			return e.ItemID == it.ID && e.RequiresID == n.ID && e.SatisfiedAt == nil
		}) {
			continue
		}
		switch {
		case (n.Status == registry.Failed || n.Status == registry.Cancelled) && slices.Contains(n.AllowedActs, registry.ActRequeue):
			return &wayOn{ItemID: n.ID, Name: n.Heading(), Act: registry.ActRequeue}, nil
		case n.HeldBy != nil && n.Status == registry.Pending:
			w := p.releaseOf(ctx, *n.HeldBy, it)
			if w != nil {
				w.Name = n.Heading()
			}
			return w, nil
		}
	}
	return nil, nil //nolint:nilnil // none needs a person
}

// releaseOf is the act that releases a hold, asked on an item's page; nil if the viewer may not.
func (p pages) releaseOf(ctx context.Context, h registry.Hold, it registry.WorkItem) *wayOn {
	if h.Scope == registry.HoldItem || h.Scope == registry.HoldBatch {
		w := &wayOn{ItemID: h.Key, Act: registry.ActUnhold}
		if h.Key != it.ID && h.Scope == registry.HoldBatch {
			w.Name = h.Key
		}
		return w
	}
	if !p.May(ctx, "remove-hold") {
		return nil
	}
	return &wayOn{Release: page.ReleaseURL(h, page.ItemURL(it))}
}

// others returns the acts beside the way on.
func (w *wayOn) others(b page.Buttons) page.Buttons {
	if w != nil && w.ItemID == b.ItemID {
		b.Acts = slices.DeleteFunc(b.Acts, func(a registry.Act) bool { return a == w.Act })
	}
	return b
}
