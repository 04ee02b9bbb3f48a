package s3

import (
	"fmt"
	"strconv"
	"strings"
)

// Sizes of parts and pieces. S3 requires at least 5 MiB for every part of an upload except the
// last, at most 5 GiB, and at most 10,000 parts.
const (
	minPart = 5 << 20
	// defaultPiece is how much a writer collects in memory before it stores a piece. It limits what
	// a resumed transfer repeats, and the memory of a worker. Two of these and one least part are
	// 16 MiB, the distance of a download's checkpoints.
	defaultPiece = 11 << 19
	// defaultMerge is how many pieces accumulate before they are merged into one, so that objects
	// of any size need few parts.
	defaultMerge = 2_000
	// manyRanges limits the number of parts of an object's large pieces. With the small ones, and
	// one more for each large one, there are fewer than 10,000.
	manyRanges = 7_000
	// defaultRange is the least size of a copied part of a large source; several are copied
	// concurrently.
	defaultRange = 128 << 20
)

// rangeOf returns how much of a source is copied as one part of an object of size bytes.
func (s *Store) rangeOf(size int64) int64 { return max(s.leastRange, size/manyRanges) }

// piece is a part of an uncommitted object's content, stored as an object in the scratch folder. If
// two begin at the same offset, the longer one begins with the bytes of the shorter.
type piece struct {
	at, size int64
	sum      []byte // SHA-256; nil if unknown
}

// end returns the offset after the piece.
func (p *piece) end() int64 { return p.at + p.size }

// base returns the last part of the piece's name.
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

// cover selects pieces that contain the first size bytes. It returns false if there are none.
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
