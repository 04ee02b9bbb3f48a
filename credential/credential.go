// Package credential holds the credentials of a collection, or of a subscription, for one step.
//
// It asks the Registry once; the answer holds for the step. A secret is shown only to the origin
// that it was set for, and only over https.
package credential

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
)

// Registry is what a wallet asks.
type Registry interface {
	Credentials(ctx context.Context, collection string) ([]registry.Credential, error)
}

// Wallet is one owner's credentials. It asks for them when the first is needed. Its methods may be
// called concurrently.
type Wallet struct {
	registry Registry
	keys     *secret.Keys
	owner    string

	mu    sync.Mutex
	asked bool
	all   []registry.Credential
}

// New returns the wallet of a collection, or of what [registry.SubscriptionOwner] returns. keys
// open the credentials; nil: what needs one fails.
func New(r Registry, keys *secret.Keys, owner string) *Wallet {
	return &Wallet{registry: r, keys: keys, owner: owner}
}

// Find returns the credential for an origin in its one form with its secret; ok is false when there
// is none.
func (w *Wallet) Find(ctx context.Context, origin string) (c registry.Credential, secret string, ok bool, err error) {
	all, err := w.ask(ctx)
	if err != nil {
		return c, "", false, err
	}
	for _, c := range all {
		if c.Origin == origin {
			secret, err := w.open(c)
			return c, secret, err == nil, err
		}
	}
	return c, "", false, nil
}

// ask returns all credentials, sealed.
func (w *Wallet) ask(ctx context.Context) (_ []registry.Credential, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked {
		if w.all, err = w.registry.Credentials(ctx, w.owner); err != nil {
			return nil, err
		}
		w.asked = true
	}
	return w.all, nil
}

func (w *Wallet) open(c registry.Credential) (string, error) {
	text, err := w.keys.Open(c.Sealed, c.About()...)
	unknown := new(secret.UnknownKeyError)
	switch {
	case err == nil:
		return text, nil
	case errors.Is(err, secret.ErrNoKey):
		err = errors.New("this process has no key to open it with; give it the Registry's HOLDFAST_SECRET_KEY and start it again")
	case errors.As(err, &unknown):
		err = fmt.Errorf("%w; add that key to this process's HOLDFAST_SECRET_KEY, or set the credential again", err)
	default:
		err = fmt.Errorf("%w; set the credential again", err)
	}
	return "", fmt.Errorf("%s: %w", Of(c), err)
}

// Of names a credential for people.
func Of(c registry.Credential) string {
	if name, ok := registry.OwningSubscription(c.Collection); ok {
		return fmt.Sprintf("credential of subscription %s for %s", name, c.Origin)
	}
	return fmt.Sprintf("credential of collection %s for %s", c.Collection, c.Origin)
}

// Header is a source.AuthorizeFunc: the value of the header Authorization for an origin, "" for
// none.
func (w *Wallet) Header(ctx context.Context, origin string) (string, error) {
	origin, err := registry.CanonicalOrigin(origin)
	if err != nil {
		return "", nil //nolint:nilerr // over http nothing secret is shown
	}
	c, secret, ok, err := w.Find(ctx, origin)
	switch {
	case err != nil || !ok:
		return "", err
	case c.Kind == registry.CredentialBearer:
		return "Bearer " + secret, nil
	case c.Kind == registry.CredentialBasic:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Name+":"+secret)), nil
	}
	return "", fmt.Errorf("%s: a newer program is needed for kind %s", Of(c), c.Kind)
}

// SigningKeys are the keys that messages are signed with: the two newest, so that one can take the
// other's place while receivers still know the old one only.
func (w *Wallet) SigningKeys(ctx context.Context) (keys []callback.Key, err error) {
	all, err := w.ask(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c registry.Credential) bool { return c.Kind != registry.CredentialSigning })
	slices.SortFunc(all, func(a, b registry.Credential) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for _, c := range all[:min(len(all), registry.MostSigningKeys)] {
		secret, err := w.open(c)
		if err != nil {
			return nil, err
		}
		key, err := callback.ParseKey(secret)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; set it again", Of(c), err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
