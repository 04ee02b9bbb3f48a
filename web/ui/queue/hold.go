package queue

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// Bounds of the page of holds.
const (
	holdsShown   = 20  // on one page
	heldCounted  = 100 // items of each hold
	mostReleased = 500 // holds that one form releases
	mostChoices  = 200 // of each kind, offered for a new hold
)

// holdsPage is the content of the list of holds.
type holdsPage struct {
	Scope  registry.HoldScope // of the filter; "": all
	Text   string             // of the filter
	Scopes []registry.HoldScope
	Rows   []holdRow
	Found  int // holds that the filter takes
	All    int
	Next   string
	MayAct bool
	MayAdd bool

	Choices []string // keys to choose from
	Form    registry.Hold
}

// holdRow is a hold with the number of items that it keeps.
type holdRow struct {
	registry.Hold

	Title string // of the batch or item that it covers; "": it covers something else, or that is gone
	Items string // query of what it keeps; "": not known
	Kept  int
	More  bool // more than were counted
}

// Filter is the query of the present filter.
func (h holdsPage) Filter() string {
	return url.Values{"scope": {string(h.Scope)}, "text": {h.Text}}.Encode()
}

func (p pages) holds(r *http.Request) (page.Page, error) { return p.listHolds(r, holdsPage{}) }

func (p pages) listHolds(r *http.Request, s holdsPage) (page.Page, error) {
	ctx := r.Context()
	s.Scopes, s.MayAct, s.MayAdd = registry.HoldScopes(), p.May(ctx, "remove-hold"), p.May(ctx, "add-hold")
	found, all, err := p.filtered(r, &s)
	if err != nil {
		return page.Page{}, err
	}
	from, err := page.Number(r, "from")
	if err != nil {
		return page.Page{}, err
	}
	s.Found, s.All = len(found), all
	begin := min(int(from), len(found))
	end := min(begin+holdsShown, len(found))
	if end < len(found) {
		s.Next = page.With(r, "from", strconv.Itoa(end))
	}
	for _, h := range found[begin:end] {
		row, err := p.keeps(ctx, h)
		if err != nil {
			return page.Page{}, err
		}
		s.Rows = append(s.Rows, row)
	}
	if s.MayAdd {
		if s.Choices, err = p.choices(ctx); err != nil {
			return page.Page{}, err
		}
	}
	return page.Page{Name: "holds", Title: p.Texts(r).T("Holds"), Section: "holds", Live: true, Alike: true, Content: s}, nil
}

// filtered returns the holds that the address asks for, newest first, and the number of all.
func (p pages) filtered(r *http.Request, s *holdsPage) (found []registry.Hold, all int, err error) {
	s.Scope, s.Text = registry.HoldScope(r.URL.Query().Get("scope")), strings.TrimSpace(r.URL.Query().Get("text"))
	holds, err := p.API.Holds(r.Context())
	if err != nil {
		return nil, 0, err
	}
	text := strings.ToLower(s.Text)
	for _, h := range holds {
		if (s.Scope == "" || h.Scope == s.Scope) && strings.Contains(strings.ToLower(h.Key+"\n"+h.Reason+"\n"+h.Actor), text) {
			found = append(found, h)
		}
	}
	slices.SortStableFunc(found, func(a, b registry.Hold) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return found, len(holds), nil
}

// keeps counts the items that a hold keeps from starting.
func (p pages) keeps(ctx context.Context, h registry.Hold) (holdRow, error) {
	row := holdRow{Hold: h}
	if h.Scope == registry.HoldBatch || h.Scope == registry.HoldItem {
		it, err := p.API.Item(ctx, h.Key)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return row, err
		} else if err == nil {
			row.Title = it.Heading()
		}
	}
	terms := []registry.Term{{Field: "status", Value: string(registry.Pending)}}
	deposits := registry.Term{Field: "action", Value: string(registry.Batch) + "," + string(registry.Ingest)}
	switch h.Scope {
	case registry.HoldAll:
	case registry.HoldIngest:
		terms = append(terms, deposits)
	case registry.HoldStage:
		terms = append(terms, registry.Term{Field: "stage", Value: h.Key})
	case registry.HoldCollection:
		terms = append(terms, deposits, registry.Term{Field: "collection", Value: h.Key})
	case registry.HoldBatch:
		terms = append(terms, registry.Term{Field: "batch", Value: h.Key})
	case registry.HoldItem:
		row.Kept = 1
		return row, nil
	case registry.HoldVolume, registry.HoldWorker:
		return row, nil
	}
	match := registry.Query{Terms: terms}
	list, err := p.API.Items(ctx, registry.ItemQuery{Match: match, Limit: heldCounted})
	var tooMuch *registry.QueryError
	if errors.As(err, &tooMuch) || errors.Is(err, registry.ErrNotFound) { // what was held is gone
		return row, nil
	}
	row.Items, row.Kept, row.More = match.String(), len(list.Rows), list.Next != ""
	return row, err
}

