package accounttest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// signingTests test registry.Signing.
func signingTests() tests {
	return tests{
		"what_is_kept":                                   signingIn(sessionKept),
		"unused_for_too_long":                            signingIn(sessionIdle),
		"absolute_end":                                   signingIn(sessionExpires),
		"use_is_written_once_a_minute":                   signingIn(sessionSeen),
		"its_use_is_one_of_its_token":                    signingIn(sessionUsesToken),
		"ends_with_its_token":                            signingIn(sessionOfToken),
		"ended_once":                                     signingIn(sessionEnded),
		"of_many_the_longest_unused_goes":                signingIn(sessionsMost),
		"link_is_good_once":                              signingIn(linkOnce),
		"two_who_use_a_link_at_once":                     signingIn(linkRace),
		"link_ends":                                      signingIn(linkEnds),
		"of_many_links_the_oldest_goes":                  signingIn(linksMost),
		"link_is_looked_at":                              signingIn(linkLooked),
		"link_is_used_up_with_its_session_or_not_at_all": signingIn(linkWhole),
		"nothing_secret_in_events":                       signingIn(sessionEvents),
	}
}

// signing is a fixture with helpers for sessions.
type signing struct {
	*fixture
	registry.Signing
}

// signingIn adapts a test of sessions.
func signingIn(run func(*signing)) func(*fixture) {
	return func(f *fixture) {
		s, ok := f.Store.(registry.Signing)
		if !ok {
			f.Fatalf("%T is no registry.Signing", f.Store)
		}
		run(&signing{fixture: f, Signing: s})
	}
}

var lifetime = registry.Lifetime{Idle: time.Hour, Most: 8 * time.Hour}

func sessionOf(id string) registry.Session {
	return registry.Session{ID: id, Hash: "hash of " + id, Method: registry.SignInToken, Agent: "Browser/1", Address: "192.0.2.1"}
}

// sessionUsesToken: the use of a browser counts as the use of the token that signed it in, but what a
// page loads by itself does not.
func sessionUsesToken(f *signing) {
	f.Token("t", registry.RoleAdmin)
	f.signIn("s", "t")
	used := func() *time.Time {
		f.Must(f.Store.NoteTokenUses(f.Context()))
		all, err := f.Store.Tokens(f.Context())
		f.Must(err)
		return all[0].UsedAt
	}
	f.Clock.Pass(2 * time.Minute)
	f.good("s")
	if at := used(); at != nil {
		f.Errorf("what a page loads by itself is a use at %s", at)
	}
	now := f.Clock.Now()
	_, err := f.SessionByHash(f.Context(), "hash of s", true)
	f.Must(err)
	if at := used(); at == nil || !at.Equal(now) {
		f.Errorf("used at %v, want %s", at, now)
	}
}

// signIn begins a session with a token.
func (f *signing) signIn(id, token string) registry.Session {
	f.Helper()
	s := sessionOf(id)
	s.TokenID = token
	out, err := f.AddSession(f.Context(), s, lifetime)
	f.Must(err)
	return out
}

// good says whether a session is valid, without using it.
func (f *signing) good(id string) bool {
	f.Helper()
	_, err := f.SessionByHash(f.Context(), "hash of "+id, false)
	if err != nil {
		f.Is(err, registry.ErrNotFound)
	}
	all, failed := f.Sessions(f.Context())
	f.Must(failed)
	listed := false
	for _, s := range all {
		listed = listed || s.ID == id
		if s.Hash != "" {
			f.Errorf("a list tells the hash of session %s", s.ID)
		}
	}
	if listed != (err == nil) {
		f.Errorf("session %s: listed %t, good %t", id, listed, err == nil)
	}
	return err == nil
}

func (f *signing) use(id string) registry.Session {
	f.Helper()
	s, err := f.SessionByHash(f.Context(), "hash of "+id, true)
	f.Must(err)
	return s
}

