package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// mostCollections is how many collections the list shows; a search finds the others.
const mostCollections = 200

// collectionsPage is the content of the list of collections.
type collectionsPage struct {
	Text   string // part of the name that people look for
	Rows   []collectionRow
	More   int // found, but not shown
	MayAdd bool
}

// collectionRow is a collection with what stops or slows it.
type collectionRow struct {
	registry.Collection

	Holds []registry.Hold
	Limit *registry.Limit
}

// StorageNames are the names of its storages.
func (c collectionRow) StorageNames() string {
	if len(c.Profile.Storages) == 0 {
		return registry.DefaultStorage
	}
	return strings.Join(c.Profile.Storages, ", ")
}

func (p pages) collections(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	content := collectionsPage{Text: strings.TrimSpace(r.URL.Query().Get("text")), MayAdd: p.May(ctx, "put-collection")}
	all, err := p.API.Collections(ctx)
	if err != nil {
		return page.Page{}, err
	}
	state, err := p.stateOf(ctx)
	if err != nil {
		return page.Page{}, err
	}
	part := strings.ToLower(content.Text)
	for _, c := range all {
		if !strings.Contains(strings.ToLower(c.Mnemonic+" "+c.Profile.Name+" "+c.Profile.Owner), part) {
			continue
		}
		if len(content.Rows) == mostCollections {
			content.More++
			continue
		}
		content.Rows = append(content.Rows, state.of(c))
	}
	return page.Page{Name: "collections", Title: p.Texts(r).T("Collections"), Section: "collections", Content: content}, nil
}

// brakes are what stops or slows collections.
type brakes struct {
	holds  []registry.Hold
	limits []registry.Limit
}

// stateOf reads holds and limits, as far as the viewer may.
func (p pages) stateOf(ctx context.Context) (b brakes, err error) {
	if b.holds, err = p.API.Holds(ctx); err != nil {
		return b, err
	}
	if p.May(ctx, "list-limits") {
		b.limits, err = p.API.Limits(ctx)
	}
	return b, err
}

// of returns a collection with its holds and its limit.
func (b brakes) of(c registry.Collection) collectionRow {
	row := collectionRow{Collection: c}
	for _, h := range b.holds {
		if h.Scope == registry.HoldCollection && h.Key == c.Mnemonic {
			row.Holds = append(row.Holds, h)
		}
	}
	for _, l := range b.limits {
		if l.Scope == registry.HoldCollection && l.Key == c.Mnemonic {
			row.Limit = &l
		}
	}
	return row
}

// collectionPage is the content of a collection's page.
type collectionPage struct {
	collectionRow

	Versions []versionRow // the newest
	More     bool         // there are older ones
	Saved    bool         // the newest was saved on the page before
	BagName  string       // of its BagIt profile
	Items    string       // address of its items
	Short    int64        // its objects with fewer copies than the profile asks for
	May      struct{ Edit, Hold, Release, Limit, Credentials bool }
}

func (p pages) collection(r *http.Request) (page.Page, error) {
	const newest = 5
	ctx := r.Context()
	c, err := p.API.Collection(ctx, r.PathValue("name"))
	if err != nil {
		return page.Page{}, err
	}
	state, err := p.stateOf(ctx)
	if err != nil {
		return page.Page{}, err
	}
	content := collectionPage{
		collectionRow: state.of(c), BagName: bagName(c.Profile.BagProfile), Items: "/items?" + url.Values{"q": {"collection:" + c.Mnemonic}}.Encode(),
		Saved: r.URL.Query().Get("saved") == strconv.Itoa(c.Version),
	}
	content.May.Edit, content.May.Limit = p.May(ctx, "put-collection"), p.May(ctx, "set-limit")
	content.May.Hold, content.May.Release = p.May(ctx, "add-hold"), p.May(ctx, "remove-hold")
	content.May.Credentials = p.May(ctx, "list-credentials")
	if content.Versions, content.More, err = p.versionsOf(ctx, c.Mnemonic, 0, newest); err != nil {
		return page.Page{}, err
	}
	if p.May(ctx, "list-storages") {
		report, err := p.API.Storages(ctx)
		if err != nil {
			return page.Page{}, err
		}
		for _, of := range report.Collections {
			if of.Collection == c.Mnemonic {
				content.Short = of.Short.Objects
			}
		}
	}
	return page.Page{Name: "collection", Title: c.Mnemonic, Section: "collections", Content: content}, nil
}

// bagName is the identifier of a BagIt profile; "" if there is none.
func bagName(doc json.RawMessage) string {
	var p struct {
		Info struct {
			ID string `json:"BagIt-Profile-Identifier"`
		} `json:"BagIt-Profile-Info"`
	}
	if len(doc) == 0 || json.Unmarshal(doc, &p) != nil || p.Info.ID == "" {
		return strings.TrimSpace(string(doc[:min(len(doc), 40)]))
	}
	return p.Info.ID
}

