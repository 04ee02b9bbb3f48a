// Package object serves the pages of preserved objects, of their files and of their deletion.
package object

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, template.FuncMap{
		"deletionURL": deletionURL, "decisionLabel": decisionLabel, "actLabel": actLabel, "versionURL": versionURL, "changesURL": changesURL, "before": before, "fileURL": fileURL, "apiURL": apiURL, "like": like, "cameWith": cameWith, "shownName": shownName,
		"isBad": func(f wire.VerifyFault) bool { return !strings.HasPrefix(f.Code, "W") },
	}, "objects", "object", "file", "changes", "objectact", "verified", "deletions", "decision")
	s.Get("/objects", p.objects)
	s.Get("/objects/{id...}", p.object)
	s.Post("/objects/{id...}", p.act)
	s.Get("/deletions", p.deletions)
	s.Get("/deletions/{id...}", p.askDecision)
	s.Post("/deletions/{id...}", p.decide)
}

// versionURL is the address of an object's page that shows a folder of a version. "": the producer's
// files.
func versionURL(id string, version int, folder string) string {
	query := url.Values{"version": {strconv.Itoa(version)}}
	if folder != "" {
		query.Set("folder", folder)
	}
	return (&url.URL{Path: "/objects/" + id, RawQuery: query.Encode(), Fragment: "files"}).String()
}

// fileURL is the address of the page of a file.
func fileURL(id string, version int, path string) string {
	query := url.Values{"version": {strconv.Itoa(version)}, "file": {path}}
	return (&url.URL{Path: "/objects/" + id, RawQuery: query.Encode()}).String()
}

// like is a state of items that the status of a restore or of a deletion is like: it is shown with its
// symbol and colour.
func like(status any) registry.State {
	switch status {
	case registry.RestoreReady:
		return registry.StateCompleted
	case registry.RestoreFailed, registry.RestoreGivenUp, registry.DeletionDeleted:
		return registry.StateFailed
	case registry.RestoreWaiting, registry.DeletionAsked:
		return registry.StatePending
	case registry.RestoreRemoved, registry.DeletionWithdrawn, registry.DeletionExpired:
		return registry.StateDeleted
	}
	return registry.StateProcessing
}

// cameWith reports whether a version, which is not the first, brought a file's bytes.
func cameWith(f *registry.File, version int) bool {
	folder, _, _ := strings.Cut(f.ContentPath, "/")
	n, err := strconv.Atoi(strings.TrimPrefix(folder, "v")) // an adopted object has padded numbers
	return version > 1 && err == nil && n == version
}

// apiURL is the address of something of an object that the API serves.
func apiURL(id, what string) string { return "/api/v1/objects/" + url.PathEscape(id) + "/" + what }

// objectOf returns the object of the request's path.
func (p pages) objectOf(r *http.Request) (registry.Object, error) {
	ark, err := noid.ParseARK(r.PathValue("id"))
	if err != nil {
		return registry.Object{}, page.NotFound("object " + r.PathValue("id"))
	}
	return p.API.Object(r.Context(), ark.Base().Normalize().String())
}

// crumb is a folder above what a page shows.
type crumb struct{ Name, Path string }

// crumbsOf returns the folders of a path, from the second on.
func crumbsOf(folder string) (all []crumb) {
	for at := 0; ; {
		n := strings.IndexByte(folder[at:], '/')
		if n < 0 {
			return all[min(1, len(all)):]
		}
		all = append(all, crumb{folder[at : at+n], folder[:at+n+1]})
		at += n + 1
	}
}

// storageCopy says what a storage has of an object.
type storageCopy struct {
	Storage string
	Newest  int   // the newest version that is recorded there; 0: none
	Missing []int // versions that are not
	// VerifiedAt is the oldest time at which a version there was read and found right.
	VerifiedAt time.Time
	Outside    bool  // the collection's profile does not name the storage
	Damaged    int64 // files that the last checks found damaged or missing there
	Perhaps    bool  // of some damaged files it is not known where they are
}

// copiesOf says what each storage has of an object: those that it should be in, then others.
func copiesOf(o registry.Object, expected []string) (all []storageCopy) {
	has := map[string]map[int]time.Time{}
	names := slices.Clone(expected)
	for _, v := range o.Versions {
		for _, r := range v.Replicas {
			if has[r.Storage] == nil {
				has[r.Storage] = map[int]time.Time{}
			}
			has[r.Storage][v.Version] = r.VerifiedAt
			if !slices.Contains(names, r.Storage) {
				names = append(names, r.Storage)
			}
		}
	}
	for _, name := range names {
		c := storageCopy{Storage: name, Outside: len(expected) > 0 && !slices.Contains(expected, name)}
		for _, v := range o.Versions {
			at, ok := has[name][v.Version]
			if !ok {
				c.Missing = append(c.Missing, v.Version)
				continue
			}
			c.Newest = v.Version
			if c.VerifiedAt.IsZero() || at.Before(c.VerifiedAt) {
				c.VerifiedAt = at
			}
		}
		if i := slices.IndexFunc(o.DamagedIn, func(d registry.StorageDamage) bool { return d.Storage == name }); i >= 0 {
			c.Damaged = o.DamagedIn[i].Files
		}
		c.Perhaps = o.Located < o.Damaged
		all = append(all, c)
	}
	return all
}

