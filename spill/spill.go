// Package spill stores records that are written once and read in order: a few in memory, many in a
// temporary file. Lists of any length can thus be joined in bounded memory. The package does not
// know what a record is.
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
	// chunk is how many bytes a Log collects before it stores them.
	chunk = 32 << 10
	// inMemory is how many bytes of stored chunks a Space keeps in memory.
	inMemory = 4 << 20
)

// ErrFull means that the records of a Space exceed its limit.
var ErrFull = errors.New("too many records")

// Space stores the records of Logs. Its methods may be called concurrently.
//
// The temporary file has no name in its folder, so it disappears with the process or the Space.
type Space struct {
	limit  int64
	folder string

	mu     sync.Mutex
	file   *os.File // nil while everything is in memory
	held   int      // bytes of chunks in memory
	end    int64    // of the file
	total  int64    // bytes of records
	failed error    // the first error
}

// NewSpace returns a Space for records of at most limit bytes in total. Its temporary file is in
// folder; "" is os.TempDir.
func NewSpace(folder string, limit int64) *Space { return &Space{folder: folder, limit: limit} }

// Err returns the first error of any Log: ErrFull, or an error of the temporary file. After an
// error nothing more is stored.
func (s *Space) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Close closes the file. Afterwards Logs store nothing more, and records in the file cannot be
// read. A second call does nothing.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = fmt.Errorf("store records: %w", os.ErrClosed)
	}
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// put stores a copy of a chunk.
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
		s.failed = fmt.Errorf("store records: %w", err)
		return extent{}, false
	}
	return extent{at: at, size: int64(len(b))}, true
}

func (s *Space) write(b []byte) (at int64, err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.folder, "holdfast-*"); err != nil {
			return 0, err
		}
		_ = os.Remove(s.file.Name()) // if an open file cannot be removed, its folder is one that is cleared
	}
	at = s.end
	_, err = s.file.WriteAt(b, at)
	s.end += int64(len(b))
	return at, err
}

// count adds to the total of bytes. It returns false if the Space is full or has failed.
func (s *Space) count(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total += int64(n); s.total > s.limit && s.failed == nil {
		s.failed = ErrFull
	}
	return s.failed == nil
}

// extent is a stored chunk.
type extent struct {
	bytes []byte // in memory; nil for one in the file
	at    int64
	size  int64
}

// Log is a sequence of records. It is not safe for concurrent use. The zero value cannot be used.
type Log struct {
	space   *Space
	tail    []byte
	extents []extent
	records int64
}

// NewLog returns an empty Log.
func (s *Space) NewLog() *Log { return &Log{space: s} }

// Len returns the number of records.
func (l *Log) Len() int64 { return l.records }

// Append adds a copy of a record. It returns false if the Space has failed; Err says why.
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

// Flush stores what was collected, so that an idle Log takes little memory. It returns false if the
// Space has failed; Err says why.
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
// next one. If the file cannot be read, it ends early, and Err of the Space says why.
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
				l.space.fail(fmt.Errorf("read stored records: %w", err))
				return
			}
			if !yield(buf) {
				return
			}
		}
	}
}

// fail records that records cannot be read. It replaces ErrFull, which is less severe.
func (s *Space) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || errors.Is(s.failed, ErrFull) {
		s.failed = err
	}
}
