package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
)

// Account knows who has signed in. The context of the request identifies the caller.
type Account interface {
	// Current returns the caller's session; its ID is "" if the caller has none.
	Current(ctx context.Context) registry.Session
	// Sessions lists the sessions that the caller may see and end, last used first.
	Sessions(ctx context.Context) ([]registry.Session, error)
	// EndSession ends a session of the caller; registry.ErrNotFound for all others.
	EndSession(ctx context.Context, id string) error
}

// sessionsPage is the content of the list of sessions.
type sessionsPage struct {
	Rows    []registry.Session
	Current registry.Session
	All     bool // of all users
}

func (p *pages) sessions(r *http.Request) (page, error) {
	rows, err := p.account.Sessions(r.Context())
	if err != nil {
		return page{}, err
	}
	current := p.account.Current(r.Context())
	content := sessionsPage{Rows: rows, Current: current, All: current.ID == "" || current.Role == registry.RoleAdmin}
	return page{Name: "sessions", Title: "Sessions", Section: "sessions", Content: content}, nil
}

// endSession ends a session and redirects to the list. A session that has already ended is no
// error.
func (p *pages) endSession(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, fmt.Errorf("%w: the form could not be read", errBadQuery))
		return
	}
	id := r.PostForm.Get("id")
	err := p.account.EndSession(r.Context(), id)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		p.fail(w, r, err)
		return
	}
	if err == nil {
		p.log.InfoContext(r.Context(), "session ended", "session", id, "actor", p.account.Current(r.Context()).Name)
	}
	http.Redirect(w, r, "/sessions", http.StatusSeeOther)
}

// method says how a user signed in.
func method(m registry.SignInMethod) string {
	switch m {
	case registry.SignInToken:
		return "with a token"
	case registry.SignInLink:
		return "by a link"
	case registry.SignInOIDC:
		return "with the identity provider"
	}
	return string(m)
}
