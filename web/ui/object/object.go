// Package object serves the pages of preserved objects and of their deletion.
package object

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, template.FuncMap{"deletionURL": deletionURL, "decisionLabel": decisionLabel}, "objects", "object", "deletions", "decision")
	s.Get("/objects", p.objects)
	s.Get("/objects/{id...}", p.object)
	s.Get("/deletions", p.deletions)
	s.Get("/deletions/{id...}", p.askDecision)
	s.Post("/deletions/{id...}", p.decide)
}

// objectsPage is the content of the list of objects.
type objectsPage struct {
	Text    string
	Objects []registry.Object
	Next    string
}

func (p pages) objects(r *http.Request) (page.Page, error) {
	text := r.URL.Query().Get("text")
	list, err := p.API.Objects(r.Context(), registry.ObjectQuery{Text: text, After: r.URL.Query().Get("after"), Limit: 50})
	if err != nil {
		return page.Page{}, err
	}
	content := objectsPage{Text: text, Objects: list.Rows, Next: page.Next(r, list.Next)}
	return page.Page{Name: "objects", Title: "Objects", Section: "objects", Content: content}, nil
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
func (p pages) objectOf(r *http.Request) (registry.Object, error) {
	ark, err := noid.ParseARK(r.PathValue("id"))
	if err != nil {
		return registry.Object{}, page.NotFound("object " + r.PathValue("id"))
	}
	return p.API.Object(r.Context(), ark.Base().Normalize().String())
}

func (p pages) object(r *http.Request) (page.Page, error) {
	const filesAtOnce, eventsAtOnce = 200, 200
	ctx := r.Context()
	o := objectPage{}
	var err error
	if o.Object, err = p.objectOf(r); err != nil {
		return page.Page{}, err
	}
	o.Decisions = p.decisions(r, o.Object)
	version, err := page.Number(r, "version")
	if err != nil {
		return page.Page{}, err
	}
	if o.Version = int(version); o.Version == 0 {
		o.Version = o.Object.Head
	}
	if o.Version > o.Object.Head {
		return page.Page{}, page.NotFound(fmt.Sprintf("version %d of %s", o.Version, o.Object.ID))
	}
	if o.Files, err = p.API.Files(ctx, o.Object.ID, o.Version, r.URL.Query().Get("after"), filesAtOnce); err != nil {
		return page.Page{}, err
	}
	if n := len(o.Files); n == filesAtOnce {
		o.Next = page.Next(r, o.Files[n-1].Path)
	}
	events, err := p.API.PremisEvents(ctx, o.Object.ID, "", eventsAtOnce)
	if err != nil {
		return page.Page{}, err
	}
	o.Events, o.MoreEvents = events.Rows, events.Next != ""
	return page.Page{Name: "object", Title: "Object " + o.Object.ID, Section: "objects", Content: o}, nil
}
