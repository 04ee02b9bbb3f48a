package accounttest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func tokenTests() tests {
	return tests{
		"what_is_kept":                                 tokenKept,
		"expired_and_revoked":                          tokenEnds,
		"its_use_is_noted_once_an_hour":                tokenUsed,
		"a_name_is_given_once":                         tokenNames,
		"the_last_admin_stays":                         lastAdmin,
		"two_admins_who_revoke_each_other":             adminsRace,
		"nothing_secret_in_events":                     tokenEvents,
		"R25_a_revocation_holds_nobody_up":             revokedInPortions,
		"a_revocation_that_dies_halfway_is_carried_on": revokedHalfway,
		"a_revoked_token_brings_no_worker_back":        revokedRenews,
		"what_a_token_has_claimed_comes_in_portions":   claimedInPortions,
	}
}

func tokenKept(f *fixture) {
	later := f.Clock.Now().Add(time.Hour)
	first := f.Token("b", registry.RoleDepositor, func(t *registry.Token) {
		t.Collections, t.ExpiresAt = []string{"x", "y"}, &later
	})
	f.Clock.Pass(time.Second)
	second := f.Token("a", registry.RoleAdmin)
	got, err := f.Store.TokenByHash(f.Context(), first.Hash)
	f.Must(err)
	if diff := cmp.Diff(first, got); diff != "" {
		f.Errorf("token (-want +got):\n%s", diff)
	}
	all, err := f.Store.Tokens(f.Context())
	f.Must(err)
	first.Hash, second.Hash = "", ""
	if diff := cmp.Diff([]registry.Token{first, second}, all); diff != "" {
		f.Errorf("tokens, oldest first (-want +got):\n%s", diff)
	}
}

// tokenUsed: requests with a token are noted, once an hour at most. Looking a token up writes nothing.
func tokenUsed(f *fixture) {
	tok := f.Token("a", registry.RoleAdmin)
	f.Token("unused", registry.RoleViewer)
	wants := func(want *time.Time) {
		f.Helper()
		f.Must(f.Store.NoteTokenUses(f.Context()))
		all, err := f.Store.Tokens(f.Context())
		f.Must(err)
		for _, got := range all {
			if got.ID == "a" {
				if diff := cmp.Diff(want, got.UsedAt); diff != "" {
					f.Errorf("last use (-want +got):\n%s", diff)
				}
			} else if got.UsedAt != nil {
				f.Errorf("%s was used at %s", got.ID, got.UsedAt)
			}
		}
	}
	use := func() {
		f.Helper()
		_, err := f.Store.TokenByHash(f.Context(), tok.Hash)
		f.Must(err)
	}
	wants(nil)
	f.Clock.Pass(time.Minute)
	first := f.Clock.Now()
	use()
	if got, err := f.Store.TokenByHash(f.Context(), tok.Hash); err != nil || got.UsedAt != nil {
		f.Errorf("the look-up wrote its use: %+v, %v", got, err)
	}
	wants(&first)
	f.Clock.Pass(time.Hour - time.Second)
	use()
	wants(&first)
	f.Clock.Pass(time.Second)
	second := f.Clock.Now()
	use()
	f.Clock.Pass(time.Minute) // before it is written
	wants(&second)
}

func tokenEnds(f *fixture) {
	until := f.Clock.Now().Add(time.Minute)
	f.Token("root", registry.RoleAdmin)
	f.Token("short", registry.RoleViewer, func(t *registry.Token) { t.ExpiresAt = &until })
	f.Token("other", registry.RoleViewer)
	good := func(id string) bool {
		_, err := f.Store.TokenByHash(f.Context(), "hash of "+id)
		if err != nil {
			f.Is(err, registry.ErrNotFound)
		}
		return err == nil
	}
	f.Clock.Pass(time.Minute - time.Second)
	if !good("short") {
		f.Error("expired too early")
	}
	f.Clock.Pass(time.Second)
	if good("short") {
		f.Error("good after it expired")
	}
	at := f.Clock.Now()
	f.Must(f.Store.RevokeToken(f.Context(), "other", "root"))
	f.Clock.Pass(time.Second)
	f.Must(f.Store.RevokeToken(f.Context(), "other", "somebody else")) // changes nothing
	if good("other") {
		f.Error("good after it was revoked")
	}
	all, err := f.Store.Tokens(f.Context())
	f.Must(err)
	if len(all) != 3 {
		f.Fatalf("tokens %+v, want the revoked one, too", all)
	}
	for _, tok := range all {
		if tok.ID == "other" && (tok.RevokedAt == nil || !tok.RevokedAt.Equal(at)) {
			f.Errorf("revoked at %v, want %v", tok.RevokedAt, at)
		}
	}
	f.Is(f.Store.RevokeToken(f.Context(), "unknown", "root"), registry.ErrNotFound)
}

