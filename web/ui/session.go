package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
)

// Account is whoever has signed in. Every method judges by the request's context who that is.
type Account interface {
	// Current is the session that the page is asked for in; without an ID when there is none.
	Current(ctx context.Context) registry.Session
	// Sessions lists the sessions that who asks may see and end, the last used first.
	Sessions(ctx context.Context) ([]registry.Session, error)
	// EndSession ends one of them; registry.ErrNotFound for all others.
	EndSession(ctx context.Context, id string) error
}

// sessionsPage is what the list of sessions shows.
type sessionsPage struct {
	Rows    []registry.Session
	Current registry.Session
	All     bool // everybody's
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

// endSession ends a session and goes back to the list. One that has ended already is not there, as
// wanted.
func (p *pages) endSession(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, fmt.Errorf("%w: the form cannot be read", errBadQuery))
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

// method says how somebody signed in.
func method(m registry.SignInMethod) string {
	switch m {
	case registry.SignInToken:
		return "with a token"
	case registry.SignInLink:
		return "by a link"
	case registry.SignInOIDC:
		return "at the provider"
	}
	return string(m)
}
