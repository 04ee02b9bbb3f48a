package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

const signingKey = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// TestSubscriptions creates, changes, rewinds, pauses and removes subscriptions as an admin. Others
// see them without possible secrets, or not at all.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	b := newBench(t, sealing(t))
	ctx, admin := t.Context(), b.as(t, registry.RoleAdmin)
	const target = "https://receiver.test/hooks/secret-path"
	zero := int64(0)
	made, err := admin.PutSubscription(ctx, "life", wire.SubscriptionRequest{
		Target: target, Filter: registry.FeedFilter{States: []registry.State{"failed"}}, From: &zero, SigningKey: signingKey,
	})
	must(t, err)
	if made.Target != target || made.Cursor != 0 || made.CreatedBy != "the admin" {
		t.Errorf("made %+v", made)
	}
	set, err := admin.SubscriptionCredentials(ctx, "life")
	must(t, err)
	if len(set) != 1 || set[0].Origin != "signing:default" || set[0].KeyID == "" {
		t.Errorf("its credentials are %+v", set)
	}
	_, err = admin.PutSubscriptionCredential(ctx, "life", wire.CredentialRequest{Origin: "https://receiver.test", Kind: "bearer", Secret: "tokenoftheirs"})
	must(t, err)
	problemOf(t, ignore(admin.PutSubscriptionCredential(ctx, "life", wire.CredentialRequest{Origin: "s3://bucket", Kind: "default-chain"})), http.StatusUnprocessableEntity, wire.CodeInvalid)
	must(t, admin.RemoveSubscriptionCredential(ctx, "life", "https://receiver.test"))
	if err := admin.RemoveSubscriptionCredential(ctx, "life", "https://receiver.test"); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}

	paused, err := admin.PauseSubscription(ctx, "life", "they move")
	must(t, err)
	end, err := admin.RewindSubscription(ctx, "life", wire.CursorRequest{})
	must(t, err)
	back, err := admin.RewindSubscription(ctx, "life", wire.CursorRequest{Cursor: &zero, Reason: "again"})
	must(t, err)
	resumed, err := admin.ResumeSubscription(ctx, "life")
	must(t, err)
	if paused.Paused == nil || paused.Paused.Actor != "the admin" || end.Cursor == 0 || back.Cursor != 0 || back.Rewinds != 2 || resumed.Paused != nil {
		t.Errorf("paused %+v, at the end %+v, back %+v, resumed %+v", paused, end, back, resumed)
	}

	for _, role := range []registry.Role{registry.RoleViewer, registry.RoleOperator} {
		seen, err := b.as(t, role).Subscriptions(ctx)
		must(t, err)
		if len(seen) != 1 || seen[0].Target != "https://receiver.test" {
			t.Errorf("a %s sees %+v", role, seen)
		}
		_, err = b.as(t, role).PauseSubscription(ctx, "life", "because")
		problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	}
	_, err = b.as(t, registry.RoleDepositor).Subscriptions(ctx)
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)

	// No collection can be one to the credentials, whoever asks.
	if err := admin.PutCollection(ctx, registry.Collection{Mnemonic: registry.SubscriptionOwner("life")}); err == nil {
		t.Error("a collection has the name of a subscription's credentials")
	}
	_, err = admin.Credentials(ctx, registry.SubscriptionOwner("life"))
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)

	events, err := admin.Feed(ctx, registry.FeedQuery{Limit: 500})
	must(t, err)
	for _, e := range events {
		for _, secret := range []string{"secret-path", signingKey, "tokenoftheirs"} {
			if strings.Contains(string(e.Data), secret) {
				t.Errorf("event %s tells %s", e.Type, e.Data)
			}
		}
	}
	must(t, admin.RemoveSubscription(ctx, "life"))
	_, err = admin.Subscription(ctx, "life")
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
}

// ignore is the error of a call alone.
func ignore[T any](_ T, err error) error { return err }

// TestSubscriptions_Refused checks that refusals do not repeat the address, and that nothing is
// created.
func TestSubscriptions_Refused(t *testing.T) {
	t.Parallel()
	b := newBench(t) // without a key
	ctx, admin := t.Context(), b.as(t, registry.RoleAdmin)
	much, below := int64(1_000_000), int64(-5)
	for _, r := range []wire.SubscriptionRequest{
		{Target: "https://u:hunter2@receiver.test/"},
		{Target: "https://receiver.test/?token=hunter2"},
		{Target: "gopher://hunter2.test/"},
		{Target: "nsq:not a topic"},
		{Target: "nsq:t", From: &much},
		{Target: "nsq:t", From: &below},
		{Target: "nsq:t", Filter: registry.FeedFilter{States: []registry.State{"wet"}}},
		{Target: "nsq:t", SigningKey: signingKey},
		{Target: "https://receiver.test/", SigningKey: "hunter2"},
	} {
		err := ignore(admin.PutSubscription(ctx, "life", r))
		problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it says %v", err)
		}
	}
	problemOf(t, ignore(admin.PutSubscription(ctx, "a b", wire.SubscriptionRequest{Target: "nsq:t"})), http.StatusUnprocessableEntity, wire.CodeInvalid)
	problemOf(t, ignore(admin.PutSubscription(ctx, "life", wire.SubscriptionRequest{Target: "https://receiver.test/", SigningKey: signingKey})), http.StatusConflict, wire.CodeNoKey)
	err := ignore(admin.PauseSubscription(ctx, "life", "x"))
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	if err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("without subscriptions: %v", err)
	}
	problemOf(t, ignore(admin.RewindSubscription(ctx, "life", wire.CursorRequest{})), http.StatusNotFound, wire.CodeNotFound)
	all, err := admin.Subscriptions(ctx)
	must(t, err)
	if diff := cmp.Diff([]registry.Subscription(nil), all); diff != "" && len(all) > 0 {
		t.Errorf("made all the same:\n%s", diff)
	}
	must(t, ignore(admin.PutSubscription(ctx, "life", wire.SubscriptionRequest{Target: "nsq:t"})))
	problemOf(t, ignore(admin.PauseSubscription(ctx, "life", " ")), http.StatusUnprocessableEntity, wire.CodeInvalid)
	problemOf(t, ignore(admin.RewindSubscription(ctx, "life", wire.CursorRequest{Cursor: &much})), http.StatusUnprocessableEntity, wire.CodeInvalid)
}