func tokenNames(f *fixture) {
	f.Token("root", registry.RoleAdmin)
	f.Token("one", registry.RoleViewer)
	same := registry.Token{ID: "two", Hash: "other", Name: "name of one", Role: registry.RoleViewer}
	f.Is(f.Store.AddToken(f.Context(), same), registry.ErrNameTaken)
	f.Must(f.Store.RevokeToken(f.Context(), "one", "root"))
	f.Is(f.Store.AddToken(f.Context(), same), registry.ErrNameTaken)
}

func lastAdmin(f *fixture) {
	until := f.Clock.Now().Add(time.Minute)
	f.Token("a", registry.RoleAdmin)
	f.Token("b", registry.RoleAdmin, func(t *registry.Token) { t.ExpiresAt = &until })
	f.Token("c", registry.RoleOperator)
	f.Must(f.Store.RevokeToken(f.Context(), "c", "a"))
	f.Clock.Pass(time.Minute) // b is over
	f.Is(f.Store.RevokeToken(f.Context(), "a", "a"), registry.ErrLastAdmin)
	if _, err := f.Store.TokenByHash(f.Context(), "hash of a"); err != nil {
		f.Errorf("the last admin was revoked: %v", err)
	}
	f.Must(f.Store.RevokeToken(f.Context(), "b", "a"))
	f.Token("d", registry.RoleAdmin)
	f.Must(f.Store.RevokeToken(f.Context(), "a", "d"))
	f.Is(f.Store.RevokeToken(f.Context(), "d", "d"), registry.ErrLastAdmin)
}

func adminsRace(f *fixture) {
	f.Token("a", registry.RoleAdmin)
	f.Token("b", registry.RoleAdmin)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, id := range []string{"a", "b"} {
		wg.Go(func() { errs[i] = f.Store.RevokeToken(f.Context(), id, "the other") })
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			f.Is(err, registry.ErrLastAdmin)
			refused++
		}
	}
	if refused != 1 {
		f.Errorf("%d of two were refused, want 1: an admin must be left", refused)
	}
}

