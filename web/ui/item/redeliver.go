package item

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// redeliverPage is the form that delivers a job's outcome again.
type redeliverPage struct {
	Item    registry.WorkItem
	Reason  string
	Key     string
	Refused *wire.Problem
}

func (p pages) askRedeliver(r *http.Request) (page.Page, error) {
	if !p.May(r.Context(), "redeliver-item") {
		return page.Page{}, page.Forbidden()
	}
	it, err := p.API.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return page.Page{}, err
	}
	// One key for each form shown: a form that is sent twice acts once.
	return p.redeliverForm(r, redeliverPage{Item: it, Key: "page " + rand.Text()}), nil
}

func (p pages) redeliverForm(r *http.Request, form redeliverPage) page.Page {
	return page.Page{Name: "redeliver", Title: p.Texts(r).T("Deliver again") + ": " + page.NameOf(form.Item), Section: "items", Content: form}
}

// redeliver enqueues the delivery, and leads to the page of its item.
func (p pages) redeliver(r *http.Request) (string, *page.Page, error) {
	reason, key := strings.TrimSpace(r.PostForm.Get("reason")), r.PostForm.Get("key")
	if err := page.CheckLengths(reason, key); err != nil {
		return "", nil, err
	}
	delivery, err := p.API.Redeliver(r.Context(), r.PathValue("id"), reason, key)
	if refusal, ok := page.Refusal(err); ok {
		it, err := p.API.Item(r.Context(), r.PathValue("id"))
		if err != nil {
			return "", nil, err
		}
		again := p.redeliverForm(r, redeliverPage{Item: it, Reason: reason, Key: "page " + rand.Text(), Refused: refusal})
		return "", &again, nil
	}
	if err != nil {
		return "", nil, err
	}
	return "/items/" + delivery.ID, nil, nil
}
