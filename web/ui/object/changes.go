package object

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// changesPage is the content of the page of what differs between two versions.
type changesPage struct {
	Object  registry.Object
	Version int
	Since   int
	All     bool // Holdfast's own files, too
	Rows    []registry.FileChange
	After   string // where this page begins
	Next    string
}

const changesShown = 200

// changesURL is the address of the page of what differs between a version and an earlier one.
func changesURL(id string, since, version int) string {
	query := url.Values{"since": {strconv.Itoa(since)}, "version": {strconv.Itoa(version)}}
	return (&url.URL{Path: "/objects/" + id, RawQuery: query.Encode()}).String()
}

// before is the version before one; 0: it is the first.
func before(version int) int { return version - 1 }

// changes shows which files differ between two versions.
func (p pages) changes(r *http.Request, o registry.Object, v registry.ObjectVersion) (page.Page, error) {
	since, err := page.Number(r, "since")
	if err != nil {
		return page.Page{}, err
	}
	if since >= int64(v.Version) {
		return page.Page{}, page.Invalid("version %d is not before version %d", since, v.Version)
	}
	out := changesPage{Object: o, Version: v.Version, Since: int(since), All: r.URL.Query().Get("all") != "", After: r.URL.Query().Get("after")}
	q := registry.FileChangesQuery{ObjectID: o.ID, Version: out.Version, Since: out.Since, Folder: registry.ProducerFolder, After: out.After, Limit: changesShown}
	if out.All {
		q.Folder = ""
	}
	list, err := p.API.FileChanges(r.Context(), q)
	if err != nil {
		return page.Page{}, err
	}
	out.Rows, out.Next = list.Rows, page.Next(r, list.Next)
	return page.Page{Name: "changes", Title: p.Texts(r).T("Changes of version %d", out.Version) + ": " + o.ID, Section: "objects", Content: out}, nil
}