// holdCollection holds a collection.
func (p pages) holdCollection(r *http.Request) (string, *page.Page, error) {
	name := r.PathValue("name")
	err := p.API.AddHold(r.Context(), registry.Hold{Scope: registry.HoldCollection, Key: name, Reason: strings.TrimSpace(r.PostForm.Get("reason"))})
	return collectionURL(name), nil, err
}

// releaseCollection removes a collection's hold.
func (p pages) releaseCollection(r *http.Request) (string, *page.Page, error) {
	name := r.PathValue("name")
	return collectionURL(name), nil, p.API.RemoveHold(r.Context(), registry.HoldCollection, name)
}

// limitCollection sets a collection's limit, or removes it if it limits nothing.
func (p pages) limitCollection(r *http.Request) (string, *page.Page, error) {
	ctx, name := r.Context(), r.PathValue("name")
	limit := registry.Limit{Scope: registry.HoldCollection, Key: name}
	for field, to := range map[string]*int{"most": &limit.Most, "weight": &limit.Weight} {
		if strings.TrimSpace(r.PostForm.Get(field)) == "" {
			continue
		}
		n, err := p.NumberOf(r, field)
		if err != nil {
			return "", nil, err
		}
		*to = n
	}
	if _, err := p.API.Collection(ctx, name); err != nil {
		return "", nil, err
	}
	if limit.Most == 0 && limit.Weight == 0 {
		if err := p.API.RemoveLimit(ctx, limit.Scope, name); err != nil && !isNotFound(err) {
			return "", nil, err
		}
		return collectionURL(name), nil, nil
	}
	return collectionURL(name), nil, p.API.SetLimit(ctx, limit)
}

// versionRow is a version of a profile with what it changed.
type versionRow struct {
	registry.ProfileVersion

	Changes []string // none: it is the first
}

// versionsOf lists versions of a profile, newest first: those before a number, or all.
func (p pages) versionsOf(ctx context.Context, name string, before, limit int) (rows []versionRow, more bool, err error) {
	all, err := p.API.ProfileVersions(ctx, name, before, limit+1)
	if err != nil {
		return nil, false, err
	}
	for i, v := range all {
		if i == limit {
			return rows, true, nil
		}
		row := versionRow{ProfileVersion: v}
		if i+1 < len(all) {
			if row.Changes, err = profile.Changes(all[i+1].Profile, v.Profile); err != nil {
				return nil, false, err
			}
		}
		rows = append(rows, row)
	}
	return rows, false, nil
}

// versionsPage is the content of the list of a profile's versions.
type versionsPage struct {
	Name     string
	Versions []versionRow
	Next     string
	From, To int // the versions to compare; 0: none
	Changes  []string
	MayEdit  bool
}

func (p pages) versions(r *http.Request) (page.Page, error) {
	const atOnce = 50
	ctx, name := r.Context(), r.PathValue("name")
	content := versionsPage{Name: name, MayEdit: p.May(ctx, "put-collection")}
	var numbers [3]int
	for i, field := range []string{"before", "from", "to"} {
		n, err := page.Number(r, field)
		if err != nil {
			return page.Page{}, err
		}
		numbers[i] = int(n)
	}
	content.From, content.To = numbers[1], numbers[2]
	var more bool
	var err error
	if content.Versions, more, err = p.versionsOf(ctx, name, numbers[0], atOnce); err != nil {
		return page.Page{}, err
	}
	if more {
		content.Next = page.With(r, "before", strconv.Itoa(content.Versions[len(content.Versions)-1].Version))
	}
	if content.From > 0 && content.To > 0 {
		from, err := p.API.ProfileVersion(ctx, name, content.From)
		if err != nil {
			return page.Page{}, err
		}
		to, err := p.API.ProfileVersion(ctx, name, content.To)
		if err != nil {
			return page.Page{}, err
		}
		if content.Changes, err = profile.Changes(from.Profile, to.Profile); err != nil {
			return page.Page{}, err
		}
	}
	return page.Page{Name: "versions", Title: p.Texts(r).T("Versions of the profile") + ": " + name, Section: "collections", Content: content}, nil
}

// versionPage is the content of the page of one version of a profile.
type versionPage struct {
	registry.ProfileVersion

	Text    string // the profile in YAML
	MayEdit bool
}

func (p pages) version(r *http.Request) (page.Page, error) {
	n, err := strconv.Atoi(r.PathValue("version"))
	if err != nil {
		return page.Page{}, page.NotFound("version " + strconv.Quote(r.PathValue("version")))
	}
	v, err := p.API.ProfileVersion(r.Context(), r.PathValue("name"), n)
	if err != nil {
		return page.Page{}, err
	}
	text, err := profile.YAML(v.Profile)
	if err != nil {
		return page.Page{}, err
	}
	content := versionPage{v, string(text), p.May(r.Context(), "put-collection")}
	return page.Page{Name: "version", Title: v.Collection + " " + strconv.Itoa(n), Section: "collections", Content: content}, nil
}