func sessionKept(f *signing) {
	f.Token("dep", registry.RoleDepositor, func(t *registry.Token) { t.Collections = []string{"x", "y"} })
	at := f.Clock.Now()
	want := registry.Session{
		ID: "s", Hash: "hash of s", TokenID: "dep", Name: "name of dep", Role: registry.RoleDepositor, Collections: []string{"x", "y"},
		Method: registry.SignInToken, Agent: "Browser/1", Address: "192.0.2.1", CreatedAt: at, SeenAt: at, ExpiresAt: at.Add(8 * time.Hour), Idle: time.Hour,
	}
	if diff := cmp.Diff(want, f.signIn("s", "dep")); diff != "" {
		f.Errorf("session (-want +got):\n%s", diff)
	}
	got, err := f.SessionByHash(f.Context(), "hash of s", false)
	f.Must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("session by its hash (-want +got):\n%s", diff)
	}
	// Whom a provider knows is who it says.
	other := sessionOf("o")
	other.Subject, other.Name, other.Role, other.Method = "https://idp ann", "oidc:ann", registry.RoleViewer, registry.SignInOIDC
	made, err := f.AddSession(f.Context(), other, lifetime)
	f.Must(err)
	if made.Name != "oidc:ann" || made.Role != registry.RoleViewer || made.Subject != other.Subject || made.Token().Name != "oidc:ann" {
		f.Errorf("session of a provider: %+v", made)
	}
	if made.Same(got) || !made.Same(made) {
		f.Error("two people are taken for one")
	}
	if _, err := f.AddSession(f.Context(), other, lifetime); !errors.Is(err, registry.ErrTaken) {
		f.Errorf("the same secret twice: %v", err)
	}
}

func sessionIdle(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.signIn("s", "t")
	f.Clock.Pass(59 * time.Minute)
	f.use("s")
	f.Clock.Pass(59 * time.Minute)
	if !f.good("s") {
		f.Error("ended although it was used")
	}
	f.Clock.Pass(time.Minute)
	if f.good("s") {
		f.Error("good although it went unused for an hour: what only looks must not count as use")
	}
	if _, err := f.SessionByHash(f.Context(), "hash of s", true); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("came back by being used: %v", err)
	}
}

func sessionExpires(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.signIn("s", "t")
	for range 8*2 - 1 {
		f.Clock.Pass(30 * time.Minute)
		f.use("s")
	}
	f.Clock.Pass(30*time.Minute - time.Second)
	if !f.good("s") {
		f.Error("expired too early")
	}
	f.Clock.Pass(time.Second)
	if f.good("s") {
		f.Error("good after its end")
	}
}

func sessionSeen(f *signing) {
	f.Token("t", registry.RoleViewer)
	begun := f.signIn("s", "t").SeenAt
	seen := func() time.Duration {
		s, err := f.SessionByHash(f.Context(), "hash of s", false)
		f.Must(err)
		return s.SeenAt.Sub(begun)
	}
	f.Clock.Pass(59 * time.Second)
	f.use("s")
	if seen() != 0 {
		f.Errorf("written after %v", seen())
	}
	f.Clock.Pass(time.Second)
	f.use("s")
	if seen() != time.Minute {
		f.Errorf("seen after %v, want a minute", seen())
	}
}

func sessionOfToken(f *signing) {
	until := f.Clock.Now().Add(time.Hour)
	f.Token("root", registry.RoleAdmin)
	f.Token("short", registry.RoleViewer, func(t *registry.Token) { t.ExpiresAt = &until })
	f.Token("other", registry.RoleViewer)
	if s := f.signIn("a", "short"); !s.ExpiresAt.Equal(until) {
		f.Errorf("ends at %v, after its token", s.ExpiresAt)
	}
	f.signIn("b", "other")
	f.signIn("c", "root")
	f.Must(f.Store.RevokeToken(f.Context(), "other", "root"))
	if f.good("b") || !f.good("a") || !f.good("c") {
		f.Error("a revoked token's session, and only that, must end at once")
	}
	late := sessionOf("d")
	late.TokenID = "other"
	if _, err := f.AddSession(f.Context(), late, lifetime); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("signed in with a revoked token: %v", err)
	}
	f.use("a")
	f.Clock.Pass(time.Hour)
	if f.good("a") {
		f.Error("good after its token expired")
	}
}

