package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// conditions records which conditional writes the service supports.
type conditions struct {
	put      bool // If-None-Match on PutObject
	complete bool // If-None-Match on CompleteMultipartUpload
}

// Ready checks that the bucket exists. At the first call it also tests whether the service supports
// the conditions that let a key be taken only once (R30). If not, two concurrent commits of one key
// may both succeed, and the later one overwrites the earlier. What remains is that repeats write
// the same bytes (R2); the remarks say so. The first call also aborts uploads that were started a
// week ago and never ended.
func (s *Store) Ready(ctx context.Context) (remarks []string, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	if _, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.at.bucket}, askTwice); err != nil {
		if missing(err) {
			return nil, fmt.Errorf("%s: there is no such bucket", s)
		}
		return nil, fmt.Errorf("ask for the bucket of %s: %w", s, err)
	}
	c := s.probed.Load()
	if c == nil {
		if c, err = s.probe(ctx); err != nil {
			return nil, fmt.Errorf("try conditional writes in %s: %w", s, err)
		}
		s.probed.Store(c)
		_ = s.abortStale(ctx, time.Now().Add(-staleAfter)) // the next start, or a rule of the bucket, finds what it misses
	}
	if !c.put {
		remarks = append(remarks, s.String()+": the service ignores If-None-Match on PutObject; of two concurrent commits of one key, one overwrites the other")
	}
	if !c.complete {
		remarks = append(remarks, s.String()+": the service ignores If-None-Match on CompleteMultipartUpload; of two concurrent commits of one key, one overwrites the other")
	}
	return remarks, nil
}

// Clock returns the time of the service, in whole seconds, from its answer to a question about the
// bucket. A refusal is an answer, too.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	out, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.at.bucket}, askTwice)
	var refused *awshttp.ResponseError
	if errors.As(err, &refused) && refused.Response != nil {
		at, err := http.ParseTime(refused.Response.Header.Get("Date"))
		return at, err
	} else if err != nil {
		return time.Time{}, err
	}
	at, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		return time.Time{}, errors.New("its answer has no time")
	}
	return at, nil
}

// askTwice ends a question soon if the service does not answer, so that its error says why.
func askTwice(o *s3.Options) { o.RetryMaxAttempts = 2 }

// probe writes to a key that is taken, in both ways.
func (s *Store) probe(ctx context.Context) (*conditions, error) {
	name, mark := s.at.prefix+scratchFolder+"probe/"+newID(), newID()
	var c content
	_, _ = c.Write([]byte("Holdfast tests whether this can be overwritten.\n"))
	sum := c.sum()
	if _, err := s.put(ctx, name, mark, &c, sum, true); err != nil {
		return nil, err
	}
	_, putErr := s.put(ctx, name, mark, &c, sum, true)
	upload, err := s.beginUpload(ctx, name, mark, true)
	if err != nil {
		return nil, errors.Join(err, s.remove(ctx, []string{name}))
	}
	parts, err := s.parts(ctx, name, upload, []source{{bytes: &c}}, true)
	var completeErr error
	if err == nil {
		_, completeErr = s.complete(ctx, name, upload, parts)
	}
	s.abortUpload(ctx, name, upload)
	if err := errors.Join(err, s.remove(ctx, []string{name})); err != nil {
		return nil, err
	}
	for _, err := range []error{putErr, completeErr} {
		if err != nil && !taken(err) {
			return nil, err
		}
	}
	return &conditions{put: putErr != nil, complete: completeErr != nil}, nil
}
