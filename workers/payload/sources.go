package payload

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/credential"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/s3source"
)

// Sources makes the Fetcher of each collection, which presents only that collection's credentials
// to sources.
type Sources struct {
	Registry credential.Registry
	Keys     *secret.Keys // decrypt the credentials; nil: sources that need one fail
	HTTP     *source.HTTP
	S3       *s3source.Source
	Uploads  source.Fetcher
}

// Of returns the Fetcher of a collection, for one step. The first request to a web server or bucket
// asks the Registry for the credentials, and the answer holds for that step.
func (s *Sources) Of(collection string) source.Fetcher {
	w := s.Wallet(collection)
	web := s.HTTP.Authorized(w.Header)
	return source.NewMux(map[string]source.Fetcher{
		"http": web, "https": web, source.S3Scheme: s.S3.Authorized(bucketIn(w, collection)), source.UploadScheme: s.Uploads,
	})
}

// Wallet returns a collection's credentials.
func (s *Sources) Wallet(collection string) *credential.Wallet {
	return credential.New(s.Registry, s.Keys, collection)
}

// bucketIn returns the function that finds a bucket's credentials in a collection's wallet.
func bucketIn(w *credential.Wallet, collection string) s3source.BucketFunc {
	return func(ctx context.Context, bucket string) (s3source.Bucket, error) {
		c, secret, ok, err := w.Find(ctx, registry.BucketOrigin(bucket))
		switch {
		case err != nil:
			return s3source.Bucket{}, err
		case !ok:
			return s3source.Bucket{}, fmt.Errorf("%w (collection %s, s3://%s)", s3source.ErrNoBucket, collection, bucket)
		}
		b := s3source.Bucket{Endpoint: c.Endpoint, Region: c.Region, PathStyle: c.PathStyle}
		switch c.Kind {
		case registry.CredentialS3:
			b.KeyID, b.Secret = c.Name, secret
		case registry.CredentialDefaultChain:
			b.DefaultChain = true
		case registry.CredentialBasic, registry.CredentialBearer, registry.CredentialSigning:
			return b, fmt.Errorf("%s: this kind of credential is not for buckets", credential.Of(c))
		}
		return b, nil
	}
}
