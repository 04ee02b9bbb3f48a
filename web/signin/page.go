package signin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

//go:embed page.js
var script string

// words returns the texts of the pages in all languages. Only servers need them: commands would start
// half as fast with them.
func words() *lang.Catalogue {
	all, err := lang.Open()
	if err != nil {
		panic(err) // the catalogues are embedded in the program
	}
	return all
}

// pages returns the page in each language.
var pages = sync.OnceValue(func() map[string]*template.Template {
	all, pages := words(), map[string]*template.Template{}
	for _, one := range all.Languages() {
		t := all.In(one.Tag)
		pages[one.Tag] = template.Must(template.New("page").Funcs(template.FuncMap{
			"t": t.T, "term": func(word any) string { return t.T(fmt.Sprint(word)) },
		}).Parse(pageText))
	}
	return pages
})

// policy allows only the page's own inline style and script. The files of the pages are for signed-in
// users only.
var policy = "default-src 'none'; img-src data:; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
	"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// hashOf allows a text in a policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// view is the content of the page: the sign-in form or one of its variants.
type view struct {
	Why     string           // why the form is shown; "": the user asked for it
	English string           // the same, or more of it, which is in English only
	Bad     bool             // an attempt to sign in failed
	Undone  bool             // a form of another page was sent, and did nothing
	Next    string           // the page to open afterwards
	Link    string           // the one-time link to use
	As      registry.Token   // the token that the link signs in
	Ends    registry.Session // the session that signing in would end; without an ID: none
	Out     bool             // the user has signed out

	Provider    bool   // there is an OpenID provider
	ProviderEnd string // the address that signs out there too

	Style  template.CSS
	Script template.JS
	Theme  string // "light" or "dark"; "": as the system
	Lang   string
}

// themeCookie is the cookie of the pages with the colours that a person chose (web/ui/page).
const themeCookie = "theme"

// themeOf returns the colours that a person chose on the pages.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// Ask shows the sign-in form or, for a one-time link, a button with the name that the link signs
// in: somebody else may have sent the link. Showing the page does not use up the link, because mail
// scanners and browsers fetch links before anybody clicks. An error means that nothing was answered
// and that the link is no longer valid.
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
		v.Ends, _ = s.Session(r, false) // none if it cannot be read; the next request shows why
	}
	s.show(w, r, http.StatusOK, v)
	return nil
}

// Refuse shows the form with the reason why a page was refused or signing in failed. It does not
// read the request's body, which may contain anything.
func (s *Service) Refuse(w http.ResponseWriter, r *http.Request, err error, p *wire.Problem) {
	if many := new(TooManyError); errors.As(err, &many) {
		w.Header().Set("Retry-After", strconv.Itoa(int(many.After.Seconds())))
	}
	v := view{Next: local(r.URL.RequestURI())}
	texts := words().Of(r)
	if own := new(refusal); errors.As(err, &own) {
		v.Why = lang.Sentence(texts.T(own.text, own.args...))
	} else {
		said := texts.Refusal(p)
		v.Why, v.English = lang.Sentence(said.Text), lang.Sentence(said.English)
	}
	if r.URL.Path == "/login" || r.URL.Path == "/login/oidc/callback" {
		v.Bad, v.Next = true, "/"
	}
	if r.Method != http.MethodGet {
		v.Bad, v.Next = true, local(r.PostForm.Get("next")) // set by SignIn; no other form has it
		if r.URL.Path != "/login" && r.URL.Path != "/logout" {
			v.Undone = true
			if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
				v.Next = local(from.RequestURI()) // the page of the form
			}
		}
	}
	s.show(w, r, p.Status, v)
}

func (s *Service) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Provider, v.Theme = s.provider != nil, themeOf(r)
	v.Style, v.Script = template.CSS(style), template.JS(script) //nolint:gosec // both are embedded in the program
	var text bytes.Buffer
	v.Lang = words().Of(r).Tag
	if err := pages()[v.Lang].Execute(&text, v); err != nil {
		s.log.ErrorContext(r.Context(), "rendering the sign-in page failed", "err", err)
		http.Error(w, "The page could not be rendered. The log of the server has the error.", http.StatusInternalServerError)
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
	_, _ = w.Write(text.Bytes()) // a failure means that the client has disconnected
}
