package signin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Parse(pageText))

// policy allows the page's own style, which stands in it: the pages' is theirs who have signed in.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// view is what the page shows: the form, or one of the others.
type view struct {
	Why  string           // why it is shown; "": it was asked for
	Bad  bool             // somebody has tried to sign in, and it did not work
	Next string           // where to go afterwards
	Link string           // asks to use this link
	As   registry.Token   // as whom it signs in
	Ends registry.Session // the session that it would end; without an ID: none
	Out  bool             // somebody has signed out

	Provider    bool   // there is an OpenID provider to sign in at
	ProviderEnd string // where to sign out there, too

	Style template.CSS
}

// Ask shows the form, or the button of a one-time link, with the name of whom it signs in: others
// may have sent it, so that somebody works in their name. A link is not used by being looked at:
// mail scanners and browsers fetch links before anybody clicks on them. An error means that nothing
// was answered: the link is good no more.
func (s *Service) Ask(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	v := view{Link: query.Get("link"), Next: local(query.Get("next"))}
	if v.Link != "" {
		var err error
		if v.As, err = s.store.LinkToken(r.Context(), Hash(v.Link)); errors.Is(err, registry.ErrNotFound) {
			return errUsedLink()
		} else if err != nil {
			return err
		}
		v.Ends, _ = s.Session(r, false) // none when it cannot be found; the next look tells why
	}
	s.show(w, r, http.StatusOK, v)
	return nil
}

// Refuse shows the form with the reason why a page is not shown, or why somebody was not signed in.
// It reads nothing of the request's body: who is refused may send anything there.
func (s *Service) Refuse(w http.ResponseWriter, r *http.Request, err error, p *wire.Problem) {
	if many := new(TooManyError); errors.As(err, &many) {
		w.Header().Set("Retry-After", strconv.Itoa(int(many.After.Seconds())))
	}
	v := view{Why: strings.ToUpper(p.Detail[:1]) + p.Detail[1:] + ".", Next: local(r.URL.RequestURI())}
	if r.URL.Path == "/login" || r.URL.Path == "/login/oidc/callback" {
		v.Bad, v.Next = true, "/"
	}
	if r.Method != http.MethodGet {
		v.Bad, v.Next = true, local(r.PostForm.Get("next")) // as SignIn has read it; no other form goes on
	}
	s.show(w, r, p.Status, v)
}

func (s *Service) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Provider = s.provider != nil
	v.Style = template.CSS(style) //nolint:gosec // it is ours
	var text bytes.Buffer
	if err := page.Execute(&text, v); err != nil {
		s.log.ErrorContext(r.Context(), "sign-in page failed", "err", err)
		http.Error(w, "The page could not be made; the log says why.", http.StatusInternalServerError)
		return
	}
	dropToken(w, r)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the reader has gone if this fails
}
