package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// Resume implements storage.Store. It copies the predecessor's pieces, or the object made of them,
// inside the service. It reads a rest of less than 5 MiB, which is too small for a copy.
func (s *Store) Resume(ctx context.Context, key string, cp storage.Checkpoint) (storage.Writer, error) {
	from, err := parseToken(cp.Token)
	if err != nil {
		return nil, fmt.Errorf("resume %q: %w", key, err)
	}
	w, err := s.create(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := w.adopt(ctx, from, cp.Size); err != nil {
		return nil, errors.Join(wrap("resume", key, err), w.discard())
	}
	return w, nil
}

// adopt takes over the first size bytes of another writer.
func (w *writer) adopt(ctx context.Context, from token, size int64) error {
	err := w.adoptOnce(ctx, from, size)
	if errors.Is(err, storage.ErrNotFound) || missing(err) {
		// The predecessor may be alive, and have just committed or merged.
		if err := w.dropAdopted(); err != nil {
			return err
		}
		err = w.adoptOnce(ctx, from, size)
	}
	return err
}

// dropAdopted undoes an incomplete adoption.
func (w *writer) dropAdopted() error {
	err := w.remove(w.names(w.pieces))
	w.pieces = nil
	w.gathered.release()
	return err
}

func (w *writer) adoptOnce(ctx context.Context, from token, size int64) error {
	pieces, err := w.store.piecesOf(ctx, from)
	if err != nil {
		return err
	}
	dir := w.store.scratch(from.key) + from.id + "/"
	if chosen, ok := cover(pieces, size); ok && size >= 0 {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(copiesAtOnce)
		var last *source
		for _, p := range chosen {
			n := min(p.size, size-p.at)
			src := source{store: w.store, name: dir + p.base(), size: n, whole: n == p.size}
			if n < int64(w.store.minPart) {
				last = &src // only the last one is so small
				break
			}
			w.adoptSource(group, groupCtx, p.at, src)
		}
		if err := group.Wait(); err != nil || last == nil {
			return err
		}
		return w.read(ctx, *last)
	}
	return w.adoptCommitted(ctx, from, size)
}

// adoptCommitted takes over the beginning of an object that another writer committed.
func (w *writer) adoptCommitted(ctx context.Context, from token, size int64) error {
	name := w.store.name(from.key)
	have, err := w.store.head(ctx, name)
	if err != nil {
		return err
	}
	if have.Metadata[markName] != from.id || aws.ToInt64(have.ContentLength) < size || size < 0 {
		return storage.ErrNotFound
	}
	src := source{store: w.store, name: name, etag: aws.ToString(have.ETag), size: size, whole: size == aws.ToInt64(have.ContentLength)}
	if size < int64(w.store.minPart) {
		return w.read(ctx, src)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	w.adoptSource(group, groupCtx, 0, src)
	return group.Wait()
}

// adoptSource makes src the next piece.
func (w *writer) adoptSource(group *errgroup.Group, ctx context.Context, at int64, src source) { //nolint:revive // the group's own context
	p := &piece{at: at, size: src.size}
	w.pieces = append(w.pieces, p)
	group.Go(func() error {
		name := w.dir + p.base()
		if err := checkLength(w.key, name); err != nil {
			return err
		}
		if src.whole && src.size <= w.store.leastRange {
			var err error
			p.sum, err = w.store.copyWhole(ctx, src, name, w.id)
			return err
		}
		_, err := w.store.compose(ctx, name, w.id, src.cut(w.store.rangeOf(src.size)))
		return err
	})
}

// read reads the bytes of src into memory.
func (w *writer) read(ctx context.Context, src source) error {
	if src.size == 0 {
		return nil
	}
	in := &s3.GetObjectInput{Bucket: &w.store.at.bucket, Key: &src.name, Range: byteRange(0, src.size)}
	if src.etag != "" {
		in.IfMatch = &src.etag
	}
	out, err := w.store.client.GetObject(ctx, in)
	if err != nil {
		return err
	}
	defer out.Body.Close()
	n, err := io.Copy(&w.gathered, io.LimitReader(out.Body, src.size))
	if err == nil && n != src.size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// piecesOf lists the pieces of a writer.
func (s *Store) piecesOf(ctx context.Context, from token) ([]piece, error) {
	dir := s.scratch(from.key) + from.id + "/"
	var pieces []piece
	for object, err := range s.objects(ctx, dir, "") {
		if err != nil {
			return nil, err
		}
		// Skip foreign objects, and those whose size differs from their name.
		p, ok := parsePiece(strings.TrimPrefix(aws.ToString(object.Key), dir))
		if ok && p.size == aws.ToInt64(object.Size) {
			pieces = append(pieces, p)
		}
	}
	return pieces, nil
}

// copyWhole copies an object of at most 5 GiB and overwrites the destination. It returns the
// SHA-256 if the service reports it.
func (s *Store) copyWhole(ctx context.Context, src source, to, mark string) ([]byte, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	in := &s3.CopyObjectInput{
		Bucket: &s.at.bucket, Key: &to, CopySource: src.store.copySource(src.name),
		MetadataDirective: types.MetadataDirectiveReplace, Metadata: marked(mark), ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	}
	if src.etag != "" {
		in.CopySourceIfMatch = &src.etag
	}
	out, err := s.client.CopyObject(ctx, in)
	if err != nil {
		return nil, err
	}
	return sumOf(out.CopyObjectResult.ChecksumSHA256), nil
}
