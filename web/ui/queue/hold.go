package queue

import (
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// holdsPage is the content of the list of holds.
type holdsPage struct {
	Holds  []registry.Hold
	MayAct bool
}

func (p pages) holds(r *http.Request) (page.Page, error) {
	holds, err := p.API.Holds(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	content := holdsPage{Holds: holds, MayAct: p.May(r.Context(), "remove-hold")}
	return page.Page{Name: "holds", Title: p.Texts(r).T("Holds"), Section: "holds", Content: content}, nil
}

// release releases a hold and leads to the list.
func (p pages) release(r *http.Request) (string, *page.Page, error) {
	scope, key := registry.HoldScope(r.PostForm.Get("scope")), r.PostForm.Get("key")
	return "/holds", nil, p.API.RemoveHold(r.Context(), scope, key)
}

// holdURL is the page of the held batch or item, "" for other scopes.
func holdURL(h registry.Hold) string {
	switch h.Scope {
	case registry.HoldBatch:
		return "/batches/" + h.Key
	case registry.HoldItem:
		return "/items/" + h.Key
	case registry.HoldAll, registry.HoldIngest, registry.HoldStage, registry.HoldCollection, registry.HoldVolume, registry.HoldWorker:
	}
	return ""
}
