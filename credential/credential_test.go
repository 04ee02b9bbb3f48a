package credential_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/credential"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
)

const keyText = "a key of the tests with no less than 32 characters"

// kept is what a Registry has, by owner, and how often it was asked.
type kept struct {
	all   map[string][]registry.Credential
	asked int
}

func (k *kept) Credentials(_ context.Context, owner string) ([]registry.Credential, error) {
	k.asked++
	return k.all[owner], nil
}

func keys(t *testing.T, text string) *secret.Keys {
	t.Helper()
	k, err := secret.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kept) set(t *testing.T, owner, origin string, kind registry.CredentialKind, name, secret string) {
	t.Helper()
	c := registry.Credential{Collection: owner, Origin: origin, Kind: kind, Name: name, CreatedAt: time.Unix(int64(len(k.all[owner])), 0)}
	var err error
	if c.Sealed, err = keys(t, keyText).Seal(secret, c.About()...); err != nil {
		t.Fatal(err)
	}
	k.all[owner] = append(k.all[owner], c)
}

func signing(letter string) string { return "whsec_" + strings.Repeat(letter, 32) }

// TestWallet: each owner's secrets are shown to the origins that they were set for, and to no
// other, over https.
func TestWallet(t *testing.T) {
	t.Parallel()
	k := &kept{all: map[string][]registry.Credential{}}
	owner := registry.SubscriptionOwner("s")
	k.set(t, owner, "https://h.test", registry.CredentialBearer, "", "token")
	k.set(t, owner, "https://b.test:8443", registry.CredentialBasic, "ann", "secret")
	for _, letter := range []string{"A", "B", "C"} {
		k.set(t, owner, "signing:"+letter, registry.CredentialSigning, "", signing(letter))
	}
	w := credential.New(k, keys(t, keyText), owner)
	for origin, want := range map[string]string{
		"https://h.test": "Bearer token", "https://H.TEST:443": "Bearer token", "https://b.test:8443": "Basic YW5uOnNlY3JldA==",
		"https://b.test": "", "http://h.test": "", "https://other.test": "",
	} {
		if got, err := w.Header(t.Context(), origin); got != want || err != nil {
			t.Errorf("%s is shown %q, %v, want %q", origin, got, err, want)
		}
	}
	got, err := w.SigningKeys(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("%d keys, %v, want the two newest", len(got), err)
	}
	for i, letter := range []string{"C", "B"} {
		want, err := callback.ParseKey(signing(letter))
		if err != nil || !slices.Equal(got[i], want) {
			t.Errorf("key %d is not %s", i, letter)
		}
	}
	if k.asked != 1 {
		t.Errorf("the Registry was asked %d times", k.asked)
	}
	if got, err := credential.New(k, keys(t, keyText), "another").Header(t.Context(), "https://h.test"); got != "" || err != nil {
		t.Errorf("another owner shows %q, %v", got, err)
	}
}

// TestWallet_Closed: what cannot be opened is said with what to do, and without the secret.
func TestWallet_Closed(t *testing.T) {
	t.Parallel()
	k := &kept{all: map[string][]registry.Credential{}}
	k.set(t, "c", "https://h.test", registry.CredentialBearer, "", "hunter2")
	moved := k.all["c"][0]
	moved.Collection = registry.SubscriptionOwner("s")
	k.all[moved.Collection] = []registry.Credential{moved}
	for _, tt := range []struct {
		name, owner string
		keys        *secret.Keys
		says        []string
	}{
		{"no key", "c", nil, []string{"collection c", "HOLDFAST_SECRET_KEY"}},
		{"another key", "c", keys(t, keyText+" but another"), []string{"add that key"}},
		{"a row of another owner", moved.Collection, keys(t, keyText), []string{"subscription s", "set the credential again"}},
	} {
		got, err := credential.New(k, tt.keys, tt.owner).Header(t.Context(), "https://h.test")
		if got != "" || err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q, %v", tt.name, got, err)
			continue
		}
		for _, want := range tt.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, without %q", tt.name, err, want)
			}
		}
	}
}
