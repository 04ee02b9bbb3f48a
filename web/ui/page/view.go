package page

import (
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/web/ui/lang"
)

// view shows pages in one language and one time zone. Its functions are those of all templates.
type view struct {
	site  *Site
	texts lang.Texts
	zone  *time.Location

	mu        sync.Mutex
	templates map[string]*template.Template // parsed when they are first used
}

// viewKey tells one view from another.
type viewKey struct{ lang, zone string }

// views keeps the views that people use.
type views struct {
	mu  sync.Mutex
	all map[viewKey]*view
}

// mostViews bounds them: a program could ask for any number of time zones.
const mostViews = 100

// viewOf returns the view that a viewer prefers.
func (s *Site) viewOf(r *http.Request) *view {
	texts, zone := s.texts.Of(r), ZoneOf(r)
	key := viewKey{texts.Tag, zone.String()}
	s.views.mu.Lock()
	defer s.views.mu.Unlock()
	v := s.views.all[key]
	if v == nil {
		if s.views.all == nil || len(s.views.all) >= mostViews {
			s.views.all = map[viewKey]*view{}
		}
		v = &view{site: s, texts: texts, zone: zone, templates: map[string]*template.Template{}}
		s.views.all[key] = v
	}
	return v
}

// template returns the template of a page.
func (v *view) template(name string) (*template.Template, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t := v.templates[name]; t != nil {
		return t, nil
	}
	files := v.site.files[name]
	if files.FS == nil {
		return nil, fmt.Errorf("page %s has no template", name)
	}
	t, err := template.New("layout.html").Funcs(v.funcs()).Funcs(files.funcs).ParseFS(layout, "layout/layout.html", "layout/part.html")
	if err != nil {
		return nil, fmt.Errorf("parse the layout: %w", err)
	}
	if name == "problem" {
		t, err = t.ParseFS(layout, "layout/"+name+".html")
	} else {
		if parts, _ := fs.Glob(files, "page/_*.html"); len(parts) > 0 { // the pattern is valid
			if t, err = t.ParseFS(files, parts...); err != nil {
				return nil, fmt.Errorf("parse the parts of page %s: %w", name, err)
			}
		}
		t, err = t.ParseFS(files, "page/"+name+".html")
	}
	if err != nil {
		return nil, fmt.Errorf("parse page %s: %w", name, err)
	}
	v.templates[name] = t
	return t, nil
}

// Check parses all templates. Errors are programming errors.
func (s *Site) Check() error {
	v := &view{site: s, texts: s.texts.In("en"), zone: time.UTC, templates: map[string]*template.Template{}}
	for name := range s.files {
		if _, err := v.template(name); err != nil {
			return err
		}
	}
	return nil
}
