// Package s3 is a storage.Store in a bucket: the object a/b is the S3 object PREFIX/a/b.
//
// Nobody can read an S3 upload before it is completed, so a successor cannot copy from one in
// progress. A writer's uncommitted bytes are therefore in objects of its own, its pieces, below a
// scratch prefix that no key can reach: created once, never written to again, and named by their
// place in the content. A checkpoint names a writer and a length. Resume copies pieces inside S3
// and touches nothing of the predecessor's. Commit joins the pieces inside S3 and publishes the
// result by one conditional request.
//
// Every object carries the mark of its writer in its metadata. The mark tells whether a commit
// whose answer was lost took effect, and whether the object at a key is the one that a checkpoint
// means. docs/design.md, "Bytes in S3", says why.
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
	"github.com/aws/smithy-go/logging"

	"github.com/holdfast/holdfast/storage"
)

// Limits on what one request may cost. The service is asked again a few times, since it asks for
// that itself (503 SlowDown); what fails then is the worker's to try later.
const (
	attempts       = 5
	maxBackoff     = 5 * time.Second
	dialTimeout    = 5 * time.Second
	answerTimeout  = 60 * time.Second // from the last byte sent to the first one received
	requestTimeout = 3 * time.Minute  // with all its repeats; not for reading an object
	maxIdle        = 64               // connections kept
)

// Store is a storage.Store in a bucket. Several of them, in one process or many, may serve the same
// prefix of it.
type Store struct {
	at     location
	client *s3.Client
	http   *http.Transport
	turns  chan struct{} // taken by each piece on its way

	// How objects are cut: constants that tests make smaller.
	piece, minPart, mergeAt int
	leastRange              int64

	// asFound: names in the bucket are keys as they are, our own folders among them.
	asFound bool

	probed atomic.Pointer[conditions] // what Ready found out
}

// Open returns the store at address,
// `s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=BOOL&class=NAME`, of which only the
// bucket must be given; class is the storage class of the objects that are committed. Credentials
// are those of AWS's default chain: environment, shared files, task or instance role. Nothing is
// asked of the service yet; Ready does that. The store must be closed.
func Open(ctx context.Context, address string) (*Store, error) {
	return open(ctx, address, maxBackoff)
}

// OpenAsFound is Open for whoever judges what lies in a bucket, as every other program finds it:
// keys are the names in the bucket, and nothing is read from, or kept out of sight in, the folders
// that this package has for itself. It is for reading only.
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
		at: at, turns: make(chan struct{}, maxInFlight),
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
		config.WithLogger(logging.Nop{}), // what matters is returned
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, backoff })
		}),
		// Whoever needs a checksum here takes it over the bytes as they are written, not over what
		// is being sent.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if at.region != "" {
		options = append(options, config.WithRegion(at.region))
	}
	if at.endpoint != "" {
		options = append(options, config.WithBaseEndpoint(at.endpoint))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s, err)
	}
	if loaded.Region == "" {
		if at.endpoint == "" {
			return nil, fmt.Errorf("open %s: no region: give region=NAME or AWS_REGION", s)
		}
		loaded.Region = "us-east-1" // what services other than AWS's go by
	}
	s.client = s3.NewFromConfig(loaded, func(o *s3.Options) { o.UsePathStyle = at.pathStyle })
	return s, nil
}

// region is where the bucket is.
func (s *Store) region() string { return s.client.Options().Region }

// Close lets go of the connections. Writers and readers that are still open stay usable.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// String names the bucket and the prefix.
func (s *Store) String() string { return "s3://" + s.at.bucket + "/" + s.at.prefix }

// Space implements storage.Store: a bucket has no limit.
func (s *Store) Space(context.Context) (storage.Space, error) {
	return storage.Space{}, storage.ErrUnlimited
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Copier   = (*Store)(nil)
	_ storage.Replacer = (*Store)(nil)
)
