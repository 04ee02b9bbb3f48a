package ui

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
)

// objectsPage is the content of the list of objects.
type objectsPage struct {
	Text    string
	Objects []registry.Object
	Next    string
}

func (p *pages) objects(r *http.Request) (page, error) {
	text := r.URL.Query().Get("text")
	list, err := p.registry.Objects(r.Context(), registry.ObjectQuery{Text: text, After: r.URL.Query().Get("after"), Limit: 50})
	if err != nil {
		return page{}, badCursor(r, err)
	}
	content := objectsPage{Text: text, Objects: list.Rows, Next: nextPage(r, list.Next)}
	return page{Name: "objects", Title: "Objects", Section: "objects", Content: content}, nil
}

// objectPage is the content of an object's page.
type objectPage struct {
	Object    registry.Object
	Version   int
	Files     []registry.File
	Events    []registry.Premis
	Next      string
	Decisions []registry.Decision // about its deletion, that the caller can make
	// MoreEvents reports whether there are more events than Events.
	MoreEvents bool
}

// objectOf returns the object of the request's path.
func (p *pages) objectOf(r *http.Request) (registry.Object, error) {
	ark, err := noid.ParseARK(r.PathValue("id"))
	if err != nil {
		return registry.Object{}, errors.Join(err, registry.ErrNotFound)
	}
	return p.registry.Object(r.Context(), ark.Base().Normalize().String())
}

func (p *pages) object(r *http.Request) (page, error) {
	const filesAtOnce, eventsAtOnce = 200, 200
	ctx := r.Context()
	o := objectPage{}
	var err error
	if o.Object, err = p.objectOf(r); err != nil {
		return page{}, err
	}
	o.Decisions = p.decisions(r, o.Object)
	version, err := queryNumber(r, "version")
	if err != nil {
		return page{}, err
	}
	if o.Version = int(version); o.Version == 0 {
		o.Version = o.Object.Head
	}
	if o.Version > o.Object.Head {
		return page{}, fmt.Errorf("version %d of %s: %w", o.Version, o.Object.ID, registry.ErrNotFound)
	}
	if o.Files, err = p.registry.Files(ctx, o.Object.ID, o.Version, r.URL.Query().Get("after"), filesAtOnce); err != nil {
		return page{}, err
	}
	if n := len(o.Files); n == filesAtOnce {
		o.Next = nextPage(r, o.Files[n-1].Path)
	}
	events, err := p.registry.PremisEvents(ctx, o.Object.ID, "", eventsAtOnce)
	if err != nil {
		return page{}, err
	}
	o.Events, o.MoreEvents = events.Rows, events.Next != ""
	return page{Name: "object", Title: "Object " + o.Object.ID, Section: "objects", Content: o}, nil
}
