package workers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/seal"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/s3source"
)

// Sources makes the Fetcher of each collection: one that shows sources the collection's credentials, and no other's.
type Sources struct {
	Registry interface {
		Credentials(ctx context.Context, collection string) ([]registry.Credential, error)
	}
	Keys    *seal.Keys // open the credentials; nil: what needs one fails
	HTTP    *source.HTTP
	S3      *s3source.Source
	Uploads source.Fetcher
}

// Of returns the Fetcher of a collection, for one step: the Registry is asked for the credentials when the first request to a
// web server or bucket is made, and what it answers holds for that step.
func (s *Sources) Of(collection string) source.Fetcher {
	w := &wallet{sources: s, collection: collection}
	web := s.HTTP.Authorized(w.header)
	return source.NewMux(map[string]source.Fetcher{
		"http": web, "https": web, source.S3Scheme: s.S3.Authorized(w.bucket), source.UploadScheme: s.Uploads,
	})
}

// wallet is a collection's credentials in the hands of one step.
type wallet struct {
	sources    *Sources
	collection string

	mu    sync.Mutex
	asked bool
	all   []registry.Credential
}

// find returns the credential for an origin in its one form with its secret; ok is false when there is none.
func (w *wallet) find(ctx context.Context, origin string) (c registry.Credential, secret string, ok bool, err error) {
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
func (w *wallet) ask(ctx context.Context) (_ []registry.Credential, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked {
		if w.all, err = w.sources.Registry.Credentials(ctx, w.collection); err != nil {
			return nil, err
		}
		w.asked = true
	}
	return w.all, nil
}

func (w *wallet) open(c registry.Credential) (string, error) {
	secret, err := w.sources.Keys.Open(c.Sealed, c.About()...)
	unknown := new(seal.UnknownKeyError)
	switch {
	case err == nil:
		return secret, nil
	case errors.Is(err, seal.ErrNoKey):
		err = errors.New("this worker has no key to open it with; give it the Registry's HOLDFAST_SECRET_KEY and start it again")
	case errors.As(err, &unknown):
		err = fmt.Errorf("%w; add that key to this worker's HOLDFAST_SECRET_KEY, or set the credential again", err)
	default:
		err = fmt.Errorf("%w; set the credential again", err)
	}
	return "", fmt.Errorf("credential of collection %s for %s: %w", c.Collection, c.Origin, err)
}

// header is a source.AuthorizeFunc.
func (w *wallet) header(ctx context.Context, origin string) (string, error) {
	if origin, err := registry.CanonicalOrigin(origin); err == nil {
		return w.authorization(ctx, origin)
	}
	return "", nil // over http nothing secret is shown
}

func (w *wallet) authorization(ctx context.Context, origin string) (string, error) {
	c, secret, ok, err := w.find(ctx, origin)
	switch {
	case err != nil || !ok:
		return "", err
	case c.Kind == registry.CredentialBearer:
		return "Bearer " + secret, nil
	case c.Kind == registry.CredentialBasic:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Name+":"+secret)), nil
	}
	return "", fmt.Errorf("credential of collection %s for %s: a newer worker is needed for kind %s", c.Collection, c.Origin, c.Kind)
}

// signingKeys are the keys that callbacks are signed with: the two newest, so that one can take the other's place while
// receivers still know the old one only.
func (w *wallet) signingKeys(ctx context.Context) (keys []callback.Key, err error) {
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
			return nil, fmt.Errorf("credential of collection %s for %s: %w; set it again", c.Collection, c.Origin, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// bucket is an s3source.BucketFunc.
func (w *wallet) bucket(ctx context.Context, bucket string) (s3source.Bucket, error) {
	c, secret, ok, err := w.find(ctx, registry.BucketOrigin(bucket))
	switch {
	case err != nil:
		return s3source.Bucket{}, err
	case !ok:
		return s3source.Bucket{}, fmt.Errorf("%w (collection %s, s3://%s)", s3source.ErrNoBucket, w.collection, bucket)
	}
	b := s3source.Bucket{Endpoint: c.Endpoint, Region: c.Region, PathStyle: c.PathStyle}
	switch c.Kind {
	case registry.CredentialS3:
		b.KeyID, b.Secret = c.Name, secret
	case registry.CredentialDefaultChain:
		b.DefaultChain = true
	case registry.CredentialBasic, registry.CredentialBearer, registry.CredentialSigning:
		return b, fmt.Errorf("credential of collection %s for s3://%s: it is none for a bucket", c.Collection, bucket)
	}
	return b, nil
}
