package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) credentialRoutes() {
	const path = "/collections/{name}/credentials"
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-credentials", Method: http.MethodGet, Path: path, Summary: "List a collection's credentials for sources, without their secrets"}, s.credentials)
	endpoint.Register(s.Server, endpoint.Operation{ID: "put-credential", Method: http.MethodPut, Path: path, Summary: "Set the credential of a collection for an origin; its secret is stored encrypted and never returned"}, s.putCredential)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-credential", Method: http.MethodDelete, Path: path, Summary: "Remove a credential"}, s.removeCredential)
	const subscription = "/subscriptions/{name}/credentials"
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-subscription-credentials", Method: http.MethodGet, Path: subscription, Summary: "List a subscription's credentials and signing keys, without the secrets"}, s.subscriptionCredentials)
	endpoint.Register(s.Server, endpoint.Operation{ID: "put-subscription-credential", Method: http.MethodPut, Path: subscription, Summary: "Set a subscription's signing key, or its credential for its receiver; it is stored encrypted and never returned"}, s.putSubscriptionCredential)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-subscription-credential", Method: http.MethodDelete, Path: subscription, Summary: "Remove a subscription's key or credential"}, s.removeSubscriptionCredential)
}

// shownCredential returns a credential without its secret.
func shownCredential(c registry.Credential) wire.Credential {
	return wire.Credential{Credential: c, KeyID: secret.KeyID(c.Sealed)}
}

func (s *Service) credentials(ctx context.Context, in *lookup.CollectionName) (*endpoint.Output[registry.Page[wire.Credential]], error) {
	if _, err := lookup.Collection(ctx, s.Registry, in.Name); err != nil {
		return nil, err
	}
	return s.credentialsOf(ctx, in.Name)
}

// credentialsOf lists the credentials of a collection or subscription.
func (s *Service) credentialsOf(ctx context.Context, owner string) (*endpoint.Output[registry.Page[wire.Credential]], error) {
	all, err := s.Registry.Credentials(ctx, owner)
	if err != nil {
		return nil, err
	}
	out := make([]wire.Credential, len(all))
	for i, c := range all {
		out[i] = shownCredential(c)
	}
	return endpoint.Listed(out), nil
}

type putCredentialInput struct {
	lookup.CollectionName
	Body wire.CredentialRequest
}

func (s *Service) putCredential(ctx context.Context, in *putCredentialInput) (*endpoint.Output[wire.Credential], error) {
	origin, originErr := registry.CanonicalOrigin(in.Body.Origin)
	if err := endpoint.Invalid("the credential was not set", credentialFaults(in.Body, origin, originErr)...); err != nil {
		return nil, err
	}
	if _, err := lookup.Collection(ctx, s.Registry, in.Name); err != nil {
		return nil, err
	}
	return s.setCredential(ctx, in.Name, origin, in.Body)
}

// setCredential encrypts a secret and stores it. A repeat encrypts it again and changes nothing
// else.
func (s *Service) setCredential(ctx context.Context, owner, origin string, r wire.CredentialRequest) (*endpoint.Output[wire.Credential], error) {
	c := registry.Credential{
		Collection: owner, Origin: origin, Kind: registry.CredentialKind(r.Kind), Name: r.Name,
		Endpoint: r.Endpoint, Region: r.Region, PathStyle: r.PathStyle, CreatedBy: access.Actor(ctx),
	}
	if err := s.seal(&c, r.Secret); err != nil {
		return nil, err
	}
	if err := s.Registry.PutCredential(ctx, c); err != nil {
		return nil, err
	}
	c.CreatedAt = s.Now().UTC()
	s.Log.InfoContext(ctx, "credential set", "collection", c.Collection, "origin", c.Origin, "kind", string(c.Kind), "actor", c.CreatedBy)
	return &endpoint.Output[wire.Credential]{Body: shownCredential(c)}, nil
}

// seal encrypts a secret into a credential whose other fields are set.
func (s *Service) seal(c *registry.Credential, text string) (err error) {
	c.Sealed, err = s.Keys.Seal(text, c.About()...)
	if errors.Is(err, secret.ErrNoKey) {
		return wire.NewProblem(http.StatusConflict, wire.CodeNoKey,
			"the credential was not set: this Registry has no key to encrypt it with; set HOLDFAST_SECRET_KEY for it and for the workers "+
				"that fetch (openssl rand -base64 32), restart them, and set the credential again")
	}
	return err
}

