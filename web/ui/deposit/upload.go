// Package deposit serves the pages of depositors: the form that deposits, their deposits and how each
// stands, and their uploads.
//
// The form works without scripts. Its script (static/deposit.js) sends files and folders in parts by
// tus, and goes on where it was interrupted: the uploads that the API lists are all that it needs to
// know. A folder is sent as the same tar that the command makes (static/tar.js).
package deposit

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct {
	*page.Site
	paces *paces
}

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s, &paces{}}
	s.Add(files, template.FuncMap{"uploadURL": uploadURL, "progressOf": progressOf, "receiptURL": page.ReceiptURL, "itemOf": itemOf, "correctURL": correctURL, "correctedBy": correctedBy, "perSecond": func(rate float64) int64 { return int64(rate) }}, "deposit", "deposits", "mydeposit", "rows", "cancel", "uploads", "upload")
	s.Get(wire.DepositForm, p.ask)
	s.Receive(wire.DepositForm, p.submit)
	s.Get("/deposits", p.list)
	s.Get("/deposits/{id}", p.one)
	s.Get("/deposits/{id}/cancel", p.askCancel)
	s.Post("/deposits/{id}/cancel", p.cancel)
	s.Get("/deposits/{id}/rows", p.askRows)
	s.Post("/deposits/{id}/rows", p.submitRows)
	s.Get("/uploads", p.listUploads)
	s.Get("/uploads/{id}", p.askRemoval)
	s.Post("/uploads/{id}", p.removeUpload)
}

// uploadsPage is the content of the list of uploads.
type uploadsPage struct {
	Rows []wire.UploadStatus
	Use  []registry.UploadUse
	All  bool // of all users
	Next string
}

func (p pages) listUploads(r *http.Request) (page.Page, error) {
	after := r.URL.Query().Get("after")
	list, err := p.API.UploadPage(r.Context(), after)
	if err != nil {
		return page.Page{}, err
	}
	use, err := p.UploadUse(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	content := uploadsPage{Rows: list.Rows, Next: page.Next(r, list.Next), All: len(use) > 0 && use[0].Scope == registry.UploadsOfTenant}
	if after == "" {
		content.Use = use
	}
	return page.Page{Name: "uploads", Title: p.Texts(r).T("Uploads"), Section: "uploads", Content: content}, nil
}

// uploadPage is the form that removes an upload.
type uploadPage struct {
	Upload  wire.UploadStatus
	Refused *wire.Problem // why it was not removed
}

// askRemoval shows the form that removes an upload, on a page of its own.
func (p pages) askRemoval(r *http.Request) (page.Page, error) {
	u, err := p.API.Upload(r.Context(), r.PathValue("id"))
	return p.removalForm(r, uploadPage{Upload: u}), err
}

func (p pages) removalForm(r *http.Request, u uploadPage) page.Page {
	return page.Page{Name: "upload", Title: p.Texts(r).T("Remove %s", u.Upload.Filename), Section: "uploads", Content: u}
}

// removeUpload removes an upload and leads to the list. An upload that is already removed is no error.
func (p pages) removeUpload(r *http.Request) (string, *page.Page, error) {
	ctx, id := r.Context(), r.PathValue("id")
	u, err := p.API.Upload(ctx, id)
	if err == nil {
		err = p.API.RemoveUpload(ctx, id)
	}
	if refusal, ok := page.Refusal(err); ok && refusal.Status == http.StatusConflict {
		again := p.removalForm(r, uploadPage{Upload: u, Refused: refusal})
		return "", &again, nil
	}
	if errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return "/uploads", nil, err
}

// uploadURL is the address of an upload's page.
func uploadURL(id string) string { return (&url.URL{Path: "/uploads/" + id}).String() }

// progressOf is the received part of an upload in percent; -1 if its size is unknown.
func progressOf(u wire.UploadStatus) int64 {
	if u.SizeBytes <= 0 {
		return -1
	}
	return 100 * u.Offset / u.SizeBytes
}
