package page

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"

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

	Requeue bool // the viewer may requeue one of them
}

// FailureGroup is a group of failures. Match is the query of its items; "" if there is none. Requeue
// reports that a requeue helps, and that the viewer may ask for it. Example is the item ItemID; without
// ID: it was purged since.
type FailureGroup struct {
	registry.FailureGroup

	Match   string
	Requeue bool
	Example registry.WorkItem
}

// FailuresOf groups the failed items of a query.
func (s *Site) FailuresOf(ctx context.Context, q registry.Query) (f Failures, err error) {
	list, err := s.API.Failures(ctx, registry.ItemQuery{Match: q, Limit: FailuresShown})
	if err != nil {
		return f, err
	}
	f.More = list.Next != ""
	var ids []string
	for _, g := range list.Rows {
		ids = append(ids, g.ItemID)
	}
	examples, err := s.ItemsOf(ctx, ids)
	if err != nil {
		return f, err
	}
	for _, g := range list.Rows {
		shown := FailureGroup{FailureGroup: g, Example: examples[g.ItemID]}
		if match, ok := g.Match(q); ok {
			shown.Match = match.String()
		}
		_, helps := g.Requeue(q)
		shown.Requeue = helps && s.May(ctx, "bulk")
		f.Requeue = f.Requeue || shown.Requeue
		f.Groups = append(f.Groups, shown)
	}
	return f, nil
}

// CheckReason refuses a reason that is too long, or that is absent where there must be one, and a key
// that is not from a form of ours.
func (s *Site) CheckReason(r *http.Request, reason, key string, needed bool) error {
	const mostReason, mostKey = 2000, 200
	t := s.Texts(r)
	switch {
	case len(key) > mostKey:
		return Invalid("the key of the form is longer than %d bytes", mostKey)
	case len(reason) > mostReason:
		return Wrong("reason", t.T("the reason is too long: it has %d bytes, and %d are the most", len(reason), mostReason))
	case needed && reason == "":
		return Wrong("reason", t.T("give a reason; others are shown it"))
	}
	return nil
}

// NumberOf reads a whole number that was typed into a field of a form.
func (s *Site) NumberOf(r *http.Request, field string) (int, error) {
	text := strings.TrimSpace(r.PostForm.Get(field))
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, Wrong(field, s.Texts(r).T("%q is not a whole number", short(text)))
	}
	return n, nil
}

// NewKey returns the idempotency key of a form that is shown: a form that is sent twice acts once.
func NewKey() string { return "page " + rand.Text() }
