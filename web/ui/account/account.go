package account

import (
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
)

// accountPage is the content of the page about the viewer.
type accountPage struct {
	Token    registry.Token
	Session  registry.Session
	May      []string // what the viewer may do
	Sessions int      // of the viewer
	Link     bool     // whether the viewer may make links to sign in
}

func (p pages) account(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	content := accountPage{Session: p.Caller(ctx), Link: p.May(ctx, "create-sign-in-link")}
	var err error
	if content.Token, err = p.API.OwnToken(ctx); err != nil {
		return page.Page{}, err
	}
	sessions, err := p.API.Sessions(ctx)
	if err != nil {
		return page.Page{}, err
	}
	for _, s := range sessions {
		if s.Name == content.Token.Name {
			content.Sessions++
		}
	}
	for _, can := range abilities(p.Texts(r)) {
		if p.May(ctx, can.operation) {
			content.May = append(content.May, can.text)
		}
	}
	return page.Page{Name: "account", Title: p.Texts(r).T("Account"), Section: "account", Content: content}, nil
}

// ability is something that those may do who may call an operation of the API.
type ability struct{ operation, text string }

// abilities are what roles differ in, as people say it.
func abilities(t lang.Texts) []ability {
	return []ability{
		{"submit-payload", t.T("deposit, and follow what becomes of it")},
		{"read-object", t.T("see and download preserved objects")},
		{"restore-object", t.T("ask for copies of stored objects")},
		{"list-workers", t.T("see the whole queue and its workers")},
		{"command-item", t.T("retry, hold, cancel and requeue jobs and batches")},
		{"drain", t.T("hold stages, pause and drain the queue")},
		{"verify-object", t.T("have stored files checked")},
		{"ask-deletion", t.T("request deletions, and approve those of others")},
		{"add-schedule", t.T("change schedules and processes")},
		{"list-audit", t.T("read the audit list")},
		{"put-collection", t.T("create collections and change their profiles")},
		{"put-credential", t.T("set credentials")},
		{"put-subscription", t.T("change subscriptions")},
		{"create-token", t.T("create and revoke tokens")},
		{"abandon", t.T("abandon objects, with a second admin")},
	}
}

// linkPage shows a link that signs in, once.
type linkPage struct {
	URL     string
	Expires time.Time
}

// makeLink makes a link that signs in another browser as the viewer, and shows it once: the page is the
// answer itself.
func (p pages) makeLink(r *http.Request) (string, *page.Page, error) {
	link, err := p.API.MakeSignInLink(r.Context())
	if err != nil {
		return "", nil, err
	}
	origin := r.Header.Get("Origin") // as the browser sees this server, behind whatever proxies
	if origin == "" || origin == "null" {
		origin = "http://" + r.Host
		if r.TLS != nil {
			origin = "https://" + r.Host
		}
	}
	return "", &page.Page{
		Name: "link", Title: p.Texts(r).T("Sign-in link"), Section: "account", Content: linkPage{origin + link.Path, link.ExpiresAt}, Status: http.StatusCreated, Scripts: []string{"copy.js"},
	}, nil
}