// objectPage is the content of an object's page.
type objectPage struct {
	Object   registry.Object
	Version  registry.ObjectVersion // that is shown
	Folder   string                 // that is shown
	Crumbs   []crumb                // above it
	Entries  []wire.FolderEntry
	Alike    map[string]bool // names of Entries, see alikeNames
	After    string          // where this page of the folder begins
	Next     string
	System   []wire.FolderEntry // Holdfast's own files; nil: a folder of them is shown
	More     bool               // there are more of them
	Copies   []storageCopy
	Restores []registry.Restoration
	Events   []registry.Premis
	// MoreEvents reports whether there are more events than Events.
	MoreEvents bool
	Acts       []string            // that the viewer can ask
	Embargoed  bool                // an embargo keeps the files from others than admins
	Kept       bool                // and from the viewer
	Update     bool                // the viewer can deposit a new version
	Decisions  []registry.Decision // about its deletion, that the caller can make
	Own        bool                // the viewer requested its deletion
}

// Underway reports whether something about the object still changes by itself.
func (o objectPage) Underway() bool {
	d := o.Object.Deletion
	return o.Object.CheckAsked != nil || o.Object.Announced > 0 || d != nil && (d.Status == registry.DeletionApproved || d.Status == registry.DeletionDeleting) ||
		slices.ContainsFunc(o.Restores, func(r registry.Restoration) bool { return r.Status.Open() })
}

// Zips reports whether a zip can have all files of the version; otherwise it is downloaded as a tar.
func (o objectPage) Zips() bool {
	const most = 100_000 // as in package export
	return o.Version.Files <= most
}

// Citation is how a text refers to the object.
func (o objectPage) Citation() string {
	var parts []string
	for _, part := range []string{o.Object.Creator, o.Object.Title} {
		if part != "" {
			parts = append(parts, strings.TrimRight(part, "."))
		}
	}
	if o.Object.Date != "" && len(parts) > 0 {
		parts[0] += " (" + o.Object.Date + ")"
	}
	return strings.Join(append(parts, o.Object.ARK), ". ")
}

const (
	entriesShown  = 100
	systemShown   = 50
	eventsShown   = 50
	restoresShown = 10
)

// object shows an object, one of its files, or the form of an act.
func (p pages) object(r *http.Request) (page.Page, error) {
	query := r.URL.Query()
	o, err := p.objectOf(r)
	if err != nil {
		return page.Page{}, err
	}
	if act := query.Get("act"); act != "" {
		return p.askAct(r, o, act)
	}
	v, err := versionOf(r, o)
	if err != nil {
		return page.Page{}, err
	}
	if query.Has("since") {
		return p.changes(r, o, v)
	}
	if name := query.Get("file"); name != "" {
		return p.file(r, o, v, name)
	}
	out := objectPage{Object: o, Version: v, Folder: query.Get("folder"), After: query.Get("after"), Decisions: p.decisions(r, o), Own: p.asks(r, o)}
	out.Embargoed, out.Kept = p.Embargoed(r.Context(), o)
	if err := p.listFolder(r, &out); err != nil {
		return page.Page{}, err
	}
	if err := p.readRecord(r, &out); err != nil {
		return page.Page{}, err
	}
	out.Acts = p.actsOf(r, o)
	ctx := r.Context()
	out.Update = o.Gone == "" && p.May(ctx, "submit-payload")
	title := o.Title
	if title == "" {
		title = o.ID
	}
	return page.Page{Name: "object", Title: title, Section: "objects", Live: out.Underway(), Content: out}, nil
}

// versionOf returns the version that the address names, or the newest.
func versionOf(r *http.Request, o registry.Object) (v registry.ObjectVersion, err error) {
	n, err := page.Number(r, "version")
	if err != nil {
		return v, err
	}
	if n == 0 {
		n = int64(o.Head)
	}
	i := slices.IndexFunc(o.Versions, func(v registry.ObjectVersion) bool { return int64(v.Version) == n })
	if i < 0 {
		return v, page.NotFound(fmt.Sprintf("version %d of %s", n, o.ID))
	}
	return o.Versions[i], nil
}

// listFolder reads the folder that is shown and, beside the producer's files, Holdfast's own.
func (p pages) listFolder(r *http.Request, out *objectPage) error {
	ctx, id, version := r.Context(), out.Object.ID, out.Version.Version
	first := out.Folder == "" && out.Object.Adopted == 0 // others had folders of their own
	if first {
		out.Folder = registry.ProducerFolder
	}
	list, err := p.API.Folder(ctx, id, version, out.Folder, out.After, entriesShown)
	if first && isNotFound(err) { // an object without files of its producer
		err = nil
	}
	if err != nil {
		return err
	}
	out.Alike = alikeNames(list.Rows)
	out.Entries, out.Next, out.Crumbs = list.Rows, page.Next(r, list.Next), crumbsOf(out.Folder)
	if strings.HasPrefix(out.Folder, registry.SystemFolder) {
		return nil
	}
	system, err := p.API.Folder(ctx, id, version, registry.SystemFolder, "", systemShown)
	if isNotFound(err) {
		err = nil
	}
	out.System, out.More = system.Rows, system.Next != ""
	return err
}

// readRecord reads the copies, the restores and the events of an object.
func (p pages) readRecord(r *http.Request, out *objectPage) error {
	ctx, o := r.Context(), out.Object
	var expected []string
	c, err := p.API.Collection(ctx, o.Collection)
	if err == nil {
		expected = c.Profile.StorageNames()
	} else if !isNotFound(err) {
		return err
	}
	out.Copies = copiesOf(o, expected)
	if p.May(ctx, "list-restores") {
		if out.Restores, err = p.API.Restorations(ctx, o.ID, 0, restoresShown); err != nil {
			return err
		}
	}
	events, err := p.API.PremisEvents(ctx, o.ID, "", eventsShown)
	out.Events, out.MoreEvents = events.Rows, events.Next != ""
	return err
}
