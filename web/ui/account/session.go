// Package account serves the pages about who has access: tokens, sessions, and the viewer's own account.
package account

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"strings"

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
	s.Add(files, template.FuncMap{"browser": browser}, "account", "link", "newtoken", "revoke", "sessions", "tokenmade", "tokens")
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

// browser names the browser and the system of a User-Agent, such as "Firefox 142, Linux". It is "" if
// the browser is not known.
func browser(agent string) string {
	var name string
	// Later ones pretend to be earlier ones, so the most particular comes first.
	for _, one := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Version/", "Safari"}} {
		if _, rest, ok := strings.Cut(agent, one[0]); ok {
			version, _, _ := strings.Cut(rest, ".")
			name = one[1] + " " + version
			break
		}
	}
	if name == "" {
		return ""
	}
	for _, one := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, one[0]) {
			return name + ", " + one[1]
		}
	}
	return name
}
