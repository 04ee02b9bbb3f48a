package registrytest

import (
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func tokenTests() []test {
	return []test{
		{"what_is_kept", tokenKept},
		{"expired_and_revoked", tokenEnds},
		{"a_name_is_given_once", tokenNames},
		{"the_last_admin_stays", lastAdmin},
		{"two_admins_who_revoke_each_other", adminsRace},
		{"nothing_secret_in_events", tokenEvents},
	}
}

func (f *fixture) token(id string, role registry.Role, change ...func(*registry.Token)) registry.Token {
	f.Helper()
	tok := registry.Token{ID: id, Hash: "hash of " + id, Name: "name of " + id, Role: role, CreatedBy: "root"}
	for _, c := range change {
		c(&tok)
	}
	f.must(f.AddToken(f.Context(), tok))
	tok.CreatedAt = f.clock.now()
	return tok
}

func tokenKept(f *fixture) {
	later := f.clock.now().Add(time.Hour)
	first := f.token("b", registry.RoleDepositor, func(t *registry.Token) {
		t.Collections, t.ExpiresAt = []string{"x", "y"}, &later
	})
	f.clock.pass(time.Second)
	second := f.token("a", registry.RoleAdmin)
	got, err := f.TokenByHash(f.Context(), first.Hash)
	f.must(err)
	if diff := cmp.Diff(first, got); diff != "" {
		f.Errorf("token (-want +got):\n%s", diff)
	}
	all, err := f.Tokens(f.Context())
	f.must(err)
	first.Hash, second.Hash = "", ""
	if diff := cmp.Diff([]registry.Token{first, second}, all); diff != "" {
		f.Errorf("tokens, oldest first (-want +got):\n%s", diff)
	}
}

func tokenEnds(f *fixture) {
	until := f.clock.now().Add(time.Minute)
	f.token("root", registry.RoleAdmin)
	f.token("short", registry.RoleViewer, func(t *registry.Token) { t.ExpiresAt = &until })
	f.token("other", registry.RoleViewer)
	good := func(id string) bool {
		_, err := f.TokenByHash(f.Context(), "hash of "+id)
		if err != nil {
			f.is(err, registry.ErrNotFound)
		}
		return err == nil
	}
	f.clock.pass(time.Minute - time.Second)
	if !good("short") {
		f.Error("expired too early")
	}
	f.clock.pass(time.Second)
	if good("short") {
		f.Error("good after it expired")
	}
	at := f.clock.now()
	f.must(f.RevokeToken(f.Context(), "other", "root"))
	f.clock.pass(time.Second)
	f.must(f.RevokeToken(f.Context(), "other", "somebody else")) // changes nothing
	if good("other") {
		f.Error("good after it was revoked")
	}
	all, err := f.Tokens(f.Context())
	f.must(err)
	if len(all) != 3 {
		f.Fatalf("tokens %+v, want the revoked one, too", all)
	}
	for _, tok := range all {
		if tok.ID == "other" && (tok.RevokedAt == nil || !tok.RevokedAt.Equal(at)) {
			f.Errorf("revoked at %v, want %v", tok.RevokedAt, at)
		}
	}
	f.is(f.RevokeToken(f.Context(), "unknown", "root"), registry.ErrNotFound)
}

func tokenNames(f *fixture) {
	f.token("root", registry.RoleAdmin)
	f.token("one", registry.RoleViewer)
	same := registry.Token{ID: "two", Hash: "other", Name: "name of one", Role: registry.RoleViewer}
	f.is(f.AddToken(f.Context(), same), registry.ErrNameTaken)
	f.must(f.RevokeToken(f.Context(), "one", "root"))
	f.is(f.AddToken(f.Context(), same), registry.ErrNameTaken)
}

func lastAdmin(f *fixture) {
	until := f.clock.now().Add(time.Minute)
	f.token("a", registry.RoleAdmin)
	f.token("b", registry.RoleAdmin, func(t *registry.Token) { t.ExpiresAt = &until })
	f.token("c", registry.RoleOperator)
	f.must(f.RevokeToken(f.Context(), "c", "a"))
	f.clock.pass(time.Minute) // b is over
	f.is(f.RevokeToken(f.Context(), "a", "a"), registry.ErrLastAdmin)
	if _, err := f.TokenByHash(f.Context(), "hash of a"); err != nil {
		f.Errorf("the last admin was revoked: %v", err)
	}
	f.must(f.RevokeToken(f.Context(), "b", "a"))
	f.token("d", registry.RoleAdmin)
	f.must(f.RevokeToken(f.Context(), "a", "d"))
	f.is(f.RevokeToken(f.Context(), "d", "d"), registry.ErrLastAdmin)
}

func adminsRace(f *fixture) {
	f.token("a", registry.RoleAdmin)
	f.token("b", registry.RoleAdmin)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, id := range []string{"a", "b"} {
		wg.Go(func() { errs[i] = f.RevokeToken(f.Context(), id, "the other") })
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			f.is(err, registry.ErrLastAdmin)
			refused++
		}
	}
	if refused != 1 {
		f.Errorf("%d of two were refused, want 1: an admin must be left", refused)
	}
}

func tokenEvents(f *fixture) {
	f.token("root", registry.RoleAdmin)
	f.token("t", registry.RoleDepositor, func(t *registry.Token) { t.Collections = []string{"x"} })
	f.must(f.RevokeToken(f.Context(), "t", "boss"))
	events, err := f.Events(f.Context(), "t", 0, 10)
	f.must(err)
	var told []string
	for _, e := range events {
		told = append(told, e.Type+" by "+e.Actor)
		if strings.Contains(string(e.Data), "hash of") {
			f.Errorf("event %s tells the hash: %s", e.Type, e.Data)
		}
		if !strings.Contains(string(e.Data), `"name of t"`) || !strings.Contains(string(e.Data), `"x"`) {
			f.Errorf("event %s tells too little: %s", e.Type, e.Data)
		}
	}
	if diff := cmp.Diff([]string{"token-created by root", "token-revoked by boss"}, told); diff != "" {
		f.Errorf("events (-want +got):\n%s", diff)
	}
}
