package ui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
)

// refreshEvery is the interval at which a live page reloads.
const refreshEvery = 5 * time.Second

// page is what all pages share, with the content of one.
type page struct {
	Name    string // of its template
	Title   string
	Section string // the current entry of the navigation
	Live    bool   // its content still changes, so it reloads itself
	Content any

	Refresh   int    // seconds; 0: never. write sets this and the fields below
	Reload    string // the address that the page reloads
	Session   registry.Session
	Uploads   bool   // the viewer may see uploads
	Schedules bool   // the viewer may see schedules
	Processes bool   // the viewer may see processes
	Pause     string // the address of this page with reloading switched the other way
	Path      string
	Version   string
	At        time.Time
}

// show returns a handler that shows the page that gather returns.
func (p *pages) show(gather func(*http.Request) (page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := gather(r)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		p.write(w, r, out, http.StatusOK)
	}
}

// fail shows an error as a page.
func (p *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	out, status := p.problem(r, err)
	p.write(w, r, out, status)
}

// write renders a page and sends it.
func (p *pages) write(w http.ResponseWriter, r *http.Request, out page, status int) {
	out.At, out.Version, out.Path = p.now().UTC(), p.version, r.URL.Path
	if p.account != nil {
		out.Session = p.account.Current(r.Context())
	}
	out.Processes = p.processes != nil && p.processes.MaySee(r.Context())
	out.Schedules = p.schedules != nil && p.schedules.MaySee(r.Context())
	out.Uploads = p.uploads != nil && p.uploads.MaySee(r.Context())
	if out.Live {
		query := r.URL.Query()
		if query.Get("refresh") == "off" {
			query.Del("refresh")
		} else {
			out.Refresh = int(refreshEvery / time.Second)
			query.Set("reload", "") // the session check then counts no activity
			out.Reload = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
			query.Del("reload")
			query.Set("refresh", "off")
		}
		out.Pause = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	}
	// A page is sent complete or not at all: half a page could mislead.
	var text bytes.Buffer
	if err := p.templates[out.Name].Execute(&text, out); err != nil {
		p.log.ErrorContext(r.Context(), "page failed", "path", webserver.Path(r), "err", webserver.ErrorText(err))
		http.Error(w, "The page could not be rendered. The log of the server has the error.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the reader has gone if this fails
}

// failure is the content of an error page.
type failure struct {
	What string
	Do   string
}

func (p *pages) problem(r *http.Request, err error) (page, int) {
	out := page{Name: "problem", Title: "Something went wrong"}
	switch {
	case errors.Is(err, registry.ErrNotFound):
		out.Title = "Not found"
		out.Content = failure{What: "No page at " + webserver.Path(r) + ".", Do: "Check the address. What it showed may have been removed."}
		return out, http.StatusNotFound
	case errors.Is(err, errBadQuery):
		out.Title = "Not understood"
		out.Content = failure{What: err.Error() + ".", Do: "Go back, or open the first page of the list."}
		return out, http.StatusBadRequest
	case errors.Is(err, errForbidden):
		out.Title = "Not allowed"
		out.Content = failure{What: "Your role does not allow this.", Do: "Ask an operator or an admin."}
		return out, http.StatusForbidden
	case errors.Is(err, errRefused):
		out.Title = "Not possible"
		out.Content = failure{What: capital(err.Error()) + ".", Do: "Go back and reload the page."}
		return out, http.StatusConflict
	case errors.Is(err, context.Canceled):
		out.Content = failure{What: "The request was cancelled before the page was complete.", Do: "Reload the page."}
		return out, http.StatusServiceUnavailable
	}
	p.log.ErrorContext(r.Context(), "page failed", "path", webserver.Path(r), "err", webserver.ErrorText(err))
	out.Content = failure{What: "The Registry did not answer.", Do: "Reload the page. If this persists, see the log of the server."}
	return out, http.StatusInternalServerError
}

// errBadQuery is the error of an address with a query that no page links to.
var errBadQuery = errors.New("the address or form has an invalid value")

// Errors of forms.
var (
	errForbidden = errors.New("your role does not allow this")
	errRefused   = errors.New("refused")
)

// queryNumber parses a number of the query; 0 if it is absent.
func queryNumber(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errBadQuery
	}
	return n, nil
}

// badCursor turns the Registry's refusal of a cursor into errBadQuery.
func badCursor(r *http.Request, err error) error {
	if errors.Is(err, registry.ErrNotFound) && r.URL.Query().Get("after") != "" {
		return errBadQuery
	}
	return err
}

// nextPage is the address of the next page of a list, "" on the last page.
func nextPage(r *http.Request, next string) string {
	if next == "" {
		return ""
	}
	query := r.URL.Query()
	query.Set("after", next)
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}
