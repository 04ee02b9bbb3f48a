// Package account serves the pages about who has access: tokens, sessions, and the viewer's own account.
package account

import (
	"embed"
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, nil, "account", "link", "newtoken", "revoke", "sessions", "tokenmade", "tokens")
	s.Get("/sessions", p.sessions)
	s.Post("/sessions/end", p.endSession)
	s.Get("/account", p.account)
	s.Post("/account/link", p.makeLink)
	s.Get("/tokens", p.tokens)
	s.Get("/tokens/{id}/revoke", p.askRevoke)
	s.Post("/tokens/{id}/revoke", p.revoke)
	s.Get("/new/token", p.newToken)
	s.Post("/new/token", p.createToken)
}

// sessionsPage is the content of the list of sessions.
type sessionsPage struct {
	Rows    []registry.Session
	Current registry.Session
	All     bool // of all users
}

func (p pages) sessions(r *http.Request) (page.Page, error) {
	rows, err := p.API.Sessions(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	current := p.Caller(r.Context())
	content := sessionsPage{Rows: rows, Current: current, All: current.ID == "" || current.Role == registry.RoleAdmin}
	return page.Page{Name: "sessions", Title: p.Texts(r).T("Sessions"), Section: "sessions", Content: content}, nil
}

// endSession ends a session and leads to the list. A session that has already ended is no error.
func (p pages) endSession(r *http.Request) (string, *page.Page, error) {
	if err := p.API.EndSession(r.Context(), r.PostForm.Get("id")); err != nil && !errors.Is(err, registry.ErrNotFound) {
		return "", nil, err
	}
	return "/sessions", nil, nil
}
