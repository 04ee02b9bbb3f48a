package s3

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

const (
	// copiesAtOnce is how many parts of an object are copied concurrently inside the service.
	copiesAtOnce = 16
	// writeAttempts is how often a conditional write is tried if the service reports a conflict
	// with another one (R30).
	writeAttempts = 4
	// conflictWait is the pause before a repeat; it grows.
	conflictWait = 100 * time.Millisecond
)

// source is the source of a part of an object: another object, a range of one, or memory.
type source struct {
	store *Store // the object's store
	name  string
	from  int64
	size  int64
	whole bool
	etag  string // the ETag that the object must have; "" for any
	sum   []byte // SHA-256 of the part; nil if unknown
	bytes *content
}

// cut splits src into parts of at most so many bytes that can be copied.
func (src source) cut(most int64) []source {
	if src.size <= most {
		return []source{src}
	}
	var parts []source
	for at := int64(0); at < src.size; {
		n := min(src.size-at, most)
		if rest := src.size - at - n; rest > 0 && rest < minPart {
			n -= minPart // the last part may be small, but some services require 5 MiB for a range
		}
		parts = append(parts, source{store: src.store, name: src.name, etag: src.etag, from: at, size: n})
		at += n
	}
	return parts
}

// errRetryWrite says that a write did not take effect and may succeed now.
var errRetryWrite = errors.New("met another write to the same key")

// written describes an object that was just committed.
type written struct {
	etag string
	at   time.Time
}

// answer describes the object by the answer to the request that committed it.
func answer(etag *string, meta middleware.Metadata) written {
	at, ok := awsmiddleware.GetServerTime(meta)
	if !ok {
		at = time.Now()
	}
	return written{etag: aws.ToString(etag), at: at.Truncate(time.Second)}
}

// createFrom stores c, whose SHA-256 is sum, as the object name, committed by the writer mark. It
// returns storage.ErrExists if another writer has stored one.
func (s *Store) createFrom(ctx context.Context, name, mark string, c *content, sum []byte) (written, error) {
	return s.conditionally(ctx, name, mark, func() (written, error) {
		out, err := s.put(ctx, name, mark, c, sum, true)
		if err != nil {
			return written{}, s.outcome(ctx, name, mark, err)
		}
		return answer(out.ETag, out.ResultMetadata), nil
	})
}

// compose assembles the object name from sources inside the service, committed by the writer mark.
// It returns storage.ErrExists if another writer has stored one.
func (s *Store) compose(ctx context.Context, name, mark string, sources []source) (written, error) {
	return s.conditionally(ctx, name, mark, func() (written, error) { return s.composeOnce(ctx, name, mark, sources) })
}

// conditionally repeats write while that fails with errRetryWrite.
func (s *Store) conditionally(ctx context.Context, name, mark string, write func() (written, error)) (written, error) {
	if c := s.probed.Load(); c != nil && (!c.put || !c.complete) {
		// The service ignores the condition and would overwrite, so look first. A gap remains;
		// Ready's remark says so.
		if err := s.outcome(ctx, name, mark, errRetryWrite); !errors.Is(err, errRetryWrite) {
			return s.describeWritten(ctx, name, mark, err)
		}
	}
	for n := 1; ; n++ {
		w, err := write()
		if err == nil {
			return w, nil
		}
		if errors.Is(err, errTookEffect) {
			return s.describeWritten(ctx, name, mark, err)
		}
		if !errors.Is(err, errRetryWrite) || n == writeAttempts {
			return written{}, err
		}
		select {
		case <-ctx.Done():
			return written{}, ctx.Err()
		case <-time.After(time.Duration(n) * conflictWait):
		}
	}
}

// errTookEffect says that the object exists and is from this writer, whatever the request's answer
// was.
var errTookEffect = errors.New("the write took effect")

// describeWritten describes the object after errTookEffect; it returns any other error unchanged.
func (s *Store) describeWritten(ctx context.Context, name, mark string, err error) (written, error) {
	if !errors.Is(err, errTookEffect) {
		return written{}, err
	}
	have, err := s.head(ctx, name)
	if err != nil {
		return written{}, err
	}
	if have.Metadata[markName] != mark {
		return written{}, storage.ErrExists // replaced meanwhile
	}
	return written{etag: aws.ToString(have.ETag), at: aws.ToTime(have.LastModified)}, nil
}

// outcome determines the effect of a conditional write to name, by the writer mark, that failed
// with err. It returns errTookEffect, errRetryWrite, storage.ErrExists, or err itself for any other
// error.
//
// If the answer was lost, the mark of the existing object decides. It is more precise than
// checksums: two writers of the same bytes never mistake each other's commit for their own.
func (s *Store) outcome(ctx context.Context, name, mark string, err error) error {
	have, headErr := s.head(ctx, name)
	switch {
	case headErr == nil && have.Metadata[markName] == mark:
		return errTookEffect
	case headErr == nil && (taken(err) || uploadGone(err) || conflict(err) || errors.Is(err, errRetryWrite)):
		return storage.ErrExists
	case missing(headErr) && (taken(err) || uploadGone(err) || conflict(err)):
		return fmt.Errorf("%w: %w", errRetryWrite, err)
	}
	return err
}

