package s3

import (
	"context"
	"time"
)

// OpenImpatient is Open with next to no waiting between the repeats of a request.
func OpenImpatient(ctx context.Context, address string) (*Store, error) {
	return open(ctx, address, time.Millisecond)
}

// CutSmall has s make small pieces, and merge them when there are mergeAt.
func (s *Store) CutSmall(mergeAt int) { s.piece, s.mergeAt = minPart, mergeAt }

// CopySmall has s copy inside the service in parts of about size bytes, as it does with large
// objects.
func (s *Store) CopySmall(size int64) { s.leastRange = size }

// AbortStale has s abort uploads that were begun before a time.
func (s *Store) AbortStale(ctx context.Context, before time.Time) error {
	return s.abortStale(ctx, before)
}

// Names of the parts of a bucket, and their inverse.
var (
	HexName = hexName
	OddKey  = hexKey
)

// Parts is how many parts an object of size bytes is put together of.
func Parts(size int64) int {
	w := &writer{store: &Store{leastRange: defaultRange}}
	for at := int64(0); at < size; {
		if len(w.pieces)-w.merged == defaultMerge {
			one := &piece{at: w.pieces[w.merged].at}
			one.size = at - one.at
			w.pieces = append(w.pieces[:w.merged:w.merged], one)
			w.merged++
		}
		p := &piece{at: at, size: min(defaultPiece, size-at)}
		w.pieces = append(w.pieces, p)
		at = p.end()
	}
	return len(w.sources(w.pieces)) + 1
}
