package page

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// Page is what a page shows. A subject's function fills in the first fields, the Site the others.
type Page struct {
	Name    string // of its template
	Title   string // for the browser's tab, in the viewer's language
	Section string // the entry of the navigation that it belongs to
	Live    bool   // its content still changes: its live parts are kept up to date
	Alike   bool   // its live parts are the same for everybody of a role that sees all collections
	Follow  string // the address that its stream of changes renders; "": its own
	Scripts []string
	Content any
	Status  int // of the answer; 0: the usual one, and 409 for a form that is shown again
	// Refused is why a form that is shown again was not carried out: the page says so below its heading,
	// and beside the fields. nil: nothing was refused.
	Refused *wire.Problem

	Session registry.Session // without an ID: the viewer sent a token
	Menu    []Group
	Prefs   Preferences
	Stream  string // the address of its changes; "": it does not change, or there is no stream
	Path    string // its address, with the query
	Version string
	At      time.Time
}

// Preferences are how a person wants to see the pages. They are in cookies.
type Preferences struct {
	Lang      string
	Languages []lang.Language
	Zone      string // IANA name of the time zone
	Theme     Theme
	Themes    []Theme
}

// Theme says which colours a person wants.
type Theme string

// The themes.
const (
	ThemeSystem Theme = ""
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// write renders a page and sends it. A page is sent complete or not at all: half a page could
// mislead.
func (s *Site) write(w http.ResponseWriter, r *http.Request, out Page, status int) {
	if out.Status != 0 {
		status = out.Status
	}
	v := s.viewOf(r)
	out.At, out.Version, out.Path = s.now().UTC(), s.Version, r.URL.RequestURI()
	out.Session, out.Prefs = s.Caller(r.Context()), v.preferences(r)
	out.Menu = s.menu(r.Context(), out.Section)
	sent := &refusedForm{r, out.Refused}
	again, anew := r.Context().Value(refusedMark{}).(*refusedForm)
	if anew {
		sent, out.Path = again, r.URL.Path
	}
	out.Live = out.Live && sent.problem == nil
	if now, forStream := r.Context().Value(liveMark{}).(*rendered); forStream {
		now.over, now.alike = !out.Live, out.Alike
	} else if out.Live {
		out.Stream = "/live?" + url.Values{"page": {cmp.Or(out.Follow, out.Path)}, "seen": {unseen}}.Encode()
	}
	text, err := v.render(out)
	if sent.problem != nil && err == nil {
		text, err = v.tellRefusal(sent.form, text, sent.problem, anew)
	}
	if i := bytes.LastIndex(text, []byte("seen="+unseen)); err == nil && out.Stream != "" && i >= 0 {
		copy(text[i+len("seen="):], digestOf(liveParts(text))) // the address stands behind all parts
	}
	if err != nil {
		s.Log.ErrorContext(r.Context(), "page failed", "request", w.Header().Get(wire.RequestIDHeader), "path", webserver.Path(r), "err", webserver.ErrorText(err))
		http.Error(w, "The page could not be rendered. The log of the server has the error, as request "+w.Header().Get(wire.RequestIDHeader)+".", http.StatusInternalServerError)
		return
	}
	send(w, text, status, sent.problem != nil)
}

// send answers a request with a page. A browser keeps the page of a form that was refused, to go back to:
// without it, it would ask whether to send the form again. It keeps no other page.
func send(w http.ResponseWriter, text []byte, status int, refused bool) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if refused {
		w.Header().Set("Cache-Control", "private, no-cache")
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // the reader has gone if this fails
}

// unseen stands for the digest of what a page shows until the page is rendered. It is as long.
const unseen = "0000000000000000"

// render fills a page's template.
func (v *view) render(p Page) ([]byte, error) {
	t, err := v.template(p.Name)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = t.Execute(&text, p)
	return shownOrder(text.Bytes()), err
}

// Number parses a number of an address's query; 0 if it is absent.
func Number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, Invalid("%s in the address is not a number", name)
	}
	return n, nil
}

// Next is the address of the next page of the present list, by its cursor; "" without one.
func Next(r *http.Request, cursor string) string { return turn(r, "after", cursor) }

// Prev is the address of the page before the present one, by its cursor; "" without one.
func Prev(r *http.Request, cursor string) string { return turn(r, "before", cursor) }

// turn is the address of another page of the present list.
func turn(r *http.Request, name, cursor string) string {
	if cursor == "" {
		return ""
	}
	query := r.URL.Query()
	query.Del("after")
	query.Del("before")
	query.Set(name, cursor)
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}

// Without is the address of the present page without some values in its query.
func Without(r *http.Request, names ...string) string {
	query := r.URL.Query()
	for _, name := range names {
		query.Del(name)
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}

// With is the address of the present page with another value in its query; "" removes it.
func With(r *http.Request, name, value string) string {
	query := r.URL.Query()
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}
