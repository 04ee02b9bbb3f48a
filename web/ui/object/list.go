package object

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// objectsPage is the content of the list of objects.
type objectsPage struct {
	Text, Collection string
	Collections      []string
	Objects          []registry.Object
	// Exact are the objects that have the text as a local id. They are on the first page only.
	Exact      []registry.Object
	Prev, Next string
	// The address without a part of the search.
	NoText, NoCollection string
	Deposit              bool // the viewer can deposit
}

// objects lists objects, the newest first.
func (p pages) objects(r *http.Request) (page.Page, error) {
	const atOnce, mostCollections = 50, 500
	ctx, query := r.Context(), r.URL.Query()
	out := objectsPage{
		Text: strings.TrimSpace(query.Get("text")), Collection: query.Get("collection"), Deposit: p.May(ctx, "submit-payload"),
		NoText: page.Without(r, "text", "after", "before"), NoCollection: page.Without(r, "collection", "after", "before"),
	}
	q := registry.ObjectQuery{Text: asStored(out.Text), Collection: out.Collection, After: query.Get("after"), Before: query.Get("before"), Limit: atOnce}
	list, err := p.API.Objects(ctx, q)
	if err == nil && q.Before != "" && len(list.Rows) < atOnce { // the first page, filled up
		q.Before = ""
		list, err = p.API.Objects(ctx, q)
	}
	if err != nil {
		return page.Page{}, err
	}
	first := q.After == "" && q.Before == ""
	out.Objects, out.Prev, out.Next = list.Rows, page.Prev(r, list.Prev), page.Next(r, list.Next)
	if out.Text != "" && first {
		exact, err := p.API.Objects(ctx, registry.ObjectQuery{LocalID: out.Text, Collection: out.Collection, Limit: atOnce})
		if err != nil {
			return page.Page{}, err
		}
		out.Exact = exact.Rows
		out.Objects = slices.DeleteFunc(out.Objects, func(o registry.Object) bool {
			return slices.ContainsFunc(out.Exact, func(e registry.Object) bool { return e.ID == o.ID })
		})
	}
	collections, err := p.API.Collections(ctx)
	if err != nil {
		return page.Page{}, err
	}
	for _, c := range collections[:min(len(collections), mostCollections)] {
		out.Collections = append(out.Collections, c.Mnemonic)
	}
	return page.Page{Name: "objects", Title: p.Texts(r).T("Objects"), Section: "objects", Content: out}, nil
}

// asStored returns an ARK in the spelling that objects are recorded by, and any other text as it is.
func asStored(text string) string {
	ark, err := noid.ParseARK(text)
	if err != nil {
		return text
	}
	return ark.ObjectID()
}

// isNotFound reports whether the API does not know what was asked for.
func isNotFound(err error) bool { return errors.Is(err, registry.ErrNotFound) }
