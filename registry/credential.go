package registry

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unlocking is how a step comes by what sources and receivers ask it for.
type Unlocking interface {
	// Credentials lists a collection's credentials by their origins, with their secrets sealed;
	// none of an unknown one.
	Credentials(ctx context.Context, collection string) ([]Credential, error)
}

// Secrets keeps what sources and receivers ask for.
type Secrets interface {
	// PutCredential keeps a credential of a collection, or of a subscription, or replaces the one
	// of the same origin. ErrInvalid when [Credential.Check] refuses it, ErrNotFound for an unknown
	// owner. What a subscription is failing with is forgotten, and it is tried at once; so it is
	// when one of its credentials is removed.
	PutCredential(ctx context.Context, c Credential) error
	// RemoveCredential forgets a credential; ErrNotFound when there is none. Requests under way may
	// still use it.
	RemoveCredential(ctx context.Context, collection, origin, actor string) error
}

// CredentialKind says how a credential shows a source whose request it is.
type CredentialKind string

// The kinds.
const (
	CredentialBasic  CredentialKind = "basic"  // user and password, to a web server
	CredentialBearer CredentialKind = "bearer" // a token, to a web server
	CredentialS3     CredentialKind = "s3"     // access key id and secret key, to a bucket
	// CredentialDefaultChain: the workers' own credentials for AWS, to a bucket. It has no secret.
	CredentialDefaultChain CredentialKind = "default-chain"
	// CredentialSigning: a key that callbacks are signed with, so that receivers can tell that they
	// are ours.
	CredentialSigning CredentialKind = "signing"
)

// CredentialKinds returns every kind.
func CredentialKinds() []CredentialKind {
	return []CredentialKind{CredentialBasic, CredentialBearer, CredentialS3, CredentialDefaultChain, CredentialSigning}
}

// MostSigningKeys is how many of a collection's signing keys sign: the newest.
const MostSigningKeys = 2

// For says whether credentials of this kind are for an origin in its one form: one of a bucket, of
// a web server or, for signing keys, a name.
func (k CredentialKind) For(origin string) bool {
	switch k {
	case CredentialS3, CredentialDefaultChain:
		return strings.HasPrefix(origin, bucketOrigin)
	case CredentialSigning:
		return strings.HasPrefix(origin, keyOrigin)
	case CredentialBasic, CredentialBearer:
		return strings.HasPrefix(origin, webOrigin)
	}
	return false
}

// ForBucket says whether credentials of this kind are for buckets.
func (k CredentialKind) ForBucket() bool { return k == CredentialS3 || k == CredentialDefaultChain }

// Credential is what the sources of a collection's deposits ask for, or the receiver of a
// subscription. There is at most one for an origin of a collection.
type Credential struct {
	Collection string         `json:"collection"` // or [SubscriptionOwner]
	Origin     string         `json:"origin"`     // as CanonicalOrigin returns it
	Kind       CredentialKind `json:"kind"`
	// Name is the user, or the id of the access key; "" for the other kinds.
	Name string `json:"name,omitempty"`
	// Endpoint, Region and PathStyle say where a bucket is. Without an endpoint it is one of AWS's
	// own.
	Endpoint  string `json:"endpoint,omitempty"`
	Region    string `json:"region,omitempty"`
	PathStyle bool   `json:"path_style,omitempty"`
	// Sealed is the secret under a key that the Registry's database does not have, bound to all of
	// the above.
	Sealed    string    `json:"-"`
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at"` // of this secret: to set it again replaces it
}

// About is what a credential's secret is sealed about: none of it can be changed, and no secret put
// in another's place, without the key.
func (c Credential) About() []string {
	return []string{
		"credential", c.Collection, c.Origin, string(c.Kind), c.Name, c.Endpoint, c.Region, strconv.FormatBool(c.PathStyle),
	}
}

// Check returns ErrInvalid, with the reason, unless a store can keep the credential.
func (c Credential) Check() error {
	origin, err := CanonicalOrigin(c.Origin)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case origin != c.Origin:
		return fmt.Errorf("%w: origin %s is not in its one form, %s", ErrInvalid, c.Origin, origin)
	case !slices.Contains(CredentialKinds(), c.Kind):
		return fmt.Errorf("%w: there is no kind %q of credential", ErrInvalid, c.Kind)
	case !c.Kind.For(origin):
		return fmt.Errorf("%w: a credential of kind %s is not for %s", ErrInvalid, c.Kind, origin)
	case c.Sealed == "":
		return fmt.Errorf("%w: the secret is not sealed", ErrInvalid)
	}
	return nil
}

const (
	webOrigin    = "https://"
	bucketOrigin = "s3://"
	keyOrigin    = "signing:" // of keys, which have names
)

// BucketOrigin is the origin of a bucket.
func BucketOrigin(bucket string) string { return bucketOrigin + bucket }

// CanonicalOrigin returns the one form of an origin: https://HOST[:PORT], in lower case and without
// the port 443, s3://BUCKET, or signing:NAME for a key, whose name has 1 to 64 letters, digits,
// dots, hyphens and underscores. A trailing slash is taken for nothing. Other schemes, paths, users
// and the like are refused; http is, since whoever listens would learn the secret.
func CanonicalOrigin(text string) (string, error) {
	if name, ok := strings.CutPrefix(text, keyOrigin); ok {
		if checkWord("a key's name", name) != nil {
			return "", errOrigin
		}
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(text, "?#") || u.Hostname() == "" {
		return "", errOrigin
	}
	switch strings.ToLower(u.Scheme) {
	case "https":
		return webOriginOf(u)
	case "s3":
		if u.Port() != "" || strings.HasSuffix(u.Host, ":") {
			return "", errOrigin
		}
		return bucketOrigin + u.Host, nil
	case "http":
		return "", fmt.Errorf("%w; over http whoever listens would learn the secret", errOrigin)
	}
	return "", errOrigin
}

// errOrigin does not repeat the text, which may hold a password.
var errOrigin = fmt.Errorf("an origin is %sHOST[:PORT], %sBUCKET or %sNAME and nothing more", webOrigin, bucketOrigin, keyOrigin)

func webOriginOf(u *url.URL) (string, error) {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return "", errOrigin
		}
	}
	switch {
	case port != "" && port != "443":
		return webOrigin + net.JoinHostPort(host, port), nil
	case strings.Contains(host, ":"):
		return webOrigin + "[" + host + "]", nil
	}
	return webOrigin + host, nil
}
