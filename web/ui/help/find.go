package help

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// find answers GET /find?q=TEXT: it leads to the item, the batch or the object that the text names,
// or else to a search for it. What the viewer may not see does not exist for them.
func (p pages) find(w http.ResponseWriter, r *http.Request) {
	to, err := p.found(r, strings.TrimSpace(r.URL.Query().Get("q")))
	if err != nil {
		p.Fail(w, r, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// found returns the address of the page that shows what a text names.
func (p pages) found(r *http.Request, text string) (string, error) {
	ctx := r.Context()
	search := "/items"
	if p.Caller(ctx).Role == registry.RoleDepositor {
		search = "/deposits"
	}
	switch {
	case text == "":
		return search, nil
	case strings.HasPrefix(text, "ark:"):
		o, err := p.API.Object(ctx, text)
		if err == nil {
			return page.ObjectURL(o.ID), nil
		} else if !unknown(err) {
			return "", err
		}
	case isID(text):
		it, err := p.API.Item(ctx, text)
		if err == nil {
			return page.ItemURL(it), nil
		} else if !unknown(err) {
			return "", err
		}
	}
	return search + "?" + url.Values{"q": {text}}.Encode(), nil
}

// isID reports whether a text could be an item's id or the beginning of one.
func isID(text string) bool {
	const least, most = 4, 200
	return len(text) >= least && len(text) <= most && strings.IndexFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	}) < 0
}

// unknown reports whether an error says that nothing has this name.
func unknown(err error) bool {
	if errors.Is(err, registry.ErrNotFound) {
		return true
	}
	_, refused := page.Refusal(err) // for instance an id's beginning that several items share
	return refused
}
