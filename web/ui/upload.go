package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Uploads are the uploads of whoever looks, everybody's for an admin. Every method judges by the
// request's context who that is.
type Uploads interface {
	// MaySee says whether who looks may list uploads at all.
	MaySee(ctx context.Context) bool
	// List returns a page of them, those on their way first.
	List(ctx context.Context, after string) (registry.Page[wire.UploadStatus], error)
	// Use returns what they come to and may come to: in all, by token, and by collection.
	Use(ctx context.Context) ([]registry.UploadUse, error)
	// Upload returns one of them; registry.ErrNotFound or a *wire.Problem for all others.
	Upload(ctx context.Context, id string) (wire.UploadStatus, error)
	// Remove removes one of them. A batch's is refused with a *wire.Problem.
	Remove(ctx context.Context, id string) error
}

// uploadsPage is what the list of uploads shows.
type uploadsPage struct {
	Rows []wire.UploadStatus
	Use  []registry.UploadUse
	All  bool // everybody's
	Next string
}

func (p *pages) listUploads(r *http.Request) (page, error) {
	if !p.uploads.MaySee(r.Context()) {
		return page{}, errForbidden
	}
	after := r.URL.Query().Get("after")
	list, err := p.uploads.List(r.Context(), after)
	if err != nil {
		return page{}, badCursor(r, err)
	}
	use, err := p.uploads.Use(r.Context())
	if err != nil {
		return page{}, err
	}
	content := uploadsPage{Rows: list.Rows, Next: nextPage(r, list.Next), All: len(use) > 0 && use[0].Scope == registry.UploadsOfTenant}
	if after == "" {
		content.Use = use
	}
	return page{Name: "uploads", Title: "Uploads", Section: "uploads", Content: content}, nil
}

// uploadPage is the form of an upload's removal.
type uploadPage struct {
	Upload  wire.UploadStatus
	Refused string // why it was not removed
}

// askRemoval shows the form, a page of its own as that of an act is.
func (p *pages) askRemoval(r *http.Request) (page, error) {
	u, err := p.uploads.Upload(r.Context(), r.PathValue("id"))
	return removalForm(uploadPage{Upload: u}), asUploadError(err)
}

func removalForm(u uploadPage) page {
	return page{Name: "upload", Title: "Upload " + u.Upload.Filename, Section: "uploads", Content: u}
}

// removeUpload removes an upload and goes back to the list. One that is removed already is not
// there, as wanted.
func (p *pages) removeUpload(w http.ResponseWriter, r *http.Request) {
	ctx, id := r.Context(), r.PathValue("id")
	u, err := p.uploads.Upload(ctx, id)
	if err == nil {
		err = p.uploads.Remove(ctx, id)
	}
	err = asUploadError(err)
	switch {
	case errors.Is(err, errRefused):
		p.write(w, r, removalForm(uploadPage{Upload: u, Refused: err.Error()}), http.StatusConflict)
	case err != nil && !errors.Is(err, registry.ErrNotFound):
		p.fail(w, r, err)
	default:
		http.Redirect(w, r, "/uploads", http.StatusSeeOther)
	}
}

// asUploadError gives the API's problems the form of this package.
func asUploadError(err error) error {
	var problem *wire.Problem
	if !errors.As(err, &problem) {
		return err
	}
	switch problem.Status {
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w", problem.Detail, registry.ErrNotFound)
	case http.StatusForbidden:
		return errForbidden
	case http.StatusConflict:
		return fmt.Errorf("%w: %s", errRefused, problem.Detail)
	}
	return err
}

// uploadURL is the page of an upload.
func uploadURL(id string) string { return (&url.URL{Path: "/uploads/" + id}).String() }

// progressOf is how much of an upload is here, in percent; -1 while nobody knows its size.
func progressOf(u wire.UploadStatus) int64 {
	if u.SizeBytes <= 0 {
		return -1
	}
	return 100 * u.Offset / u.SizeBytes
}
