package ui

import (
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
)

// holdsPage is the content of the list of holds.
type holdsPage struct {
	Holds  []registry.Hold
	MayAct bool
}

func (p *pages) holds(r *http.Request) (page, error) {
	holds, err := p.registry.Holds(r.Context())
	if err != nil {
		return page{}, err
	}
	content := holdsPage{Holds: holds, MayAct: p.forms != nil && p.forms.MayAct(r.Context())}
	return page{Name: "holds", Title: "Holds", Section: "holds", Content: content}, nil
}

// release releases a hold and redirects to the list. A hold that is already released is no error.
func (p *pages) release(w http.ResponseWriter, r *http.Request) {
	if p.forms == nil || !p.forms.MayAct(r.Context()) {
		p.fail(w, r, errForbidden)
		return
	}
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, fmt.Errorf("%w: the form could not be read", errBadQuery))
		return
	}
	scope, key := registry.HoldScope(r.PostForm.Get("scope")), r.PostForm.Get("key")
	if err := p.forms.RemoveHold(r.Context(), scope, key); err != nil {
		p.fail(w, r, err)
		return
	}
	p.log.InfoContext(r.Context(), "hold released", "scope", string(scope), "key", key)
	http.Redirect(w, r, "/holds", http.StatusSeeOther)
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
