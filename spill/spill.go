// Package spill keeps records that are written once and read in order: in memory while they are
// few, in a temporary file when they are many. So lists of any length can be joined in bounded
// memory.
package spill

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
)

const (
	// chunk is how many bytes a Log gathers before it puts them away.
	chunk = 32 << 10
	// inMemory is how many bytes of put-away chunks a Space keeps in memory.
	inMemory = 4 << 20
)

// ErrFull means that the records of a Space take more bytes than its limit.
var ErrFull = errors.New("too many records")

// Space is where Logs put their records. Its methods may be called concurrently.
//
// The temporary file has no name in its folder, so it goes with the process, or with the Space.
type Space struct {
	limit  int64
	folder string

	mu     sync.Mutex
	file   *os.File // nil while all is in memory
	held   int      // bytes of chunks in memory
	end    int64    // of the file
	total  int64    // bytes of records
	failed error    // the first error
}

// NewSpace returns a Space for records of at most limit bytes in all. Its temporary file lies in
// folder; "" is the one that os.TempDir names.
func NewSpace(folder string, limit int64) *Space { return &Space{folder: folder, limit: limit} }

// Err returns the first error of any Log: ErrFull, or one of the temporary file. After it nothing
// more is kept.
func (s *Space) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Close gives the file back. Logs keep nothing more afterwards, and what lay in the file cannot be
// read. A second call does nothing.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = fmt.Errorf("keep records aside: %w", os.ErrClosed)
	}
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// put keeps a chunk. It takes the bytes over.
func (s *Space) put(b []byte) (extent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return extent{}, false
	}
	if s.file == nil && s.held+len(b) <= inMemory {
		s.held += len(b)
		return extent{bytes: bytes.Clone(b)}, true
	}
	at, err := s.write(b)
	if err != nil {
		s.failed = fmt.Errorf("keep records aside: %w", err)
		return extent{}, false
	}
	return extent{at: at, size: int64(len(b))}, true
}

func (s *Space) write(b []byte) (at int64, err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.folder, "holdfast-*"); err != nil {
			return 0, err
		}
		_ = os.Remove(s.file.Name()) // where an open file cannot be removed, its folder is one that is cleared
	}
	at = s.end
	_, err = s.file.WriteAt(b, at)
	s.end += int64(len(b))
	return at, err
}

// count adds to the bytes of all records. False when there are too many.
func (s *Space) count(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total += int64(n); s.total > s.limit && s.failed == nil {
		s.failed = ErrFull
	}
	return s.failed == nil
}

// extent is a chunk that was put away.
type extent struct {
	bytes []byte // in memory; nil for one in the file
	at    int64
	size  int64
}

// Log is a sequence of records. It is not safe for concurrent use. The zero value belongs to no
// Space and cannot be used.
type Log struct {
	space   *Space
	tail    []byte
	extents []extent
	records int64
}

// NewLog returns an empty Log.
func (s *Space) NewLog() *Log { return &Log{space: s} }

// Len is the number of records.
func (l *Log) Len() int64 { return l.records }

// Append adds a record, which is copied. It returns false when the Space has failed; Err says why.
func (l *Log) Append(record []byte) bool {
	if !l.space.count(len(record) + 2) {
		return false
	}
	l.tail = binary.AppendUvarint(l.tail, uint64(len(record)))
	l.tail = append(l.tail, record...)
	l.records++
	if len(l.tail) < chunk {
		return true
	}
	if !l.putTail() {
		return false
	}
	l.tail = l.tail[:0]
	if cap(l.tail) > 2*chunk { // after a long record
		l.tail = nil
	}
	return true
}

// Flush puts away what was gathered, so that a Log to which nothing is added for now takes nearly
// no memory. It returns false when the Space has failed; Err says why.
func (l *Log) Flush() bool {
	if len(l.tail) > 0 && !l.putTail() {
		return false
	}
	l.tail = nil
	return true
}

func (l *Log) putTail() bool {
	e, ok := l.space.put(l.tail)
	if ok {
		l.extents = append(l.extents, e)
	}
	return ok
}

// Records yields the records in the order in which they were added. A record is valid until the
// next one. When the file cannot be read, it ends early, and Err of the Space says why.
func (l *Log) Records() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		readers := make([]io.Reader, 0, len(l.extents)+1)
		for _, e := range l.extents {
			if e.bytes != nil {
				readers = append(readers, bytes.NewReader(e.bytes))
			} else {
				readers = append(readers, io.NewSectionReader(l.space.file, e.at, e.size))
			}
		}
		readers = append(readers, bytes.NewReader(l.tail))
		r := bufio.NewReaderSize(io.MultiReader(readers...), chunk)
		var buf []byte
		for range l.records {
			n, err := binary.ReadUvarint(r)
			if err == nil {
				if uint64(cap(buf)) < n {
					buf = make([]byte, n)
				}
				buf = buf[:n]
				_, err = io.ReadFull(r, buf)
			}
			if err != nil {
				l.space.fail(fmt.Errorf("read records that were kept aside: %w", err))
				return
			}
			if !yield(buf) {
				return
			}
		}
	}
}

// fail notes that records cannot be read, which is worse than that there is no room for more.
func (s *Space) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || errors.Is(s.failed, ErrFull) {
		s.failed = err
	}
}
