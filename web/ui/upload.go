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

// Uploads are the viewer's uploads, or all uploads for an admin. The context of the request
// identifies the viewer.
type Uploads interface {
	// MaySee reports whether the viewer may list uploads at all.
	MaySee(ctx context.Context) bool
	// List returns a page of uploads, incoming ones first.
	List(ctx context.Context, after string) (registry.Page[wire.UploadStatus], error)
	// Use returns the room that uploads use and their quotas: in all, by token, and by collection.
	Use(ctx context.Context) ([]registry.UploadUse, error)
	// Upload returns one of these uploads; registry.ErrNotFound or a *wire.Problem for others.
	Upload(ctx context.Context, id string) (wire.UploadStatus, error)
	// Remove removes one of these uploads. A batch's upload is refused with a *wire.Problem.
	Remove(ctx context.Context, id string) error
}

// uploadsPage is the content of the list of uploads.
type uploadsPage struct {
	Rows []wire.UploadStatus
	Use  []registry.UploadUse
	All  bool // of all users
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

// uploadPage is the form that removes an upload.
type uploadPage struct {
	Upload  wire.UploadStatus
	Refused string // why it was not removed
}

// askRemoval shows the form that removes an upload, on a page of its own.
func (p *pages) askRemoval(r *http.Request) (page, error) {
	u, err := p.uploads.Upload(r.Context(), r.PathValue("id"))
	return removalForm(uploadPage{Upload: u}), asUploadError(err)
}

func removalForm(u uploadPage) page {
	return page{Name: "upload", Title: "Upload " + u.Upload.Filename, Section: "uploads", Content: u}
}

// removeUpload removes an upload and redirects to the list. An upload that is already removed is no
// error.
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

// asUploadError turns the API's problems into errors of this package.
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

// uploadURL is the address of an upload's page.
func uploadURL(id string) string { return (&url.URL{Path: "/uploads/" + id}).String() }

// progressOf is the received part of an upload in percent; -1 if its size is unknown.
func progressOf(u wire.UploadStatus) int64 {
	if u.SizeBytes <= 0 {
		return -1
	}
	return 100 * u.Offset / u.SizeBytes
}