func tokenEvents(f *fixture) {
	f.Token("root", registry.RoleAdmin)
	f.Token("t", registry.RoleDepositor, func(t *registry.Token) { t.Collections = []string{"x"} })
	f.Must(f.Store.RevokeToken(f.Context(), "t", "boss"))
	events, err := f.Store.Events(f.Context(), "t", 0, 10)
	f.Must(err)
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

// claimedBy claims so many jobs with a token, with the longest lease.
func (f *fixture) claimedBy(token string, n int) (claims []registry.Claim) {
	f.Helper()
	for left := n; left > 0; left -= 500 {
		f.Batch(min(left, 500))
	}
	for range n {
		r := f.Request(registry.Estimate, "")
		r.Token, r.Lease = token, 24*time.Hour
		c, err := f.Store.Claim(f.Context(), r)
		f.Must(err)
		claims = append(claims, c)
	}
	return claims
}

// revokedInPortions: revoking a token with many claims takes several transactions, so others can
// write in between.
func revokedInPortions(f *fixture) {
	f.Token("root", registry.RoleAdmin)
	f.Token("leaked", registry.RoleWorker)
	claims := f.claimedBy("leaked", 600)
	f.Clock.Step(time.Microsecond) // so that each transaction has its own time
	f.Must(f.Store.RevokeToken(f.Context(), "leaked", "root"))
	taken := map[time.Time]int{}
	for _, c := range claims {
		events, err := f.Store.Events(f.Context(), c.Item.ID, 0, 10)
		f.Must(err)
		last := events[len(events)-1]
		if last.Type != string(registry.ActRelease) || last.Actor != "root" {
			f.Fatalf("item %s: %s by %s", c.Item.ID, last.Type, last.Actor)
		}
		taken[last.At]++
	}
	for _, n := range taken {
		if n > 100 {
			f.Errorf("one transaction took %d items away", n)
		}
	}
	if all, err := f.Store.Claimed(f.Context(), registry.ClaimedQuery{Token: "leaked"}); err != nil || len(all) != 0 {
		f.Errorf("it has %d items (%v)", len(all), err)
	}
}

// untilRevoked is a context that ends as soon as a token is revoked.
type untilRevoked struct {
	context.Context
	f     *fixture
	token string
}

func (c untilRevoked) Err() error {
	if _, err := c.f.Store.TokenByHash(c.Context, "hash of "+c.token); errors.Is(err, registry.ErrNotFound) {
		return context.Canceled
	}
	return nil
}

func (c untilRevoked) Done() <-chan struct{} {
	if c.Err() == nil {
		return nil
	}
	done := make(chan struct{})
	close(done)
	return done
}

// revokedHalfway: the revocation is cancelled or dies when the token is useless but still has its
// items.
func revokedHalfway(f *fixture) {
	f.Token("root", registry.RoleAdmin)
	f.Token("leaked", registry.RoleWorker)
	claims := f.claimedBy("leaked", 150)
	_ = f.Store.RevokeToken(untilRevoked{f.Context(), f, "leaked"}, "leaked", "root")
	left, err := f.Store.Claimed(f.Context(), registry.ClaimedQuery{Token: "leaked"})
	f.Must(err)
	if len(left) == 0 {
		f.Fatal("nothing is left to look at")
	}
	for _, it := range left[:1] {
		l := registry.Lease{ItemID: it.ID, N: it.Attempt, Token: "leaked"}
		_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
		f.Is(err, registry.ErrClaimLost)
		_, err = f.Store.SaveResult(f.Context(), l, "r", []byte(`1`))
		f.Is(err, registry.ErrClaimLost)
		if lost := f.Renew(registrytest.Beat(l)); len(lost) != 1 {
			f.Errorf("lost %v", lost)
		}
	}
	f.Sweep(0)
	f.Sweep(0)
	for _, c := range claims {
		if it := f.Item(c.Item.ID); it.Status != registry.Pending || it.Tries != 0 {
			f.Fatalf("item %s is %s after %d tries", it.ID, it.Status, it.Tries)
		}
	}
}

// revokedRenews: a renewal that was let in before the revocation arrives after it.
func revokedRenews(f *fixture) {
	f.Token("root", registry.RoleAdmin)
	f.Token("leaked", registry.RoleWorker)
	f.Must(f.Store.RevokeToken(f.Context(), "leaked", "root"))
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{
		Worker: registry.WorkerInfo{ID: "w", Capacity: map[registry.Stage]int{registry.Expand: 1000}}, Lease: registrytest.Lease, Token: "leaked",
	})
	f.Is(err, registry.ErrClaimLost)
	alive, err := f.Store.Workers(f.Context())
	f.Must(err)
	if len(alive) != 0 {
		f.Errorf("workers of a revoked token: %+v", alive)
	}
}

// claimedInPortions: the list of a token's claims may be larger than memory, so it comes in
// portions.
func claimedInPortions(f *fixture) {
	f.Token("one", registry.RoleWorker)
	want := map[string]bool{}
	for _, c := range f.claimedBy("one", 150) {
		want[c.Item.ID] = true
	}
	q := registry.ClaimedQuery{Token: "one", Collection: registrytest.Mnemonic}
	for _, n := range []int{100, 50, 0} {
		all, err := f.Store.Claimed(f.Context(), q)
		f.Must(err)
		if len(all) != n {
			f.Fatalf("%d items after %q, want %d", len(all), q.After, n)
		}
		for _, it := range all {
			if !want[it.ID] {
				f.Errorf("item %s comes twice, or is not its own", it.ID)
			}
			delete(want, it.ID)
			q.After = it.ID
		}
	}
	for _, none := range []registry.ClaimedQuery{{Token: "one", Collection: "other"}, {Token: "nobody"}} {
		if all, err := f.Store.Claimed(f.Context(), none); err != nil || len(all) != 0 {
			f.Errorf("%+v has %d items (%v)", none, len(all), err)
		}
	}
}
