package search

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// viewsShown is how many saved views stand above the list; the others are behind a summary.
const viewsShown = 10

// savedView is a saved view as the list of items offers it.
type savedView struct {
	registry.View

	URL string
	Own bool
	On  bool // the list shows what it selects, in its columns and order
}

// savedViews are the views on the page of items, and what the viewer may do with them.
type savedViews struct {
	All      []savedView
	Opened   *savedView // by its address
	MaySave  bool
	MayShare bool
	MayDrop  bool // the opened one
}

// First are the views above the list; Rest are the others.
func (v savedViews) First() []savedView { return v.All[:min(len(v.All), viewsShown)] }

// Rest are the views that do not stand above the list.
func (v savedViews) Rest() []savedView { return v.All[min(len(v.All), viewsShown):] }

// RestOn reports whether one of the rest is shown.
func (v savedViews) RestOn() bool {
	return slices.ContainsFunc(v.Rest(), func(s savedView) bool { return s.On })
}

// viewURL is the address of a view.
func viewURL(id string) string { return "/items?" + url.Values{"view": {id}}.Encode() }

// open fills in what the view of an address says, unless the address says it itself.
func (p pages) open(ctx context.Context, form url.Values) (*registry.View, error) {
	id := form.Get("view")
	if id == "" || form.Has("q") || form.Has("col") || form.Has("order") {
		form.Del("view")
		return nil, nil //nolint:nilnil // as it says
	}
	v, err := p.API.View(ctx, id)
	if err != nil {
		return nil, err
	}
	form.Set("q", v.Query)
	form["col"] = v.Columns
	if v.Oldest {
		form.Set("order", "oldest")
	}
	return &v, nil
}

// views are the saved views that the viewer sees. A failure leaves them out: the list is right without.
func (p pages) views(ctx context.Context, opened *registry.View, now registry.View) savedViews {
	out := savedViews{MaySave: p.May(ctx, "add-view"), MayShare: p.May(ctx, "share-view")}
	name := p.Caller(ctx).Name
	all, err := p.API.Views(ctx)
	if err != nil {
		return out
	}
	for _, v := range all {
		s := savedView{View: v, URL: viewURL(v.ID), Own: v.Owner == name}
		now.Name, now.Shared = v.Name, v.Shared
		s.On = opened != nil && opened.ID == v.ID || opened == nil && v.Same(now)
		out.All = append(out.All, s)
		if s.On && opened != nil {
			out.Opened = &s
			out.MayDrop = s.Own || p.May(ctx, "remove-view") && p.Caller(ctx).Role == registry.RoleAdmin
		}
	}
	return out
}

// viewPage is the form of a view that could not be saved as asked.
type viewPage struct {
	Action string // of the form
	Ask    wire.ViewRequest
	Have   *registry.View // the viewer's view of the name, which may be replaced
	May    bool           // share
	Back   string
}

// askedView reads the form of a view.
func askedView(form url.Values) (wire.ViewRequest, error) {
	ask := wire.ViewRequest{
		Name: strings.TrimSpace(form.Get("name")), Query: form.Get("q"), Columns: form["col"], Oldest: form.Get("order") == "oldest", Shared: form.Get("shared") == "yes",
	}
	if text := form.Get("version"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return ask, page.Invalid("%.50q is not the version of a view", text)
		}
		ask.Version = n
	}
	return ask, nil
}

// listURL is the address of the list that a view would show.
func listURL(ask wire.ViewRequest) string {
	form := url.Values{"q": {ask.Query}, "col": ask.Columns}
	if ask.Oldest {
		form.Set("order", "oldest")
	}
	return address(form)
}

// addView saves the present list as a view, or replaces the view of the name if the form says so.
func (p pages) addView(r *http.Request) (string, *page.Page, error) {
	ask, err := askedView(r.PostForm)
	if err != nil {
		return "", nil, err
	}
	if !p.May(r.Context(), "add-view") {
		return "", nil, page.Forbidden()
	}
	var v registry.View
	if id := r.PostForm.Get("replace"); id != "" {
		v, err = p.API.EditView(r.Context(), id, ask)
	} else {
		v, err = p.API.AddView(r.Context(), ask)
	}
	return p.savedView(r, "/views", ask, v, err)
}

// editView renames, shares or no longer shares a view.
func (p pages) editView(r *http.Request) (string, *page.Page, error) {
	form, err := askedView(r.PostForm)
	if err != nil {
		return "", nil, err
	}
	have, err := p.API.View(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	ask := wire.ViewRequestOf(have)
	ask.Name, ask.Shared, ask.Version = form.Name, form.Shared, form.Version
	v, err := p.API.EditView(r.Context(), have.ID, ask)
	if errors.Is(err, registry.ErrViewChanged) {
		ask.Version = have.Version // the form is shown again with what is there now
	}
	return p.savedView(r, "/views/"+have.ID, ask, v, err)
}

// savedView leads to a view, or shows its form again with what is wrong.
func (p pages) savedView(r *http.Request, action string, ask wire.ViewRequest, v registry.View, err error) (string, *page.Page, error) {
	refusal, refused := page.Refusal(err)
	if !refused && err != nil {
		return "", nil, err
	}
	if !refused {
		return viewURL(v.ID), nil, nil
	}
	t := p.Texts(r)
	again := viewPage{Action: action, Ask: ask, May: p.May(r.Context(), "share-view"), Back: listURL(ask)}
	if action == "/views" && (errors.Is(err, registry.ErrViewExists) || errors.Is(err, registry.ErrViewChanged)) {
		all, err := p.API.Views(r.Context())
		if err != nil {
			return "", nil, err
		}
		name := p.Caller(r.Context()).Name
		if i := slices.IndexFunc(all, func(v registry.View) bool { return v.Owner == name && v.Name == ask.Name }); i >= 0 {
			again.Have = &all[i]
		}
	}
	return "", &page.Page{Name: "view", Title: t.T("Save as a view"), Section: "items", Content: again, Refused: refusal}, nil
}

// removeView removes a view, and leads to the list that it showed: from there it can be saved again.
func (p pages) removeView(r *http.Request) (string, *page.Page, error) {
	v, err := p.API.View(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	if err := p.API.RemoveView(r.Context(), v.ID); err != nil {
		return "", nil, err
	}
	return listURL(wire.ViewRequestOf(v)), nil, nil
}

// present is the list that an address shows, as a view would keep it.
func present(form url.Values, match registry.Query) registry.View {
	return registry.View{Query: match.String(), Columns: form["col"], Oldest: form.Get("order") == "oldest"}
}
