package admin

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// actMigrate is the act of the pages that retires a storage and fills another one in its place.
const actMigrate = "migrate"

func (p pages) addStorages() {
	p.Get("/storages", p.storages)
	p.Get("/storages/{name}", p.storage)
	p.Get("/copies", p.copies)
	p.Get("/change/storage", p.askStorage)
	p.Post("/change/storage", p.changeStorage)
}

// copiesURL is the address of a collection's objects with too few copies.
func copiesURL(collection string) string {
	return "/copies?" + url.Values{"collection": {collection}}.Encode()
}

// storageActURL is the address of the form of an act.
func storageActURL(act, name string) string {
	v := url.Values{"act": {act}}
	if name != "" {
		v.Set("name", name)
	}
	return "/change/storage?" + v.Encode()
}

// storageRow is a storage as pages show it.
type storageRow struct {
	registry.Storage

	Address string // "": the service has none of it
}

// Percent is how much of what was to be copied is copied.
func (s storageRow) Percent() int64 { return int64(100 * s.Copied()) }

// Rate is how many bytes an hour were copied since the act; 0: not known yet.
func (s storageRow) Rate() int64 {
	if s.Since == nil {
		return 0
	}
	return int64(float64(max(0, s.Begun.SizeBytes-s.Left().SizeBytes)) / max(1, time.Since(*s.Since).Seconds()) * time.Hour.Seconds())
}

// Rest is when it is ready, estimated; 0: not known.
func (s storageRow) Rest() time.Duration { return time.Duration(s.RestSeconds) * time.Second }

// Acts are the acts that its state allows.
func (s storageRow) Acts() []string {
	switch s.State {
	case registry.StorageRetired:
		return nil
	case registry.StorageRetiring:
		return []string{string(registry.ActKeep), string(registry.ActPlace)}
	case registry.StorageInUse, registry.StorageFilling:
	}
	return []string{string(registry.ActFill), actMigrate, string(registry.ActRetire), string(registry.ActPlace)}
}

// storageActLabel is the text of an act's button, in English.
func storageActLabel(act string) string {
	switch act {
	case string(registry.ActFill):
		return "Use and fill a storage"
	case actMigrate:
		return "Put another storage in its place"
	case string(registry.ActRetire):
		return "Retire the storage"
	case string(registry.ActKeep):
		return "Keep the storage after all"
	case string(registry.ActPlace):
		return "Say where it is"
	}
	return act
}

func rowsOf(r wire.StorageReport) (rows []storageRow) {
	for _, s := range r.Storages {
		rows = append(rows, storageRow{s, r.Addresses[s.Name]})
	}
	return rows
}

// storagesPage is the content of the list of storages.
type storagesPage struct {
	Rows  []storageRow
	Short []registry.CollectionCopies // the collections with objects that have too few copies
	At    time.Time
	May   bool // change
}