func sessionEnded(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.signIn("a", "t")
	f.signIn("b", "t")
	f.Must(f.EndSession(f.Context(), "a", registry.EventSignedOut, "name of t"))
	f.Is(f.EndSession(f.Context(), "a", registry.EventSignedOut, "name of t"), registry.ErrNotFound)
	f.Is(f.EndSession(f.Context(), "none", registry.EventSessionEnded, "admin"), registry.ErrNotFound)
	if f.good("a") || !f.good("b") {
		f.Error("the session that was ended, and only that, must end")
	}
}

func sessionsMost(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.Token("u", registry.RoleViewer)
	f.signIn("other", "u")
	for i := range registry.MostSessions {
		f.signIn("s"+string(rune('0'+i/10))+string(rune('0'+i%10)), "t")
		f.Clock.Pass(time.Second)
	}
	f.Clock.Pass(time.Minute)
	f.use("s00")
	f.signIn("one more", "t")
	if f.good("s01") || !f.good("s00") || !f.good("s02") || !f.good("other") || !f.good("one more") {
		f.Error("want the one that was unused for longest to end, and no other")
	}
	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{Types: []string{registry.EventSessionEnded}})
	f.Must(err)
	if len(page.Rows) != 1 || page.Rows[0].ItemID != "s01" || page.Rows[0].Actor != "name of t" {
		f.Errorf("audit log %+v, want that s01 ended", page.Rows)
	}
}

func linkOnce(f *signing) {
	f.Token("t", registry.RoleOperator)
	f.Must(f.AddLink(f.Context(), "link", "t", 10*time.Minute))
	s, err := f.AddLinkedSession(f.Context(), "link", sessionOf("a"), lifetime)
	f.Must(err)
	if s.Name != "name of t" || s.Role != registry.RoleOperator || s.Method != registry.SignInLink || !f.good("a") {
		f.Errorf("session %+v", s)
	}
	if _, err := f.AddLinkedSession(f.Context(), "link", sessionOf("b"), lifetime); !errors.Is(err, registry.ErrNotFound) || f.good("b") {
		f.Errorf("used twice: %v", err)
	}
}

func linkRace(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.Must(f.AddLink(f.Context(), "link", "t", 10*time.Minute))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = f.AddLinkedSession(f.Context(), "link", sessionOf("s"+string(rune('0'+i))), lifetime)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			f.Is(err, registry.ErrNotFound)
		}
	}
	all, err := f.Sessions(f.Context())
	f.Must(err)
	if won != 1 || len(all) != 1 {
		f.Errorf("%d of %d won, and there are %d sessions; want one", won, len(errs), len(all))
	}
}

func linkEnds(f *signing) {
	f.Token("root", registry.RoleAdmin)
	f.Token("t", registry.RoleViewer)
	f.Must(f.AddLink(f.Context(), "old", "t", 10*time.Minute))
	f.Clock.Pass(10*time.Minute - time.Second)
	f.Must(f.AddLink(f.Context(), "new", "t", 10*time.Minute))
	f.Clock.Pass(time.Second)
	if _, err := f.AddLinkedSession(f.Context(), "old", sessionOf("a"), lifetime); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("good after ten minutes: %v", err)
	}
	f.Must(f.Store.RevokeToken(f.Context(), "t", "root"))
	if _, err := f.AddLinkedSession(f.Context(), "new", sessionOf("b"), lifetime); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("good although its token was revoked: %v", err)
	}
	f.Is(f.AddLink(f.Context(), "more", "t", time.Minute), registry.ErrNotFound)
	if f.good("a") || f.good("b") {
		f.Error("a session began all the same")
	}
}

