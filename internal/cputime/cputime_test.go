package cputime

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	s, ok := parse("42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 8 0 100 1 2")
	want := Process{name: "a) b (c", parent: 7, CPU: 2 * time.Second, ended: 300 * time.Millisecond}
	if !ok || s != want {
		t.Errorf("read %+v, %t, want %+v", s, ok, want)
	}
	for _, text := range []string{"", "42", "42 (a) S 7 1"} {
		if s, ok := parse(text); ok {
			t.Errorf("%q was read as %+v", text, s)
		}
	}
}
