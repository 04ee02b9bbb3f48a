package signin

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestLimiter_BoundedMemory(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	refused := 0
	for i := range 3 * countersAtMost {
		if l.take(now, map[string]int{fmt.Sprint(i): failuresEach}) != nil {
			refused++
		}
	}
	if len(l.counts) > countersAtMost+1 {
		t.Errorf("%d counters, want at most %d", len(l.counts), countersAtMost+1)
	}
	if want := 2*countersAtMost - attemptsOthers; refused != want {
		t.Errorf("%d refused, want %d: all that there is no room for share one counter", refused, want)
	}
	if err := l.take(now.Add(attemptsFor), map[string]int{"one more": 1}); err != nil || len(l.counts) != 1 {
		t.Errorf("a minute later: %v, %d counters", err, len(l.counts))
	}
}

// One key that is full refuses without counting under the others.
func TestLimiter_AllOrNone(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	both := map[string]int{"address": 3, "token": 5}
	for range 3 {
		if err := l.take(now, both); err != nil {
			t.Fatal(err)
		}
	}
	var many *TooManyError
	if err := l.take(now.Add(20*time.Second), both); !errors.As(err, &many) || many.After != 40*time.Second {
		t.Errorf("%v, want to wait 40 s", err)
	}
	for range 2 {
		if err := l.take(now, map[string]int{"token": 5}); err != nil {
			t.Error(err)
		}
	}
	if l.take(now, map[string]int{"token": 5}) == nil {
		t.Error("a sixth attempt with a token")
	}
	l.giveBack("token", "unknown")
	if err := l.take(now, map[string]int{"token": 5}); err != nil {
		t.Errorf("one that succeeded counts: %v", err)
	}
}

func TestHost(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "pipe": "pipe", "": "",
	} {
		if got := host(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}