func linksMost(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.Token("u", registry.RoleViewer)
	f.Must(f.AddLink(f.Context(), "other", "u", 10*time.Minute))
	for i := range registry.MostLinks + 1 {
		f.Must(f.AddLink(f.Context(), "link"+string(rune('a'+i)), "t", 10*time.Minute))
		f.Clock.Pass(time.Second)
	}
	for link, want := range map[string]error{"linka": registry.ErrNotFound, "linkb": nil, "linkk": nil, "other": nil} {
		if _, err := f.LinkToken(f.Context(), link); !errors.Is(err, want) {
			f.Errorf("%s: %v, want %v", link, err, want)
		}
	}
	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{Types: []string{registry.EventLinkMade}})
	f.Must(err)
	if len(page.Rows) != registry.MostLinks+2 || page.Rows[0].Actor != "name of t" || strings.Contains(string(page.Rows[0].Data), "linkk") {
		f.Errorf("audit log %+v, want each link, and no hash", page.Rows)
	}
}

func linkLooked(f *signing) {
	f.Token("root", registry.RoleAdmin)
	f.Token("t", registry.RoleOperator)
	f.Must(f.AddLink(f.Context(), "link", "t", 10*time.Minute))
	f.Must(f.AddLink(f.Context(), "late", "t", 20*time.Minute))
	for range 2 {
		tok, err := f.LinkToken(f.Context(), "link")
		f.Must(err)
		if tok.ID != "t" || tok.Name != "name of t" || tok.Role != registry.RoleOperator {
			f.Errorf("token %+v", tok)
		}
	}
	_, err := f.AddLinkedSession(f.Context(), "link", sessionOf("a"), lifetime)
	f.Must(err)
	gone := func(why, link string) {
		if _, err := f.LinkToken(f.Context(), link); !errors.Is(err, registry.ErrNotFound) {
			f.Errorf("%s: %v", why, err)
		}
	}
	gone("used", "link")
	gone("never made", "none")
	f.Must(f.Store.RevokeToken(f.Context(), "t", "root"))
	gone("its token was revoked", "late")
	f.Token("u", registry.RoleViewer)
	f.Must(f.AddLink(f.Context(), "old", "u", 10*time.Minute))
	f.Clock.Pass(10 * time.Minute)
	gone("expired", "old")
}

func linkWhole(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.signIn("a", "t")
	f.Must(f.AddLink(f.Context(), "link", "t", 10*time.Minute))
	if _, err := f.AddLinkedSession(f.Context(), "link", sessionOf("a"), lifetime); !errors.Is(err, registry.ErrTaken) {
		f.Fatalf("an id that is taken: %v", err)
	}
	_, err := f.AddLinkedSession(f.Context(), "link", sessionOf("b"), lifetime)
	f.Must(err)
}

func sessionEvents(f *signing) {
	f.Token("t", registry.RoleViewer)
	f.Must(f.AddLink(f.Context(), "hash of the link", "t", 10*time.Minute))
	_, err := f.AddLinkedSession(f.Context(), "hash of the link", sessionOf("a"), lifetime)
	f.Must(err)
	f.Must(f.EndSession(f.Context(), "a", registry.EventSignedOut, "name of t"))
	f.signIn("b", "t")
	f.Must(f.EndSession(f.Context(), "b", registry.EventSessionEnded, "boss"))
	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{Types: []string{registry.EventSignedIn, registry.EventSignedOut, registry.EventSessionEnded}})
	f.Must(err)
	var told []string
	for _, e := range page.Rows {
		told = append(told, e.Type+" by "+e.Actor)
		if strings.Contains(string(e.Data), "hash of") {
			f.Errorf("event %s tells a hash: %s", e.Type, e.Data)
		}
		if !strings.Contains(string(e.Data), `"192.0.2.1"`) || !strings.Contains(string(e.Data), `"Browser/1"`) {
			f.Errorf("event %s tells too little: %s", e.Type, e.Data)
		}
	}
	want := []string{"session-ended by boss", "signed-in by name of t", "signed-out by name of t", "signed-in by name of t"}
	if diff := cmp.Diff(want, told); diff != "" {
		f.Errorf("audit log (-want +got):\n%s", diff)
	}
}
