// Package s3 is a storage.Store in a bucket: the object a/b is the S3 object PREFIX/a/b.
//
// S3 uploads cannot be read before they are completed, so a successor cannot copy from one in
// progress. A writer therefore stores its uncommitted bytes as objects of its own, its pieces,
// below a scratch prefix that no key can reach. A piece is created once, never changed, and named
// by its place in the content. A checkpoint names a writer and a length. Resume copies pieces
// inside S3 and changes nothing of the predecessor's. Commit joins the pieces inside S3 and
// publishes the result by one conditional request.
//
// Every object has the mark of its writer in its metadata. The mark shows whether a commit whose
// answer was lost took effect, and whether the object at a key is the one that a checkpoint means.
// docs/design.md, "Bytes in S3", has the reasons.
package s3

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast/holdfast/awschain"
	"github.com/holdfast/holdfast/storage"
)

// Limits on a request. Requests are repeated a few times, as the service itself asks for (503
// SlowDown). After that the worker retries later.
const (
	attempts       = 5
	maxBackoff     = 5 * time.Second
	dialTimeout    = 5 * time.Second
	answerTimeout  = 60 * time.Second // from the last byte sent to the first one received
	requestTimeout = 3 * time.Minute  // with all repeats; not for reading an object
	maxIdle        = 64               // idle connections
)

// Store is a storage.Store in a bucket. Several of them, in one or several processes, may use the
// same prefix.
type Store struct {
	at          location
	client      *s3.Client
	http        *http.Transport
	uploadSlots chan struct{} // one token for each piece being stored

	// Sizes of pieces and parts: constants that tests make smaller.
	piece, minPart, mergeAt int
	leastRange              int64

	// asFound: the names in the bucket are the keys, also in the store's own folders.
	asFound bool

	probed atomic.Pointer[conditions] // what Ready's test found
}

// Open returns the store at address,
// `s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=BOOL&class=NAME`. Only the bucket is
// required; class is the storage class of committed objects. Credentials come from AWS's default
// chain: environment, shared files, task or instance role. Open sends no request; Ready does. The
// store must be closed.
func Open(ctx context.Context, address string) (*Store, error) {
	return open(ctx, address, maxBackoff)
}

// OpenAsFound is Open for inspecting a bucket as other programs see it: keys are the names in the
// bucket, including the folders that this package reserves. Use it only for reading.
func OpenAsFound(ctx context.Context, address string) (*Store, error) {
	s, err := Open(ctx, address)
	if err == nil {
		s.asFound = true
	}
	return s, err
}

func open(ctx context.Context, address string, backoff time.Duration) (*Store, error) {
	at, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	s := &Store{
		at: at, uploadSlots: make(chan struct{}, maxInFlight),
		piece: defaultPiece, minPart: minPart, mergeAt: defaultMerge, leastRange: defaultRange,
	}
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout, t.MaxIdleConns, t.MaxIdleConnsPerHost = answerTimeout, maxIdle, maxIdle
			s.http = t
		})
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, backoff })
		}),
		// This package computes checksums when the bytes are written, not when they are sent.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if at.region != "" {
		options = append(options, config.WithRegion(at.region))
	}
	if at.endpoint != "" {
		options = append(options, config.WithBaseEndpoint(at.endpoint))
	}
	loaded, err := awschain.Load(ctx, nil, options...) // its errors are returned
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s, err)
	}
	if loaded.Region == "" {
		if at.endpoint == "" {
			return nil, fmt.Errorf("open %s: no region: give region=NAME or AWS_REGION", s)
		}
		loaded.Region = "us-east-1" // the region that services other than AWS expect
	}
	s.client = s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.UsePathStyle = at.pathStyle
		o.APIOptions = append(o.APIOptions, measured)
	})
	return s, nil
}

// region returns the bucket's region.
func (s *Store) region() string { return s.client.Options().Region }

// Close closes idle connections. Writers and readers that are still open stay usable.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// String returns the bucket and the prefix.
func (s *Store) String() string { return "s3://" + s.at.bucket + "/" + s.at.prefix }

// Space implements storage.Store. A bucket has no limit.
func (s *Store) Space(context.Context) (storage.Space, error) {
	return storage.Space{}, storage.ErrUnlimited
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Copier   = (*Store)(nil)
	_ storage.Replacer = (*Store)(nil)
)
