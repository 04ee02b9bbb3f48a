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

// markName is the metadata entry that names the writer of an object.
const markName = "holdfast-writer"

// marked returns the metadata of an object of the writer mark.
func marked(mark string) map[string]string { return map[string]string{markName: mark} }

// base64Of returns a checksum in the form of S3's headers.
func base64Of(sum []byte) *string { return aws.String(base64.StdEncoding.EncodeToString(sum)) }

// signedWith signs a request with the known SHA-256 of its body, so that the SDK does not compute
// it again.
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

// copySource returns the name of an object as the source of a copy.
func (s *Store) copySource(name string) *string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return aws.String(s.at.bucket + "/" + strings.Join(parts, "/"))
}

// put stores c as the object name. With create it fails if there is one.
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
		if !pathConflict(err) || n == writeAttempts {
			return out, err
		}
		// versitygw also reports this if another request removes the empty folder meanwhile.
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Duration(n) * folderWait):
		}
		in.Body = c.reader()
	}
}

// folderWait is the pause, growing, before a write is repeated after a path conflict.
const folderWait = 10 * time.Millisecond

// classOf returns the storage class of a new object: the address's, except for scratch objects,
// since cheap classes charge for at least a month.
func (s *Store) classOf(name string) types.StorageClass {
	if strings.HasPrefix(name, s.at.prefix+scratchFolder) {
		return ""
	}
	return s.at.class
}

// head returns the metadata of the object name.
func (s *Store) head(ctx context.Context, name string) (*s3.HeadObjectOutput, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.at.bucket, Key: &name})
}
