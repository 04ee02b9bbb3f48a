package s3

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Delete implements storage.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.check(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	name := s.name(key)
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.at.bucket, Key: &name})
	if missing(err) {
		return nil
	}
	return wrap("delete", key, err)
}

// DeletePrefix implements storage.Store. It also aborts uploads in progress.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) error {
	if err := s.check(prefix); err != nil {
		return fmt.Errorf("delete folder: %w", err)
	}
	// Leftovers first: scratch objects must not outlive the objects that they could be resumed
	// into.
	if err := s.DeleteUnfinished(ctx, prefix); err != nil {
		return err
	}
	folder := s.at.prefix + hexFolder
	for _, below := range []string{s.at.prefix + prefix + "/", folder + hexName(prefix+"/")} {
		if needsHex(below) {
			continue // no object can have such a name
		}
		if err := s.removeBelow(ctx, below); err != nil {
			return wrap("delete folder", prefix, err)
		}
	}
	return s.Delete(ctx, prefix)
}

// DeleteUnfinished implements storage.Store. It also aborts uploads in progress.
func (s *Store) DeleteUnfinished(ctx context.Context, prefix string) error {
	const what = "delete what is unfinished in"
	if err := s.check(prefix); err != nil {
		return fmt.Errorf("%s %q: %w", what, prefix, err)
	}
	for upload, err := range s.uploads(ctx, prefix) {
		if err == nil {
			err = s.abort(ctx, upload)
		}
		if err != nil {
			return wrap(what, prefix, err)
		}
	}
	return wrap(what, prefix, s.removeBelow(ctx, s.scratch(prefix)))
}

// abort aborts an upload. It is no error if the upload has ended.
func (s *Store) abort(ctx context.Context, upload types.MultipartUpload) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: &s.at.bucket, Key: upload.Key, UploadId: upload.UploadId,
	})
	if uploadGone(err) {
		return nil
	}
	return err
}

// staleAfter is the age at which an upload counts as abandoned. A running one exists during one
// commit or copy, which takes hours at most.
const staleAfter = 7 * 24 * time.Hour

// abortStale aborts all uploads below the prefix that were started before a time, by processes
// killed during a commit. They cannot be resumed, and the service charges for their parts.
func (s *Store) abortStale(ctx context.Context, before time.Time) error {
	for upload, err := range s.uploads(ctx, "") {
		if err != nil {
			return err
		}
		if upload.Initiated == nil || !upload.Initiated.Before(before) {
			continue
		}
		if err := s.abort(ctx, upload); err != nil {
			return err
		}
	}
	return nil
}

// uploads lists the uploads in progress to the object prefix, to objects below it, and to pieces of
// both; all of the store for "".
func (s *Store) uploads(ctx context.Context, prefix string) iter.Seq2[types.MultipartUpload, error] {
	var exact, below []string
	if prefix == "" {
		below = []string{s.at.prefix}
	} else {
		exact = []string{s.name(prefix)}
		below = []string{s.scratch(prefix), s.at.prefix + hexFolder + hexName(prefix+"/")}
		if !needsHex(prefix) {
			below = append(below, s.at.prefix+prefix+"/")
		}
	}
	return func(yield func(types.MultipartUpload, error) bool) {
		for _, begin := range slices.Concat(exact, below) {
			pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.at.bucket, Prefix: &begin})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					yield(types.MultipartUpload{}, err)
					return
				}
				for _, upload := range page.Uploads {
					if slices.Contains(exact, begin) && aws.ToString(upload.Key) != begin {
						continue
					}
					if !yield(upload, nil) {
						return
					}
				}
			}
		}
	}
}

// removeBelow deletes all objects whose names begin with folder.
func (s *Store) removeBelow(ctx context.Context, folder string) error {
	var names []string
	for object, err := range s.objects(ctx, folder, "") {
		if err != nil {
			return err
		}
		if names = append(names, aws.ToString(object.Key)); len(names) == removeAtOnce {
			if err := s.remove(ctx, names); err != nil {
				return err
			}
			names = names[:0]
		}
	}
	return s.remove(ctx, names)
}

// removeAtOnce is how many objects S3 deletes by one request.
const removeAtOnce = 1000

// remove deletes objects by their names in the bucket. Missing ones are no error.
func (s *Store) remove(ctx context.Context, names []string) error {
	for some := range slices.Chunk(names, removeAtOnce) {
		ids := make([]types.ObjectIdentifier, len(some))
		for i := range some {
			ids[i].Key = &some[i]
		}
		if err := s.removeSome(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) removeSome(ctx context.Context, ids []types.ObjectIdentifier) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &s.at.bucket, Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return err
	}
	for _, failed := range out.Errors {
		if aws.ToString(failed.Code) != "NoSuchKey" {
			return fmt.Errorf("%s: %s: %s", aws.ToString(failed.Key), aws.ToString(failed.Code), aws.ToString(failed.Message))
		}
	}
	return nil
}

// Leftover is data of an uncommitted writer: of a checkpoint that may still be resumed, or of a
// process that died.
type Leftover struct {
	Name   string // in the bucket
	Since  time.Time
	Size   int64 // bytes; 0 (unknown) for an upload
	Upload bool  // an upload in progress
}

// Leftovers yields the data of uncommitted writers of the object prefix and of objects below it; of
// all for "". DeletePrefix removes the same. After an error it yields nothing more.
func (s *Store) Leftovers(ctx context.Context, prefix string) iter.Seq2[Leftover, error] {
	scratch := s.at.prefix + scratchFolder
	if prefix != "" {
		scratch = s.scratch(prefix)
	}
	return func(yield func(Leftover, error) bool) {
		for upload, err := range s.uploads(ctx, prefix) {
			left := Leftover{Name: aws.ToString(upload.Key), Since: aws.ToTime(upload.Initiated), Upload: true}
			if !yield(left, wrap("list leftovers", prefix, err)) || err != nil {
				return
			}
		}
		for object, err := range s.objects(ctx, scratch, "") {
			left := Leftover{Name: aws.ToString(object.Key), Since: aws.ToTime(object.LastModified), Size: aws.ToInt64(object.Size)}
			if !yield(left, wrap("list leftovers", prefix, err)) || err != nil {
				return
			}
		}
	}
}
