package admin

import (
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// evidencePage is the content of the form for an evidence report.
type evidencePage struct {
	From, To    string // the last whole year
	Today       string
	Collections []registry.Collection
}

// evidence shows the form for an evidence report.
func (p pages) evidence(r *http.Request) (page.Page, error) {
	if err := p.need(r, "evidence-report"); err != nil {
		return page.Page{}, err
	}
	all, err := p.API.Collections(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	now := time.Now().UTC()
	year := time.Date(now.Year()-1, 1, 1, 0, 0, 0, 0, time.UTC)
	content := evidencePage{From: year.Format(day), To: year.AddDate(1, 0, -1).Format(day), Today: now.Format(day), Collections: all}
	return page.Page{Name: "evidence", Title: p.Texts(r).T("Evidence for a period"), Section: "evidence", Content: content}, nil
}

// evidenceZip sends the browser to the report, which the API streams. It judges the form before, as the API
// does, so that a person reads on a page what is wrong.
func (p pages) evidenceZip(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	err := p.need(r, "evidence-report")
	if _, _, faults := wire.EvidencePeriod(values, time.Now().UTC()); err == nil && len(faults) > 0 {
		err = wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "no evidence report was made; correct the fields that the errors name", faults...)
	}
	if name := values.Get("collection"); err == nil && name != "" {
		_, err = p.API.Collection(r.Context(), name)
	}
	if err != nil {
		p.Fail(w, r, err)
		return
	}
	query := url.Values{"from": {values.Get("from")}, "to": {values.Get("to")}}
	if name := values.Get("collection"); name != "" {
		query.Set("collection", name)
	}
	http.Redirect(w, r, wire.Base+"/evidence-report?"+query.Encode(), http.StatusSeeOther)
}