// credentialFaults returns all faults of a request. They never repeat the secret, and repeat the
// origin only once it is known to contain none.
func credentialFaults(r wire.CredentialRequest, origin string, originErr error) (faults []wire.Fault) {
	fault := func(field, format string, args ...any) {
		faults = append(faults, wire.Fault{Location: "body." + field, Message: fmt.Sprintf(format, args...)})
	}
	kind := registry.CredentialKind(r.Kind)
	bucket, isBucket := strings.CutPrefix(origin, registry.BucketOrigin(""))
	switch {
	case originErr != nil:
		fault("origin", "%s", originErr.Error())
	case isBucket && !source.IsBucket(bucket):
		fault("origin", "a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens")
	}
	switch {
	case !slices.Contains(registry.CredentialKinds(), kind):
		fault("kind", "must be one of %v", registry.OneOf(registry.CredentialKinds()))
		return faults
	case originErr == nil && !kind.For(origin):
		fault("kind", "%s does not fit %s; a web server takes basic or bearer, a bucket s3 or default-chain, signing:NAME a signing key", kind, origin)
	}
	named := kind == registry.CredentialBasic || kind == registry.CredentialS3
	switch {
	case named && r.Name == "":
		fault("name", "missing: basic needs a user, s3 the id of an access key")
	case !named && r.Name != "":
		fault("name", "%s has no name", kind)
	case kind == registry.CredentialBasic && strings.Contains(r.Name, ":"):
		fault("name", "a user must not contain a colon (RFC 7617)")
	default:
		faults = append(faults, valid.Text("body.name", r.Name, valid.MaxText)...)
	}
	faults = append(faults, secretFaults(kind, r.Secret)...)
	if !kind.ForBucket() {
		if r.Endpoint != "" || r.Region != "" || r.PathStyle {
			fault("endpoint", "endpoint, region and path_style are for buckets only")
		}
		return faults
	}
	if kind == registry.CredentialS3 && r.Endpoint == "" && r.Region == "" {
		fault("region", "missing: give the bucket's region, or the endpoint of a service other than AWS")
	}
	if r.Region != "" && strings.Trim(r.Region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		fault("region", "has letters, digits, - and _ only, such as eu-central-1")
	}
	return append(faults, endpointFaults(r.Endpoint)...)
}

func secretFaults(kind registry.CredentialKind, secret string) []wire.Fault {
	const most = 8192
	fault := func(text string) []wire.Fault { return []wire.Fault{{Location: "body.secret", Message: text}} }
	switch {
	case kind == registry.CredentialDefaultChain && secret != "":
		return fault("default-chain has no secret: it uses the workers' own credentials")
	case kind != registry.CredentialDefaultChain && secret == "":
		return fault("missing")
	case len(secret) > most:
		return fault("longer than 8192 bytes")
	case strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fault("contains a control character, such as the end of a line")
	case kind == registry.CredentialSigning:
		if _, err := callback.ParseKey(secret); err != nil {
			return fault(err.Error())
		}
	case kind == registry.CredentialBearer && strings.ContainsFunc(secret, func(r rune) bool { return r == ' ' || r > '~' }):
		return fault("a bearer token is printable ASCII without spaces (RFC 6750); leave the word Bearer out")
	}
	return nil
}

func endpointFaults(endpoint string) []wire.Fault {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(endpoint, "?#") || len(endpoint) > valid.MaxText {
		return []wire.Fault{{Location: "body.endpoint", Message: "must be an http or https address without user, query and fragment"}}
	}
	return nil
}

type removeCredentialInput struct {
	lookup.CollectionName
	Origin string `query:"origin" required:"true" maxLength:"300"`
}

func (s *Service) removeCredential(ctx context.Context, in *removeCredentialInput) (*struct{}, error) {
	if _, err := lookup.Collection(ctx, s.Registry, in.Name); err != nil {
		return nil, err
	}
	return nil, s.forgetCredential(ctx, in.Name, in.Origin)
}

func (s *Service) forgetCredential(ctx context.Context, owner, text string) error {
	origin, err := registry.CanonicalOrigin(text)
	if err != nil {
		return endpoint.Invalid("the credential was not removed", wire.Fault{Location: "query.origin", Message: err.Error()})
	}
	err = s.Registry.RemoveCredential(ctx, owner, origin, access.Actor(ctx))
	if errors.Is(err, registry.ErrNotFound) {
		return endpoint.NotFound("%s has no credential for %s; list its credentials to see the existing ones", owner, origin)
	}
	if err == nil {
		s.Log.InfoContext(ctx, "credential removed", "collection", owner, "origin", origin, "actor", access.Actor(ctx))
	}
	return err
}

func (s *Service) subscriptionCredentials(ctx context.Context, in *SubscriptionName) (*endpoint.Output[registry.Page[wire.Credential]], error) {
	if _, err := s.subscriptionOf(ctx, in.Name); err != nil {
		return nil, err
	}
	return s.credentialsOf(ctx, registry.SubscriptionOwner(in.Name))
}

type putSubscriptionCredentialInput struct {
	SubscriptionName
	Body wire.CredentialRequest
}

func (s *Service) putSubscriptionCredential(ctx context.Context, in *putSubscriptionCredentialInput) (*endpoint.Output[wire.Credential], error) {
	origin, originErr := registry.CanonicalOrigin(in.Body.Origin)
	faults := credentialFaults(in.Body, origin, originErr)
	if registry.CredentialKind(in.Body.Kind).ForBucket() {
		faults = append(faults, wire.Fault{Location: "body.kind", Message: "a receiver takes basic, bearer or a signing key"})
	}
	if err := endpoint.Invalid("the credential was not set", faults...); err != nil {
		return nil, err
	}
	if _, err := s.subscriptionOf(ctx, in.Name); err != nil {
		return nil, err
	}
	return s.setCredential(ctx, registry.SubscriptionOwner(in.Name), origin, in.Body)
}

type removeSubscriptionCredentialInput struct {
	SubscriptionName
	Origin string `query:"origin" required:"true" maxLength:"300"`
}

func (s *Service) removeSubscriptionCredential(ctx context.Context, in *removeSubscriptionCredentialInput) (*struct{}, error) {
	if _, err := s.subscriptionOf(ctx, in.Name); err != nil {
		return nil, err
	}
	return nil, s.forgetCredential(ctx, registry.SubscriptionOwner(in.Name), in.Origin)
}
