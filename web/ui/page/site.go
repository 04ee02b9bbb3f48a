// Package page is what all pages share: the layout, the texts and formats of a viewer's language and
// time zone, forms, errors as pages, and streams that keep open pages up to date.
//
// A subject, such as web/ui/item, adds its templates and pages to a [Site]. The pages are a client of
// the API: they read and act through it, as the viewer, so that a page can show and do what the
// viewer's role allows and nothing else. Text from depositors (names, notes, titles) is always
// escaped. A page needs no other host and no colour, and no script for reading or for any act.
package page

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/ui/lang"
)

//go:embed layout/*.html
var layout embed.FS

// Options configure a Site. All but Version and Now must be set. The contexts of requests identify
// the viewer.
type Options struct {
	Transport http.RoundTripper // performs requests of the API, as the viewer
	// May reports whether the viewer may call an operation of the API.
	May func(ctx context.Context, operation string) bool
	// Caller returns the viewer's session, or one without an ID for a viewer who sent a token.
	Caller func(context.Context) registry.Session
	// UploadUse returns the room and quotas of uploads that the viewer may see.
	UploadUse func(context.Context) ([]registry.UploadUse, error)
	Changes   Changes // tells when pages must change
	// Specification returns the API's OpenAPI document.
	Specification func() ([]byte, error)
	Log           *slog.Logger
	Version       string           // of the program, shown in the footer
	Now           func() time.Time // nil: time.Now
	Catalogue     *lang.Catalogue  // texts; nil: those of package lang
}

// Site is all pages. Subjects add theirs before its Handler is used.
type Site struct {
	Options

	API    *client.Client // as the viewer of each call's context
	texts  *lang.Catalogue
	files  map[string]files // of each template, by its name
	paths  map[string]bool  // of pages
	homes  map[string]string
	routes []string // patterns of everything that was added
	mux    *http.ServeMux
	assets assets
	views  views
	live   live
}

// New returns a Site without pages. Errors are programming errors.
func New(o Options) (*Site, error) {
	if o.Transport == nil || o.May == nil || o.Caller == nil || o.UploadUse == nil || o.Changes == nil || o.Specification == nil || o.Log == nil {
		return nil, errors.New("page: an option is missing")
	}
	s := &Site{Options: o, API: client.New("http://registry", "", client.Options{HTTP: &http.Client{Transport: o.Transport}}), files: map[string]files{"problem": {FS: layout}}, paths: map[string]bool{}, homes: map[string]string{}, mux: http.NewServeMux(), live: newLive()}
	var err error
	if s.texts = o.Catalogue; s.texts == nil {
		if s.texts, err = lang.Open(); err != nil {
			return nil, err
		}
	}
	if s.assets, err = openAssets(); err != nil {
		return nil, err
	}
	s.Serve("GET /static/", s.assets.ServeHTTP)
	s.Serve("POST /preferences", s.setPreferences)
	s.Serve("GET /live", s.stream)
	s.Serve("POST /words", s.word)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.Fail(w, r, registry.ErrNotFound) })
	return s, nil
}

// files are the templates of a subject, with functions of their own.
type files struct {
	fs.FS
	funcs template.FuncMap
}

// Add adds the templates page/NAME.html of a subject. All of them see its shared parts, whose names
// begin with an underscore, and its functions. It panics if a name is taken, which is a programming
// error.
func (s *Site) Add(templates fs.FS, funcs template.FuncMap, names ...string) {
	for _, name := range names {
		if s.files[name].FS != nil {
			panic("page: two templates are named " + name)
		}
		s.files[name] = files{templates, funcs}
	}
}

// Get adds a page. show returns what it shows; its error becomes an error page.
func (s *Site) Get(path string, show func(*http.Request) (Page, error)) {
	s.paths[path] = true
	s.Serve("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		out, err := show(r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		s.write(w, r, out, http.StatusOK)
	})
}

// Has reports whether a page was added.
func (s *Site) Has(path string) bool { return s.paths[path] }

// Serve adds a handler of something that is not a page, such as a download.
func (s *Site) Serve(pattern string, h http.HandlerFunc) {
	s.routes = append(s.routes, pattern)
	s.mux.HandleFunc(pattern, h)
}

// Routes are the patterns of everything that was added, such as "GET /items/{id}", sorted.
func (s *Site) Routes() []string { return slices.Sorted(slices.Values(s.routes)) }

// Post adds the handler of a form. act does what the form asks, and returns the address of the page
// that shows the result. It can instead return a form to show again, with what is wrong with it. If it
// returns a refusal, the page that has the form is shown again, with what was typed and the faults
// beside their fields.
func (s *Site) Post(path string, act func(*http.Request) (to string, again *Page, err error)) {
	s.Serve("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if err := parseForm(r); err != nil {
			s.Fail(w, r, Invalid("the form could not be read"))
			return
		}
		to, again, err := act(r)
		s.answer(w, r, to, again, err)
	})
}

// Receive is as Post for a form that may bring a file: act reads the body itself.
func (s *Site) Receive(path string, act func(http.ResponseWriter, *http.Request) (to string, again *Page, err error)) {
	s.Serve("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		to, again, err := act(w, r)
		s.answer(w, r, to, again, err)
	})
}

// answer answers a form.
func (s *Site) answer(w http.ResponseWriter, r *http.Request, to string, again *Page, err error) {
	switch {
	case err != nil:
		s.refuse(w, r, err)
	case again != nil:
		s.write(w, r, *again, http.StatusConflict)
	default:
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// parseForm reads a form, of either encoding. The server has bounded its size.
func parseForm(r *http.Request) error {
	const inMemory = 8 << 20
	err := r.ParseMultipartForm(inMemory)
	if errors.Is(err, http.ErrNotMultipart) {
		err = r.ParseForm()
	}
	if err != nil {
		return fmt.Errorf("read form: %w", err)
	}
	return nil
}

// Redirect adds an address that leads to another one.
func (s *Site) Redirect(path, to string) {
	s.Serve("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
}

// Texts returns the texts in the viewer's language.
func (s *Site) Texts(r *http.Request) lang.Texts { return s.texts.Of(r) }

func (s *Site) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Embargoed reports whether an embargo keeps an object's files from others than admins, and whether it
// keeps them from the viewer.
func (s *Site) Embargoed(ctx context.Context, o registry.Object) (embargoed, kept bool) {
	return o.Terms.Embargoed(s.now()), o.Terms.Keep(s.Caller(ctx).Role, s.now())
}

// ServeHTTP answers requests for all pages. The caller must decide who may see them.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	withSecurityHeaders(s.mux).ServeHTTP(w, r)
}

// withSecurityHeaders adds headers that forbid browsers everything the pages do not need.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
