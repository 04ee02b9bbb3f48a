package s3

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
)

// markName is the metadata entry that tells who committed an object.
const markName = "holdfast-writer"

// marked is the metadata of an object that the writer mark commits.
func marked(mark string) map[string]string { return map[string]string{markName: mark} }

// base64Of is a checksum as S3 writes it.
func base64Of(sum []byte) *string { return aws.String(base64.StdEncoding.EncodeToString(sum)) }

// signedWith has a request's signature cover the body by the SHA-256 that is known already, instead
// of taking it again.
func signedWith(sum []byte) func(*s3.Options) {
	return func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("KnownPayloadHash",
				func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
					middleware.FinalizeOutput, middleware.Metadata, error,
				) {
					return next.HandleFinalize(v4.SetPayloadHash(ctx, hex.EncodeToString(sum)), in)
				}), middleware.Before)
		})
	}
}

// limited bounds a request with all its repeats.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// copySource names an object as the source of a copy.
func (s *Store) copySource(name string) *string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return aws.String(s.at.bucket + "/" + strings.Join(parts, "/"))
}

// put makes c the object name. With create it is refused when there is one.
func (s *Store) put(ctx context.Context, name, mark string, c *content, sum []byte, create bool) (*s3.PutObjectOutput, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	in := &s3.PutObjectInput{
		Bucket: &s.at.bucket, Key: &name, Body: c.reader(), ContentLength: aws.Int64(int64(c.size)),
		ChecksumSHA256: base64Of(sum), Metadata: marked(mark),
	}
	if create {
		in.IfNoneMatch = aws.String("*")
		in.StorageClass = s.classOf(name)
	}
	for n := 1; ; n++ {
		out, err := s.client.PutObject(ctx, in, signedWith(sum))
		if !inTheWay(err) || n == writes {
			return out, err
		}
		// versitygw says so, too, when another request removes the folder, empty as it was, under
		// this one.
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Duration(n) * folderWait):
		}
		in.Body = c.reader()
	}
}

// folderWait is the pause, growing, before an object that is in the way is looked for again.
const folderWait = 10 * time.Millisecond

// classOf is the storage class of a new object: the one that the address names, but not for what is
// only kept until a commit, and not for what is replaced again and again, since the cheap classes
// charge for a month at least.
func (s *Store) classOf(name string) types.StorageClass {
	if strings.HasPrefix(name, s.at.prefix+scratchFolder) {
		return ""
	}
	return s.at.class
}

// head describes the object name.
func (s *Store) head(ctx context.Context, name string) (*s3.HeadObjectOutput, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.at.bucket, Key: &name})
}
