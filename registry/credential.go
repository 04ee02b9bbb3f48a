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

// Unlocking gives steps the credentials for sources and receivers.
type Unlocking interface {
	// Credentials lists a collection's credentials by origin, with sealed secrets. An unknown
	// collection has none.
	Credentials(ctx context.Context, collection string) ([]Credential, error)
}

// Secrets manages the credentials for sources and receivers.
type Secrets interface {
	// PutCredential adds or replaces the credential of a collection or subscription for an origin.
	// ErrInvalid: [Credential.Check] refuses it. ErrNotFound: the owner is unknown. A failing
	// subscription whose credentials are changed or removed is retried at once.
	PutCredential(ctx context.Context, c Credential) error
	// RemoveCredential deletes a credential; ErrNotFound if there is none. Requests in progress may
	// still use it.
	RemoveCredential(ctx context.Context, collection, origin, actor string) error
}

// CredentialKind says how a credential authenticates a request.
type CredentialKind string

// The kinds.
const (
	CredentialBasic  CredentialKind = "basic"  // user and password, to a web server
	CredentialBearer CredentialKind = "bearer" // a token, to a web server
	CredentialS3     CredentialKind = "s3"     // access key id and secret key, to a bucket
	// CredentialDefaultChain uses the workers' own AWS credentials for a bucket. It has no secret.
	CredentialDefaultChain CredentialKind = "default-chain"
	// CredentialSigning is a key that signs callbacks, so that receivers can authenticate them.
	CredentialSigning CredentialKind = "signing"
)

// CredentialKinds returns every kind.
func CredentialKinds() []CredentialKind {
	return []CredentialKind{CredentialBasic, CredentialBearer, CredentialS3, CredentialDefaultChain, CredentialSigning}
}

// MostSigningKeys is how many of a collection's signing keys sign: the newest ones.
const MostSigningKeys = 2

// For reports whether credentials of this kind are for a canonical origin: of a bucket, of a web
// server or, for signing keys, a name.
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

// ForBucket reports whether credentials of this kind are for buckets.
func (k CredentialKind) ForBucket() bool { return k == CredentialS3 || k == CredentialDefaultChain }

// Credential authenticates requests to a source of a collection's deposits, or to the receiver of a
// subscription. A collection has at most one for each origin.
type Credential struct {
	Collection string         `json:"collection"` // or [SubscriptionOwner]
	Origin     string         `json:"origin"`     // in the form of CanonicalOrigin
	Kind       CredentialKind `json:"kind"`
	// Name is the user or the access key id; "" for other kinds.
	Name string `json:"name,omitempty"`
	// Endpoint, Region and PathStyle locate a bucket. Without an endpoint it is at AWS.
	Endpoint  string `json:"endpoint,omitempty"`
	Region    string `json:"region,omitempty"`
	PathStyle bool   `json:"path_style,omitempty"`
	// Sealed is the encrypted secret, bound to the fields above. The database does not contain its
	// key.
	Sealed    string    `json:"-"`
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at"` // of this secret; setting it again replaces it
}

// About returns the fields to which the sealed secret is bound. Without the key they cannot be
// changed, and no secret can take another's place.
func (c Credential) About() []string {
	return []string{
		"credential", c.Collection, c.Origin, string(c.Kind), c.Name, c.Endpoint, c.Region, strconv.FormatBool(c.PathStyle),
	}
}

// Check returns ErrInvalid, with the reason, unless the credential can be stored.
func (c Credential) Check() error {
	origin, err := CanonicalOrigin(c.Origin)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case origin != c.Origin:
		return fmt.Errorf("%w: origin %s is not in canonical form; write %s", ErrInvalid, c.Origin, origin)
	case !slices.Contains(CredentialKinds(), c.Kind):
		return fmt.Errorf("%w: unknown kind of credential %q", ErrInvalid, c.Kind)
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
	keyOrigin    = "signing:" // for keys, which have names
)

// BucketOrigin returns the origin of a bucket.
func BucketOrigin(bucket string) string { return bucketOrigin + bucket }

// CanonicalOrigin returns the canonical form of an origin. It is https://HOST[:PORT], in lower case
// and without the port 443; s3://BUCKET; or signing:NAME, where NAME has 1 to 64 letters, digits,
// dots, hyphens and underscores. It ignores a trailing slash. It refuses other schemes, paths,
// users and so on; http is refused because it would expose the secret.
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
		return "", fmt.Errorf("%w; http would expose the secret", errOrigin)
	}
	return "", errOrigin
}

// errOrigin does not repeat the text, which may contain a password.
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
