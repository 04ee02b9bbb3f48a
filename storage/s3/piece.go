package s3

import (
	"fmt"
	"strconv"
	"strings"
)

// How a large object is cut. S3 wants every part of an upload but the last to have 5 MiB, at most
// 10,000 of them, and at most 5 GiB in each.
const (
	minPart = 5 << 20
	// defaultPiece is what a writer gathers in memory before it stores it: what a resumed transfer
	// repeats at most, and what a worker's memory is counted in. Two of these and a least part are
	// 16 MiB, which is where downloads make their checkpoints.
	defaultPiece = 11 << 19
	// defaultMerge is how many pieces gather before they are made one, so that objects of any size
	// need few parts.
	defaultMerge = 2_000
	// manyRanges is into how many parts the large pieces of an object are cut at most. With the
	// small ones, and one more for each large one, there are less than 10,000.
	manyRanges = 7_000
	// defaultRange is how much of a large source is copied as one part, or more: several are copied
	// at once.
	defaultRange = 128 << 20
)

// rangeOf is how much of a source is copied as one part of an object of size bytes.
func (s *Store) rangeOf(size int64) int64 { return max(s.leastRange, size/manyRanges) }

// piece is a part of the content of an uncommitted object, and an object in the scratch folder
// itself. Of two that begin at the same offset, the longer one begins with the bytes of the
// shorter.
type piece struct {
	at, size int64
	sum      []byte // SHA-256, where known
}

// end is the offset after the piece.
func (p *piece) end() int64 { return p.at + p.size }

// base is the last part of the piece's name.
func (p *piece) base() string { return fmt.Sprintf("%016x-%x", p.at, p.size) }

// parsePiece is the inverse of base.
func parsePiece(base string) (piece, bool) {
	at, size, ok := strings.Cut(base, "-")
	if !ok {
		return piece{}, false
	}
	p := piece{}
	var errAt, errSize error
	p.at, errAt = strconv.ParseInt(at, 16, 64)
	p.size, errSize = strconv.ParseInt(size, 16, 64)
	return p, errAt == nil && errSize == nil && p.base() == base
}

// cover chooses those of pieces that hold the first size bytes; it is false when they do not.
func cover(pieces []piece, size int64) ([]piece, bool) {
	longest := make(map[int64]piece, len(pieces))
	for _, p := range pieces {
		if p.size > longest[p.at].size {
			longest[p.at] = p
		}
	}
	var chosen []piece
	for at := int64(0); at < size; {
		next, ok := longest[at]
		if !ok {
			return nil, false
		}
		chosen = append(chosen, next)
		at = next.end()
	}
	return chosen, true
}
