package s3

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/holdfast/holdfast/storage"
)

var _ storage.AfterLister = (*Store)(nil)

// List implements storage.Store. It merges two ordered listings: of the objects under their own
// keys, and of those under hexadecimal names.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return s.ListAfter(ctx, prefix, "")
}

// ListAfter implements storage.AfterLister. The service starts after the key.
func (s *Store) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[storage.Info, error] {
	if s.asFound {
		return s.listPlain(ctx, prefix, after)
	}
	return func(yield func(storage.Info, error) bool) {
		odds, stop := iter.Pull2(s.listHex(ctx, prefix, after))
		defer stop()
		odd, oddErr, more := odds()
		// before yields the hexadecimal names' keys up to key, and reports whether to continue.
		before := func(key string, all bool) bool {
			for more && (all || oddErr != nil || odd.Key < key) {
				if !yield(odd, wrap("list", prefix, oddErr)) || oddErr != nil {
					return false
				}
				odd, oddErr, more = odds()
			}
			return true
		}
		for info, err := range s.listPlain(ctx, prefix, after) {
			if err != nil {
				yield(storage.Info{}, wrap("list", prefix, err))
				return
			}
			if !before(info.Key, false) || !yield(info, nil) {
				return
			}
		}
		before("", true)
	}
}

// listPlain lists the objects under their own keys after a key.
func (s *Store) listPlain(ctx context.Context, prefix, after string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		// A prefix may end inside a character; the requested prefix ends before it.
		start := ""
		if after != "" {
			start = s.at.prefix + sendable(after)
		}
		for object, err := range s.objects(ctx, s.at.prefix+sendable(prefix), start) {
			key := strings.TrimPrefix(aws.ToString(object.Key), s.at.prefix)
			switch {
			case err != nil:
				yield(storage.Info{}, err)
				return
			case !strings.HasPrefix(key, prefix) || after != "" && key <= after || s.check(key) != nil:
				continue // the store's own, or not made by it
			case !yield(infoOf(key, object), nil):
				return
			}
		}
	}
}

// sendable returns the longest beginning of prefix that a request can contain.
func sendable(prefix string) string {
	for i, r := range prefix {
		if r == utf8.RuneError || needsHex(string(r)) {
			return prefix[:i]
		}
	}
	return prefix
}

// listHex lists the objects under hexadecimal names after a key.
func (s *Store) listHex(ctx context.Context, prefix, after string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		folder := s.at.prefix + hexFolder
		start := ""
		if after != "" {
			start = folder + hexName(after)
		}
		for object, err := range s.objects(ctx, folder+hexName(prefix), start) {
			if err != nil {
				yield(storage.Info{}, err)
				return
			}
			key, ok := hexKey(strings.TrimPrefix(aws.ToString(object.Key), folder))
			if ok && !yield(infoOf(key, object), nil) {
				return
			}
		}
	}
}

func infoOf(key string, object types.Object) storage.Info {
	return storage.Info{
		Key: key, Size: aws.ToInt64(object.Size), Modified: aws.ToTime(object.LastModified), ETag: aws.ToString(object.ETag),
	}
}

// objects lists the bucket's objects whose names begin with prefix, after the name after if that is
// not "".
func (s *Store) objects(ctx context.Context, prefix, after string) iter.Seq2[types.Object, error] {
	return func(yield func(types.Object, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &s.at.bucket, Prefix: &prefix}
		if after != "" {
			in.StartAfter = &after
		}
		pages := s3.NewListObjectsV2Paginator(s.client, in)
		for pages.HasMorePages() {
			page, err := s.page(ctx, pages)
			if err != nil {
				yield(types.Object{}, err)
				return
			}
			for _, object := range page.Contents {
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) page(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return pages.NextPage(ctx)
}