// choices are keys that a new hold can have: stages, collections, volumes and workers.
func (p pages) choices(ctx context.Context) (keys []string, err error) {
	for _, s := range registry.Stages() {
		keys = append(keys, string(s))
	}
	collections, err := p.API.Collections(ctx)
	if err != nil {
		return nil, err
	}
	volumes := []string{registry.DefaultStaging}
	for _, c := range collections[:min(len(collections), mostChoices)] {
		keys = append(keys, c.Mnemonic)
		for _, v := range c.Profile.StorageNames() {
			if !slices.Contains(volumes, v) {
				volumes = append(volumes, v)
			}
		}
	}
	keys = append(keys, volumes...)
	workers, err := p.API.Workers(ctx)
	for _, w := range workers[:min(len(workers), mostChoices)] {
		keys = append(keys, w.ID)
	}
	return keys, err
}

// hold adds a hold, and leads to the list.
func (p pages) hold(r *http.Request) (string, *page.Page, error) {
	h := registry.Hold{
		Scope: registry.HoldScope(r.PostForm.Get("scope")), Key: strings.TrimSpace(r.PostForm.Get("key")), Reason: strings.TrimSpace(r.PostForm.Get("reason")),
	}
	err := p.API.AddHold(r.Context(), h)
	refused, ok := page.Refusal(err)
	var missing *wire.Problem
	if !ok && errors.As(err, &missing) && missing.Status == http.StatusNotFound {
		refused, ok = missing, true
	}
	if ok {
		again, err := p.listHolds(r, holdsPage{Form: h})
		again.Refused = refused
		return "", &again, err
	}
	return "/holds", nil, err
}

// releasePage is the form that releases a hold.
type releasePage struct {
	holdRow

	Next string // the page to which it leads
}

// askRelease shows what goes on when a hold is released.
func (p pages) askRelease(r *http.Request) (page.Page, error) {
	ctx, q := r.Context(), r.URL.Query()
	if !p.May(ctx, "remove-hold") {
		return page.Page{}, page.Forbidden()
	}
	holds, err := p.API.Holds(ctx)
	if err != nil {
		return page.Page{}, err
	}
	at := slices.IndexFunc(holds, func(h registry.Hold) bool { return string(h.Scope) == q.Get("scope") && h.Key == q.Get("key") })
	if at < 0 {
		return page.Page{}, page.Refused("there is no such hold")
	}
	s := releasePage{Next: next(q.Get("next"))}
	if s.holdRow, err = p.keeps(ctx, holds[at]); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "releasehold", Title: p.Texts(r).T("Release the hold"), Section: "holds", Content: s}, nil
}

// next is the page to which the release of a hold leads: the one that asked for it, or the list.
func next(asked string) string {
	if asked == "" {
		return "/holds"
	}
	return page.Local(asked)
}

// release releases a hold, and leads back.
func (p pages) release(r *http.Request) (string, *page.Page, error) {
	f := r.PostForm
	return next(f.Get("next")), nil, p.releaseOne(r.Context(), registry.HoldScope(f.Get("scope")), f.Get("key"))
}

// releaseOne releases a hold. One that is gone is no fault.
func (p pages) releaseOne(ctx context.Context, scope registry.HoldScope, key string) error {
	err := p.API.RemoveHold(ctx, scope, key)
	var gone *wire.Problem
	if errors.As(err, &gone) && gone.Status == http.StatusNotFound || errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	return err
}

// askReleaseAll shows which holds would be released.
func (p pages) askReleaseAll(r *http.Request) (page.Page, error) {
	if !p.May(r.Context(), "remove-hold") {
		return page.Page{}, page.Forbidden()
	}
	var s holdsPage
	found, all, err := p.filtered(r, &s)
	if err != nil {
		return page.Page{}, err
	}
	if len(found) == 0 {
		return page.Page{}, page.Refused("there is no such hold")
	}
	s.Found, s.All = len(found), all
	for i, h := range found[:min(len(found), mostReleased)] {
		row := holdRow{Hold: h}
		if i < holdsShown { // of more, the form names only the holds
			if row, err = p.keeps(r.Context(), h); err != nil {
				return page.Page{}, err
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return page.Page{Name: "releaseholds", Title: p.Texts(r).T("Release holds"), Section: "holds", Content: s}, nil
}

// releaseAll releases the holds that the form showed; one that is gone is no fault.
func (p pages) releaseAll(r *http.Request) (string, *page.Page, error) {
	scopes, keys := r.PostForm["scope"], r.PostForm["key"]
	if len(scopes) != len(keys) || len(keys) > mostReleased {
		return "", nil, page.Invalid("the form names too many holds, or not each with its scope and key")
	}
	for i, key := range keys {
		if err := p.releaseOne(r.Context(), registry.HoldScope(scopes[i]), key); err != nil {
			return "", nil, err
		}
	}
	return "/holds", nil, nil
}

// holdURL is the page of the held batch or item, "" for other scopes.
func holdURL(h registry.Hold) string {
	switch h.Scope {
	case registry.HoldBatch:
		return "/batches/" + h.Key
	case registry.HoldItem:
		return "/items/" + h.Key
	case registry.HoldAll, registry.HoldIngest, registry.HoldStage, registry.HoldCollection, registry.HoldVolume, registry.HoldWorker:
	}
	return ""
}
