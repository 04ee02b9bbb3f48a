package spill_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/spill"
)

// Several logs of one space return their own records, however long and many they are.
func TestLog_GivesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := spill.NewSpace(t.TempDir(), 1<<30)
		logs := []*spill.Log{s.NewLog(), s.NewLog(), s.NewLog()}
		want := make([][][]byte, len(logs))
		for range rapid.IntRange(0, 60).Draw(rt, "records") {
			at := rapid.IntRange(0, len(logs)-1).Draw(rt, "log")
			record := bytes.Repeat([]byte{byte(len(want[at]))}, rapid.SampledFrom([]int{0, 1, 100, 30_000, 200_000}).Draw(rt, "length"))
			if !logs[at].Append(record) {
				rt.Fatal(s.Err())
			}
			want[at] = append(want[at], record)
			if rapid.Bool().Draw(rt, "flush") && !logs[at].Flush() {
				rt.Fatal(s.Err())
			}
		}
		for range 2 { // they can be read again
			for i, l := range logs {
				n := 0
				for got := range l.Records() {
					if !bytes.Equal(got, want[i][n]) {
						rt.Fatalf("record %d of log %d has %d bytes, want %d", n, i, len(got), len(want[i][n]))
					}
					n++
				}
				if n != len(want[i]) || l.Len() != int64(n) || s.Err() != nil {
					rt.Fatalf("%d records of %d, %v", n, len(want[i]), s.Err())
				}
			}
		}
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestSpace_Limit(t *testing.T) {
	s := spill.NewSpace(t.TempDir(), 1000)
	l, kept := s.NewLog(), 0
	for range 100 {
		if l.Append(make([]byte, 50)) {
			kept++
		}
	}
	if kept != 19 || !errors.Is(s.Err(), spill.ErrFull) {
		t.Errorf("%d records kept, %v; want 19 and ErrFull", kept, s.Err())
	}
}

// A failing temporary file is a system error, and leaves no file behind.
func TestSpace_NoFolder(t *testing.T) {
	folder := t.TempDir()
	s := spill.NewSpace(folder+"/none", 1<<30)
	l := s.NewLog()
	for l.Append(make([]byte, 100_000)) {
	}
	if err := s.Err(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is no such folder", err)
	}
	s = spill.NewSpace(folder, 1<<30)
	l = s.NewLog()
	for range 100 {
		if !l.Append(make([]byte, 100_000)) {
			t.Fatal(s.Err())
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left %v (%v), want no name", left, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range l.Records() {
	}
	if s.Err() == nil {
		t.Error("a closed space can be read")
	}
}
