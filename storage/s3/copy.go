package s3

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast/holdfast/storage"
)

// smallCopy is the largest size that is copied through this process, with two requests. A
// create-only copy inside the service takes three, since only an assembled object is create-only
// everywhere.
const smallCopy = 1 << 20

// CopyFrom implements storage.Copier between buckets of one endpoint and region. This store's
// credentials must be allowed to read both.
func (s *Store) CopyFrom(ctx context.Context, dstKey string, src storage.Store, srcKey string) (storage.Info, error) {
	from, ok := src.(*Store)
	if !ok || from.at.endpoint != s.at.endpoint || from.region() != s.region() {
		return storage.Info{}, fmt.Errorf("copy %q: %w", dstKey, errors.ErrUnsupported)
	}
	if err := s.check(dstKey); err != nil {
		return storage.Info{}, fmt.Errorf("copy: %w", err)
	}
	if err := from.check(srcKey); err != nil {
		return storage.Info{}, fmt.Errorf("copy: %w", err)
	}
	srcName, dstName, mark := from.name(srcKey), s.name(dstKey), newID()
	var c content
	defer c.release()
	size, etag, err := from.readSmall(ctx, srcName, &c)
	if err != nil {
		return storage.Info{}, wrap("copy", srcKey, err)
	}
	var done written
	if size == int64(c.size) {
		done, err = s.createFrom(ctx, dstName, mark, &c, c.sum())
	} else {
		done, err = s.compose(ctx, dstName, mark, source{store: from, name: srcName, etag: etag, size: size, whole: true}.cut(s.rangeOf(size)))
	}
	if err != nil {
		return storage.Info{}, wrap("copy", dstKey, err)
	}
	return storage.Info{Key: dstKey, Size: size, Modified: done.at, ETag: done.etag}, nil
}

// readSmall returns the size and ETag of the object name, and reads it into c if it is small.
func (s *Store) readSmall(ctx context.Context, name string, c *content) (size int64, etag string, err error) {
	have, err := s.head(ctx, name)
	if err != nil {
		return 0, "", err
	}
	size, etag = aws.ToInt64(have.ContentLength), aws.ToString(have.ETag)
	if size > smallCopy {
		return size, etag, nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.at.bucket, Key: &name, IfMatch: &etag})
	if err != nil {
		return 0, "", err
	}
	defer out.Body.Close()
	if n, err := io.Copy(c, out.Body); err != nil || n != size {
		return 0, "", errors.Join(err, io.ErrUnexpectedEOF)
	}
	return size, etag, nil
}

// Replace implements storage.Store. A PutObject is atomic.
func (s *Store) Replace(ctx context.Context, key string, data []byte) error {
	if err := s.check(key); err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	var c content
	defer c.release()
	_, _ = c.Write(data)
	_, err := s.put(ctx, s.name(key), newID(), &c, c.sum(), false)
	return wrap("replace", key, err)
}

// ReplaceFrom implements storage.Replacer.
func (s *Store) ReplaceFrom(ctx context.Context, key, srcKey string) error {
	for _, k := range []string{key, srcKey} {
		if err := s.check(k); err != nil {
			return fmt.Errorf("replace: %w", err)
		}
	}
	_, err := s.copyWhole(ctx, source{store: s, name: s.name(srcKey)}, s.name(key), newID())
	return wrap("replace", key, err)
}
