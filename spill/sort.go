package spill

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"iter"
	"slices"
)

// sortedAtOnce is how many bytes of records a Sorter sorts in memory.
const sortedAtOnce = 2 << 20

// Sorter yields records in the order of their keys. Records of equal keys stay in the order in
// which they were added. It is not safe for concurrent use. The zero value cannot be used.
//
// A Sorter of few records takes as much memory as they have bytes. One of any number takes 2 MiB,
// and 32 KiB more for each 2 MiB of records while they are read.
type Sorter struct {
	space   *Space
	compare func(a, b []byte) int
	buf     []byte
	at      []int // where each record of buf begins
	sorted  bool  // at is in order
	runs    []*Log
}

// NewSorter returns a Sorter without records. compare compares two keys; nil means by their bytes.
func (s *Space) NewSorter(compare func(a, b []byte) int) *Sorter {
	if compare == nil {
		compare = bytes.Compare
	}
	return &Sorter{space: s, compare: compare}
}

// Add adds a copy of a record. It returns false if the Space has failed; Err says why.
func (s *Sorter) Add(key, value []byte) bool {
	s.sorted = false
	s.at = append(s.at, len(s.buf))
	s.buf = binary.AppendUvarint(s.buf, uint64(len(key)+len(value)))
	s.buf = binary.AppendUvarint(s.buf, uint64(len(key)))
	s.buf = append(append(s.buf, key...), value...)
	return len(s.buf) < sortedAtOnce || s.flush()
}

// record returns the record of buf that begins at a place, with its key's length before it.
func (s *Sorter) record(at int) []byte {
	size, n := binary.Uvarint(s.buf[at:])
	at += n
	_, n = binary.Uvarint(s.buf[at:])
	return s.buf[at : at+n+int(size)] //nolint:gosec // a length that Add wrote
}

// cut returns the key and the value of a record.
func cut(record []byte) (key, value []byte) {
	size, n := binary.Uvarint(record)
	return record[n : n+int(size)], record[n+int(size):] //nolint:gosec // a length that Add wrote
}

// order sorts the records in memory.
func (s *Sorter) order() {
	if s.sorted {
		return
	}
	slices.SortStableFunc(s.at, func(a, b int) int {
		x, _ := cut(s.record(a))
		y, _ := cut(s.record(b))
		return s.compare(x, y)
	})
	s.sorted = true
}

// flush makes the records in memory a sorted run in the Space.
func (s *Sorter) flush() bool {
	s.order()
	run := s.space.NewLog()
	for _, at := range s.at {
		if !run.Append(s.record(at)) {
			return false
		}
	}
	s.runs = append(s.runs, run)
	s.buf, s.at = s.buf[:0], s.at[:0]
	return run.Flush()
}

// Sorted yields the keys and values of all records, in order. They are valid until the next one.
// It may be called again, also while an earlier sequence is read. If the Space has failed, it ends
// early, and Err of the Space says why.
func (s *Sorter) Sorted() iter.Seq2[[]byte, []byte] {
	if len(s.runs) > 0 && len(s.at) > 0 {
		s.flush()
	}
	if len(s.runs) > 0 {
		s.buf, s.at = nil, nil
		return s.merged
	}
	s.order()
	return func(yield func(key, value []byte) bool) {
		for _, at := range s.at {
			if !yield(cut(s.record(at))) {
				return
			}
		}
	}
}

// merged yields the records of all runs in order.
func (s *Sorter) merged(yield func(key, value []byte) bool) {
	m := merge{compare: s.compare}
	for i, run := range s.runs {
		next, stop := iter.Pull(run.Records())
		defer stop()
		if record, ok := next(); ok {
			key, _ := cut(record)
			m.heads = append(m.heads, head{number: i, key: key, record: record, next: next})
		}
	}
	heap.Init(&m)
	for len(m.heads) > 0 && s.space.Err() == nil {
		first := &m.heads[0]
		if !yield(cut(first.record)) {
			return
		}
		record, ok := first.next()
		if !ok {
			heap.Pop(&m)
			continue
		}
		first.record = record
		first.key, _ = cut(record)
		heap.Fix(&m, 0)
	}
}

// merge is a heap of runs by their next record.
type merge struct {
	compare func(a, b []byte) int
	heads   []head
}

// head is the next record of a run.
type head struct {
	number      int // of the run
	key, record []byte
	next        func() ([]byte, bool)
}

// Len implements heap.Interface.
func (m *merge) Len() int { return len(m.heads) }

// Less implements heap.Interface.
func (m *merge) Less(i, j int) bool {
	a, b := &m.heads[i], &m.heads[j]
	if c := m.compare(a.key, b.key); c != 0 {
		return c < 0
	}
	return a.number < b.number
}

// Swap implements heap.Interface.
func (m *merge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }

// Push implements heap.Interface.
func (m *merge) Push(x any) { m.heads = append(m.heads, x.(head)) } //nolint:forcetypeassert // only heads

// Pop implements heap.Interface.
func (m *merge) Pop() any {
	last := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return last
}