func (p pages) storages(r *http.Request) (page.Page, error) {
	report, err := p.API.Storages(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	content := storagesPage{Rows: rowsOf(report), At: report.At, May: p.May(r.Context(), "change-storage")}
	for _, c := range report.Collections {
		if c.Short.Objects > 0 {
			content.Short = append(content.Short, c)
		}
	}
	return page.Page{Name: "storages", Title: p.Texts(r).T("Storages"), Section: "storages", Live: true, Alike: true, Content: content}, nil
}

// lackingShown is how many objects one page lists.
const lackingShown = 50

// storagePage is the content of a storage's page.
type storagePage struct {
	storageRow

	At      time.Time
	Writers string // address of the items that may still write to it
	Lacking []registry.StorageObject
	Next    string
	May     bool
}

func (p pages) storage(r *http.Request) (page.Page, error) {
	ctx, name := r.Context(), r.PathValue("name")
	report, err := p.API.Storages(ctx)
	if err != nil {
		return page.Page{}, err
	}
	rows := rowsOf(report)
	i := slices.IndexFunc(rows, func(s storageRow) bool { return s.Name == name })
	if i < 0 {
		return page.Page{}, page.NotFound("storage " + strconv.Quote(name))
	}
	content := storagePage{storageRow: rows[i], At: report.At, May: p.May(ctx, "change-storage")}
	content.Writers = "/items?" + url.Values{"q": {"storage:" + name + " status:prepare,pending,running,failed,cancelled"}}.Encode()
	lacking, err := p.API.StorageObjects(ctx, registry.StorageObjectsQuery{Storage: name, After: r.URL.Query().Get("after"), Limit: lackingShown})
	content.Lacking, content.Next = lacking.Rows, page.Next(r, lacking.Next)
	return page.Page{Name: "storage", Title: name, Section: "storages", Live: content.Changing(), Alike: true, Content: content}, err
}

// copiesPage is the content of the list of objects with too few copies.
type copiesPage struct {
	Collection string // "": all
	Counted    []registry.CollectionCopies
	Objects    registry.Page[registry.StorageObject]
	Next       string
}

func (p pages) copies(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	content := copiesPage{Collection: r.URL.Query().Get("collection")}
	report, err := p.API.Storages(ctx)
	if err != nil {
		return page.Page{}, err
	}
	content.Counted = report.Collections
	content.Objects, err = p.API.StorageObjects(ctx, registry.StorageObjectsQuery{Collection: content.Collection, After: r.URL.Query().Get("after"), Limit: lackingShown})
	content.Next = page.Next(r, content.Objects.Next)
	return page.Page{Name: "copies", Title: p.Texts(r).T("Objects with too few copies"), Section: "storages", Content: content}, err
}

// storageActPage is the form of an act, with its consequences once they are known.
type storageActPage struct {
	Act         string
	Name        string // of the storage
	To          string // that takes its place
	Offsite     string // "", "yes" or "no"
	Chosen      []string
	Reason      string
	Would       *registry.StorageChanged // nil: the form is not complete
	Choices     []string                 // storages to choose from
	Collections []registry.Collection
}

// Has says that a collection is chosen.
func (a storageActPage) Has(collection string) bool { return slices.Contains(a.Chosen, collection) }

// Offsites says that the form asks whether the storage is off-site.
func (a storageActPage) Offsites() bool {
	return a.Act == string(registry.ActFill) || a.Act == string(registry.ActPlace) || a.Act == actMigrate
}

// complete says that the act's consequences can be asked for.
func (a storageActPage) complete() bool {
	switch a.Act {
	case actMigrate:
		return a.To != ""
	case string(registry.ActPlace):
		return a.Offsite != ""
	}
	return a.Name != ""
}

// request is what the API is asked.
func (a storageActPage) request() wire.StorageRequest {
	r := wire.StorageRequest{Act: a.Act, Collections: a.Chosen, To: a.To, Reason: a.Reason}
	if a.Act == actMigrate {
		r.Act = string(registry.ActRetire)
	}
	if a.Offsite != "" {
		is := a.Offsite == "yes"
		r.Offsite = &is
	}
	return r
}

func storageActOf(v url.Values) (storageActPage, error) {
	a := storageActPage{
		Act: v.Get("act"), Name: strings.TrimSpace(v.Get("name")), To: strings.TrimSpace(v.Get("to")), Offsite: v.Get("offsite"),
		Chosen: v["collection"], Reason: strings.TrimSpace(v.Get("reason")),
	}
	if storageActLabel(a.Act) == a.Act {
		return a, page.Invalid("the address names no act")
	}
	if a.Name == "" && a.Act != string(registry.ActFill) {
		return a, page.Invalid("the address names no storage")
	}
	if a.Offsite != "" && a.Offsite != "yes" && a.Offsite != "no" {
		return a, page.Invalid("the address names no act")
	}
	return a, nil
}

// askStorage shows the form of an act, and what the act would do once it is complete.
func (p pages) askStorage(r *http.Request) (page.Page, error) {
	a, err := storageActOf(r.URL.Query())
	if err == nil {
		err = p.need(r, "change-storage")
	}
	if err != nil {
		return page.Page{}, err
	}
	return p.storageForm(r, a)
}

func (p pages) storageForm(r *http.Request, a storageActPage) (page.Page, error) {
	ctx := r.Context()
	var refused *wire.Problem
	if a.complete() {
		ask := a.request()
		ask.DryRun, ask.Reason = true, ""
		would, err := p.API.ChangeStorage(ctx, a.Name, ask)
		if problem, ok := page.Refusal(err); ok {
			refused = problem
		} else if err != nil {
			return page.Page{}, err
		} else {
			a.Would = &would
		}
	}
	if err := p.chooseStorage(ctx, &a); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "storageact", Title: p.Texts(r).T(storageActLabel(a.Act)), Section: "storages", Content: a, Refused: refused}, nil
}

// chooseStorage adds what the form offers.
func (p pages) chooseStorage(ctx context.Context, a *storageActPage) error {
	report, err := p.API.Storages(ctx)
	if err != nil {
		return err
	}
	for _, s := range report.Storages {
		leaving := s.State == registry.StorageRetiring || s.State == registry.StorageRetired
		if !leaving && report.Addresses[s.Name] != "" && (a.Act != actMigrate || s.Name != a.Name) {
			a.Choices = append(a.Choices, s.Name)
		}
	}
	if a.Act == string(registry.ActFill) {
		a.Collections, err = p.API.Collections(ctx)
		a.Collections = a.Collections[:min(len(a.Collections), mostCollections)]
	}
	return err
}

// changeStorage carries out an act, and leads to the storage.
func (p pages) changeStorage(r *http.Request) (string, *page.Page, error) {
	a, err := storageActOf(r.PostForm)
	if err != nil {
		return "", nil, err
	}
	done, err := p.API.ChangeStorage(r.Context(), a.Name, a.request())
	if problem, ok := page.Refusal(err); ok {
		again, err := p.storageForm(r, a)
		again.Refused = problem
		return "", &again, err
	} else if err != nil {
		return "", nil, err
	}
	return page.StorageURL(done.Storage), nil, nil
}
