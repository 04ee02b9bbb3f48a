package page

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// Operations of the API that decide which buttons a viewer sees.
const (
	actOnItems = "command-item"
	abandon    = "abandon"
)

// Buttons are the acts that the viewer may ask of an item.
type Buttons struct {
	ItemID string
	Acts   []registry.Act
}

// MayAct reports whether the viewer may act on items.
func (s *Site) MayAct(ctx context.Context) bool { return s.May(ctx, actOnItems) }

// ButtonsOf returns the acts of an item that the viewer may ask.
func (s *Site) ButtonsOf(ctx context.Context, it registry.WorkItem) Buttons {
	if !s.MayAct(ctx) {
		return Buttons{}
	}
	acts := slices.Clone(it.AllowedActs)
	if !s.May(ctx, abandon) {
		acts = slices.DeleteFunc(acts, func(a registry.Act) bool { return a == registry.ActAbandon })
	}
	return Buttons{it.ID, acts}
}

// FailuresShown is the largest number of groups of failures on a page; the largest groups are shown.
const FailuresShown = 20

// Failures are failed items, grouped by cause.
type Failures struct {
	Groups []FailureGroup
	More   bool // more groups exist
}

// FailureGroup is a group of failures. Match is the query of its items; "" if there is none. Requeue
// reports that a requeue helps, and that the viewer may ask for it.
type FailureGroup struct {
	registry.FailureGroup

	Match   string
	Requeue bool
}

// FailuresOf groups the failed items of a query.
func (s *Site) FailuresOf(ctx context.Context, q registry.Query) (f Failures, err error) {
	list, err := s.API.Failures(ctx, registry.ItemQuery{Match: q, Limit: FailuresShown})
	if err != nil {
		return f, err
	}
	f.More = list.Next != ""
	for _, g := range list.Rows {
		shown := FailureGroup{FailureGroup: g}
		if match, ok := g.Match(q); ok {
			shown.Match = match.String()
		}
		_, helps := g.Requeue(q)
		shown.Requeue = helps && s.May(ctx, "bulk")
		f.Groups = append(f.Groups, shown)
	}
	return f, nil
}

// CheckLengths refuses a reason or an idempotency key longer than those of the pages' forms.
func CheckLengths(reason, key string) error {
	const mostReason, mostKey = 2000, 200
	if len(reason) > mostReason || len(key) > mostKey {
		return Invalid("the reason is longer than %d bytes", mostReason)
	}
	return nil
}
