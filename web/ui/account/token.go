package account

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// mostTokens is how many tokens the list shows; a search finds the others.
const mostTokens = 200

// tokensPage is the content of the list of tokens.
type tokensPage struct {
	Text string // part of the name or role that people look for
	All  bool   // revoked and expired ones too
	Rows []tokenRow
	More int // found, but not shown
	Own  string
}

// tokenRow is a token with its browsers.
type tokenRow struct {
	registry.Token

	Good     bool
	Sessions int
	Seen     time.Time // last, by a session; zero: by none that is left
}

// Used is when the token was last used, to within an hour, or by a minute if it was by a session; nil:
// never, as far as is known.
func (t tokenRow) Used() *time.Time {
	if t.UsedAt == nil || t.Seen.After(*t.UsedAt) {
		if t.Seen.IsZero() {
			return nil
		}
		return &t.Seen
	}
	return t.UsedAt
}

func (p pages) tokens(r *http.Request) (page.Page, error) {
	content := tokensPage{Text: strings.TrimSpace(r.URL.Query().Get("text")), All: r.URL.Query().Get("all") != "", Own: p.Caller(r.Context()).TokenID}
	rows, err := p.allTokens(r)
	if err != nil {
		return page.Page{}, err
	}
	slices.Reverse(rows) // newest first
	part := strings.ToLower(content.Text)
	for _, row := range rows {
		text := strings.ToLower(row.Name + " " + string(row.Role) + " " + strings.Join(row.Collections, " "))
		switch {
		case !row.Good && !content.All || !strings.Contains(text, part):
		case len(content.Rows) == mostTokens:
			content.More++
		default:
			content.Rows = append(content.Rows, row)
		}
	}
	return page.Page{Name: "tokens", Title: p.Texts(r).T("Tokens"), Section: "tokens", Content: content}, nil
}

// allTokens lists all tokens with their browsers, oldest first.
func (p pages) allTokens(r *http.Request) (rows []tokenRow, err error) {
	all, err := p.API.Tokens(r.Context())
	if err != nil {
		return nil, err
	}
	sessions, err := p.API.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, t := range all {
		rows, at[t.ID] = append(rows, tokenRow{Token: t, Good: t.Good(time.Now())}), i
	}
	for _, s := range sessions {
		if i, ok := at[s.TokenID]; ok {
			rows[i].Sessions++
			if s.SeenAt.After(rows[i].Seen) {
				rows[i].Seen = s.SeenAt
			}
		}
	}
	return rows, nil
}

// newTokenPage is the form of a new token.
type newTokenPage struct {
	Form        wire.TokenRequest
	Expires     string // a day, which is included
	Others      string // stages of functions and processes, as typed
	Roles       []registry.Role
	Stages      []registry.Stage
	Collections []registry.Collection
}

// Has reports whether the form names a collection.
func (f newTokenPage) Has(collection string) bool {
	return slices.Contains(f.Form.Collections, collection)
}

// Serves reports whether the form names a stage.
func (f newTokenPage) Serves(s registry.Stage) bool { return slices.Contains(f.Form.Stages, s) }

func (p pages) newToken(r *http.Request) (page.Page, error) {
	if !p.May(r.Context(), "create-token") {
		return page.Page{}, page.Forbidden()
	}
	return p.tokenForm(r, newTokenPage{Form: wire.TokenRequest{Role: string(registry.RoleDepositor)}})
}

func (p pages) tokenForm(r *http.Request, content newTokenPage) (page.Page, error) {
	content.Roles, content.Stages = registry.Roles(), registry.Stages()
	var err error
	if content.Collections, err = p.API.Collections(r.Context()); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "newtoken", Title: p.Texts(r).T("New token"), Section: "tokens", Content: content}, nil
}

// createToken creates a token and shows its secret, once: the page is the answer itself, so that no
// address leads to it.
func (p pages) createToken(r *http.Request) (string, *page.Page, error) {
	content := newTokenPage{Expires: r.PostForm.Get("expires"), Others: strings.TrimSpace(r.PostForm.Get("others"))}
	content.Form = wire.TokenRequest{Name: strings.TrimSpace(r.PostForm.Get("name")), Role: r.PostForm.Get("role")}
	switch registry.Role(content.Form.Role) {
	case registry.RoleDepositor:
		content.Form.Collections = r.PostForm["collection"]
	case registry.RoleWorker:
		for _, stage := range append(r.PostForm["stage"], strings.Fields(content.Others)...) {
			content.Form.Stages = append(content.Form.Stages, registry.Stage(stage))
		}
	case registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin:
	}
	if content.Expires != "" {
		day, err := time.ParseInLocation("2006-01-02", content.Expires, page.ZoneOf(r))
		if err != nil {
			return "", nil, page.Wrong("expires", p.Texts(r).T("%q is not a day, such as 2027-01-31", content.Expires[:min(len(content.Expires), 50)]))
		}
		end := day.AddDate(0, 0, 1)
		content.Form.ExpiresAt = &end
	}
	made, err := p.API.CreateToken(r.Context(), content.Form)
	if err != nil {
		return "", nil, err
	}
	return "", &page.Page{
		Name: "tokenmade", Title: p.Texts(r).T("New token"), Section: "tokens", Content: made, Status: http.StatusCreated, Scripts: []string{"copy.js"},
	}, nil
}

// revokePage is the form that revokes a token.
type revokePage struct {
	tokenRow

	Own bool
}

func (p pages) askRevoke(r *http.Request) (page.Page, error) {
	all, err := p.allTokens(r)
	if err != nil {
		return page.Page{}, err
	}
	i := slices.IndexFunc(all, func(t tokenRow) bool { return t.ID == r.PathValue("id") })
	if i < 0 {
		return page.Page{}, page.NotFound("the token")
	}
	content := revokePage{tokenRow: all[i], Own: all[i].ID == p.Caller(r.Context()).TokenID}
	return page.Page{Name: "revoke", Title: p.Texts(r).T("Revoke the token") + ": " + all[i].Name, Section: "tokens", Content: content}, nil
}

// revoke revokes a token and leads to the list. The last admin's token is refused.
func (p pages) revoke(r *http.Request) (string, *page.Page, error) {
	id := r.PathValue("id")
	err := p.API.RevokeToken(r.Context(), id)
	return "/tokens?" + url.Values{"all": {"1"}}.Encode() + "#token-" + url.PathEscape(id), nil, err
}