// composeOnce is compose with one upload.
func (s *Store) composeOnce(ctx context.Context, name, mark string, sources []source) (written, error) {
	// The service verifies the SHA-256 of each part if all are known. An object that was itself
	// assembled has no SHA-256 of the whole, and not all services compute one for a copy: then
	// their own checksum has to do.
	summed := !slices.ContainsFunc(sources, func(from source) bool { return from.bytes == nil && from.sum == nil })
	upload, err := s.beginUpload(ctx, name, mark, summed)
	if err != nil {
		return written{}, err
	}
	parts, err := s.parts(ctx, name, upload, sources, summed)
	if err == nil {
		var w written
		if w, err = s.complete(ctx, name, upload, parts); err == nil {
			return w, nil
		}
		err = s.outcome(ctx, name, mark, err)
	}
	s.abortUpload(ctx, name, upload)
	return written{}, err
}

// beginUpload starts an upload that will become the object name of the writer mark. summed says
// that its parts have SHA-256.
func (s *Store) beginUpload(ctx context.Context, name, mark string, summed bool) (*string, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	in := &s3.CreateMultipartUploadInput{Bucket: &s.at.bucket, Key: &name, Metadata: marked(mark), StorageClass: s.classOf(name)}
	if summed {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256
	}
	out, err := s.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.UploadId, nil
}

// parts uploads all parts of an upload.
func (s *Store) parts(ctx context.Context, name string, upload *string, sources []source, summed bool) ([]types.CompletedPart, error) {
	parts := make([]types.CompletedPart, len(sources))
	// If one fails, start no other and wait for the running ones. A part that the service finishes
	// after its upload was aborted would stay behind.
	group, failed := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for i, from := range sources {
		group.Go(func() error {
			if failed.Err() != nil {
				return context.Cause(failed)
			}
			var err error
			parts[i], err = s.part(ctx, name, upload, int32(i+1), from, summed)
			return err
		})
	}
	return parts, group.Wait()
}

// part uploads or copies one part.
func (s *Store) part(ctx context.Context, name string, upload *string, n int32, from source, summed bool) (types.CompletedPart, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	if from.bytes != nil {
		return s.partOfBytes(ctx, name, upload, n, from.bytes, summed)
	}
	in := &s3.UploadPartCopyInput{
		Bucket: &s.at.bucket, Key: &name, UploadId: upload, PartNumber: &n, CopySource: from.store.copySource(from.name),
	}
	if !from.whole {
		in.CopySourceRange = byteRange(from.from, from.from+from.size)
	}
	if from.etag != "" {
		in.CopySourceIfMatch = &from.etag
	}
	out, err := s.client.UploadPartCopy(ctx, in)
	if err != nil {
		return types.CompletedPart{}, err
	}
	to := types.CompletedPart{PartNumber: &n, ETag: out.CopyPartResult.ETag}
	if summed {
		to.ChecksumSHA256 = out.CopyPartResult.ChecksumSHA256
		if got := sumOf(to.ChecksumSHA256); got != nil && !bytes.Equal(got, from.sum) {
			return types.CompletedPart{}, fmt.Errorf("copy of %s differs from what was stored", from.name)
		}
	}
	return to, nil
}

// partOfBytes uploads one part from memory.
func (s *Store) partOfBytes(
	ctx context.Context, name string, upload *string, n int32, c *content, summed bool,
) (types.CompletedPart, error) {
	sum := c.sum()
	in := &s3.UploadPartInput{
		Bucket: &s.at.bucket, Key: &name, UploadId: upload, PartNumber: &n, Body: c.reader(), ContentLength: aws.Int64(int64(c.size)),
	}
	if summed {
		in.ChecksumSHA256 = base64Of(sum)
	}
	out, err := s.client.UploadPart(ctx, in, signedWith(sum))
	if err != nil {
		return types.CompletedPart{}, err
	}
	return types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumSHA256: in.ChecksumSHA256}, nil
}

// sumOf returns the SHA-256 that a service reported, or nil if it is not one of a whole object.
func sumOf(text *string) []byte {
	sum, err := base64.StdEncoding.DecodeString(aws.ToString(text))
	if err != nil || len(sum) != 32 {
		return nil
	}
	return sum
}

// complete makes an upload the object name, unless that exists.
func (s *Store) complete(ctx context.Context, name string, upload *string, parts []types.CompletedPart) (written, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	out, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.at.bucket, Key: &name, UploadId: upload, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return written{}, err
	}
	return answer(out.ETag, out.ResultMetadata), nil
}

// cleanupTime bounds the cleaning up after a call failed or was cancelled.
const cleanupTime = 20 * time.Second

// abortUpload aborts an upload that will not be completed. DeletePrefix removes what it misses.
func (s *Store) abortUpload(ctx context.Context, name string, upload *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	_, _ = s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.at.bucket, Key: &name, UploadId: upload})
}
