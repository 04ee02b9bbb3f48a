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

// refreshEvery is how often a page that still changes is loaded again.
const refreshEvery = 5 * time.Second

// page is what every page has, with its own content.
type page struct {
	Name    string // of its template
	Title   string
	Section string // which entry of the navigation it belongs to
	Live    bool   // what it shows still changes
	Content any

	Refresh int    // seconds; 0: never. Filled in by show, with what follows
	Reload  string // the address by which the page loads itself again
	Who     registry.Session
	Uploads bool   // who looks may see the page of uploads
	Pause   string // the address of the same page without refreshing, or with
	Path    string
	Version string
	At      time.Time
}

// show makes a handler of what gathers a page's content.
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

// fail shows what went wrong.
func (p *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	out, status := p.problem(r, err)
	p.write(w, r, out, status)
}

// write sends a page.
func (p *pages) write(w http.ResponseWriter, r *http.Request, out page, status int) {
	out.At, out.Version, out.Path = p.now().UTC(), p.version, r.URL.Path
	if p.account != nil {
		out.Who = p.account.Current(r.Context())
	}
	out.Uploads = p.uploads != nil && p.uploads.MaySee(r.Context())
	if out.Live {
		query := r.URL.Query()
		if query.Get("refresh") == "off" {
			query.Del("refresh")
		} else {
			out.Refresh = int(refreshEvery / time.Second)
			query.Set("reload", "") // so that the server knows that nobody has asked
			out.Reload = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
			query.Del("reload")
			query.Set("refresh", "off")
		}
		out.Pause = (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	}
	// Whole or not at all: a page that breaks off in the middle would look like the truth.
	var text bytes.Buffer
	if err := p.templates[out.Name].Execute(&text, out); err != nil {
		p.log.ErrorContext(r.Context(), "page failed", "path", webserver.Path(r), "err", webserver.ErrorText(err))
		http.Error(w, "The page could not be made; the log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the reader has gone if this fails
}

// failure is what the page of a problem says.
type failure struct {
	What string
	Do   string
}

func (p *pages) problem(r *http.Request, err error) (page, int) {
	out := page{Name: "problem", Title: "Something went wrong"}
	switch {
	case errors.Is(err, registry.ErrNotFound):
		out.Title = "Not found"
		out.Content = failure{What: "There is nothing at " + webserver.Path(r) + ".", Do: "It may have been removed, or the address is not whole."}
		return out, http.StatusNotFound
	case errors.Is(err, errBadQuery):
		out.Title = "Not understood"
		out.Content = failure{What: err.Error() + ".", Do: "Go back, or begin at the first page of the list."}
		return out, http.StatusBadRequest
	case errors.Is(err, errForbidden):
		out.Title = "Not allowed"
		out.Content = failure{What: "Your token's role may not do this.", Do: "Ask an operator."}
		return out, http.StatusForbidden
	case errors.Is(err, errRefused):
		out.Title = "Not possible"
		out.Content = failure{What: capital(err.Error()) + ".", Do: "Go back and load the page again."}
		return out, http.StatusConflict
	case errors.Is(err, context.Canceled):
		out.Content = failure{What: "The page was given up before it was whole.", Do: "Load it again."}
		return out, http.StatusServiceUnavailable
	}
	p.log.ErrorContext(r.Context(), "page failed", "path", webserver.Path(r), "err", webserver.ErrorText(err))
	out.Content = failure{What: "The Registry did not answer.", Do: "Load the page again; if it stays so, the log says why."}
	return out, http.StatusInternalServerError
}

// errBadQuery says that an address has a query that no link here has.
var errBadQuery = errors.New("the address has a value that cannot be")

// Errors of the forms.
var (
	errForbidden = errors.New("the role may not do this")
	errRefused   = errors.New("refused")
)

// queryNumber is a number in the query, 0 when it is not there.
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

// badCursor turns the Registry's answer to a cursor that it never gave into one about the address.
func badCursor(r *http.Request, err error) error {
	if errors.Is(err, registry.ErrNotFound) && r.URL.Query().Get("after") != "" {
		return errBadQuery
	}
	return err
}

// nextPage is the address of the page after this one, "" when this is the last.
func nextPage(r *http.Request, next string) string {
	if next == "" {
		return ""
	}
	query := r.URL.Query()
	query.Set("after", next)
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}
