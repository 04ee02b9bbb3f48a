// Package s3source fetches s3://BUCKET/KEY.
//
// A deposit reads only buckets for which its collection has a credential, at the endpoint and with
// the identity of that credential. The depositor chooses neither. The service's own access rights
// apply only if an admin configured that, and never to the service's own buckets.
//
// A fetch is a signed HTTP request (AWS Signature Version 4). Like all others, it passes the guard,
// the limits by host, the rules of resuming and the classification of faults of package source.
package s3source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast/holdfast/awschain"
	"github.com/holdfast/holdfast/source"
)

// Bucket says how to reach a bucket.
type Bucket struct {
	Endpoint  string // "" for AWS's own endpoint in Region
	Region    string
	PathStyle bool
	// KeyID and Secret sign requests. With DefaultChain, the credentials of AWS's default chain do.
	KeyID, Secret string
	DefaultChain  bool
}

// ErrNoBucket is returned by a BucketFunc for a bucket that must not be read.
var ErrNoBucket = errors.New("the collection has no credential for this bucket")

// BucketFunc says how to reach a bucket, or returns ErrNoBucket.
type BucketFunc func(ctx context.Context, bucket string) (Bucket, error)

// Source makes Fetchers that share connections, limits and AWS's default chain.
type Source struct {
	http     *source.HTTP
	own      []string
	resolver s3.EndpointResolverV2

	mu    sync.Mutex
	chain *aws.Config // nil until loaded
}

// New returns a Source whose requests go through h. own lists the service's own buckets. No deposit
// reads them with the service's rights, wherever they are.
func New(h *source.HTTP, own ...string) *Source {
	return &Source{http: h, own: own, resolver: s3.NewDefaultEndpointResolverV2()}
}

// Authorized returns a Fetcher for the buckets that buckets knows. A bucket without a credential is
// a FaultDenied.
func (s *Source) Authorized(buckets BucketFunc) source.Fetcher {
	return s.http.Located(func(ctx context.Context, rawURL string) (source.Location, error) {
		address, err := source.ParseS3(rawURL)
		if err != nil {
			return source.Location{}, &source.Error{Kind: source.FaultURL, Err: err}
		}
		b, err := buckets(ctx, address.Bucket)
		if errors.Is(err, ErrNoBucket) {
			return source.Location{}, &source.Error{Kind: source.FaultDenied, Err: err}
		} else if err != nil {
			return source.Location{}, err
		}
		return s.locate(ctx, address, b)
	})
}

// identity holds the credentials and the region that a request is signed for.
type identity struct {
	credentials aws.CredentialsProvider
	region      string
}

func (s *Source) locate(ctx context.Context, a source.S3Address, b Bucket) (source.Location, error) {
	who, err := s.identity(ctx, a, b)
	if err != nil {
		return source.Location{}, err
	}
	target, err := s.target(ctx, a, b, who.region)
	if err != nil {
		return source.Location{}, err
	}
	return source.Location{Asked: a.URL(), Target: target, Sign: who.sign}, nil
}

// elsewhere is the region for services other than AWS if none is given.
const elsewhere = "us-east-1"

func (s *Source) identity(ctx context.Context, a source.S3Address, b Bucket) (identity, error) {
	who := identity{region: b.Region}
	if b.DefaultChain {
		if slices.Contains(s.own, a.Bucket) {
			return who, &source.Error{Kind: source.FaultDenied, Err: errors.New("it is a bucket that this service keeps its own files in")}
		}
		chain, err := s.defaultChain(ctx)
		if err != nil {
			return who, err
		}
		who.credentials = chain.Credentials
		if who.region == "" {
			who.region = chain.Region
		}
	} else {
		who.credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: b.KeyID, SecretAccessKey: b.Secret, Source: "holdfast"}, nil
		})
	}
	switch {
	case who.region == "" && b.Endpoint == "":
		return who, errors.New("it names no region, and AWS_REGION is not set here")
	case who.region == "":
		who.region = elsewhere
	}
	return who, nil
}

// defaultChain loads AWS's default chain once. Its requests, for instance to the instance's
// metadata, do not go through the guard, because the deposit does not choose them.
func (s *Source) defaultChain(ctx context.Context) (*aws.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chain == nil {
		loaded, err := awschain.Load(ctx, s.http.Log())
		if err != nil {
			return nil, fmt.Errorf("load AWS's default chain: %w", err)
		}
		s.chain = &loaded
	}
	return s.chain, nil
}

// target returns the address of the object, by S3's own rules for endpoints.
func (s *Source) target(ctx context.Context, a source.S3Address, b Bucket, region string) (*url.URL, error) {
	params := s3.EndpointParameters{Bucket: &a.Bucket, Region: &region, ForcePathStyle: &b.PathStyle}
	if b.Endpoint != "" {
		params.Endpoint = &b.Endpoint
	}
	found, err := s.resolver.ResolveEndpoint(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("find the endpoint: %w", err)
	}
	u := found.URI
	base := strings.TrimSuffix(u.EscapedPath(), "/")
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + a.Key
	u.RawPath = base + "/" + escaped(a.Key)
	if a.VersionID != "" {
		u.RawQuery = url.Values{"versionId": {a.VersionID}}.Encode()
	}
	return &u, nil
}

// escaped escapes a key for a signature: everything but RFC 3986's unreserved characters and the
// slash.
func escaped(key string) string {
	const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
	var b strings.Builder
	for _, c := range []byte(key) {
		if strings.IndexByte(unreserved, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// emptyHash is the SHA-256 of an empty body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// sign signs a request. It makes a new signer each time, because a shared one caches what it
// derives from a secret by key id, and would not notice a corrected secret.
func (who identity) sign(r *http.Request) error {
	ctx := r.Context()
	credentials, err := who.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("find credentials for AWS: %w", err)
	}
	r.Header.Set("X-Amz-Content-Sha256", emptyHash)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // S3 paths are escaped only once
	return signer.SignHTTP(ctx, credentials, r, emptyHash, "s3", who.region, time.Now())
}
