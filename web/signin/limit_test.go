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
		if _, err := l.take(now, map[string]int{fmt.Sprint(i): failuresEach}); err != nil {
			refused++
		}
	}
	if len(l.counts) > countersAtMost+1 {
		t.Errorf("%d counters, want at most %d", len(l.counts), countersAtMost+1)
	}
	if want := 2*countersAtMost - attemptsOthers; refused != want {
		t.Errorf("%d refused, want %d: all that there is no room for share one counter", refused, want)
	}
	if _, err := l.take(now.Add(attemptsFor), map[string]int{"one more": 1}); err != nil || len(l.counts) != 1 {
		t.Errorf("a minute later: %v, %d counters", err, len(l.counts))
	}
}

// TestLimiter_AllOrNone checks that an attempt with one full key counts under no other key.
func TestLimiter_AllOrNone(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	both := map[string]int{"address": 3, "token": 5}
	for range 3 {
		if _, err := l.take(now, both); err != nil {
			t.Fatal(err)
		}
	}
	var many *TooManyError
	if _, err := l.take(now.Add(20*time.Second), both); !errors.As(err, &many) || many.After != 40*time.Second {
		t.Errorf("%v, want to wait 40 s", err)
	}
	var last taken
	for range 2 {
		var err error
		if last, err = l.take(now, map[string]int{"token": 5}); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.take(now, map[string]int{"token": 5}); err == nil {
		t.Error("a sixth attempt with a token")
	}
	l.giveBack(last, map[string]int{"token": 5, "unknown": 5})
	if _, err := l.take(now, map[string]int{"token": 5}); err != nil {
		t.Errorf("one that succeeded counts: %v", err)
	}
}

// TestLimiter_GiveBack checks that a success is uncounted where and when it was counted, or not at
// all.
func TestLimiter_GiveBack(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	for i := range countersAtMost {
		if _, err := l.take(now, map[string]int{fmt.Sprint(i): failuresEach}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * attemptsOthers {
		key := fmt.Sprint("further ", i)
		attempt, err := l.take(now, map[string]int{key: failuresEach})
		if err != nil {
			t.Fatalf("%s: %v, although all before it succeeded", key, err)
		}
		l.giveBack(attempt, map[string]int{key: failuresEach})
	}
	before, err := l.take(now, map[string]int{"9": failuresEach})
	if err != nil {
		t.Fatal(err)
	}
	next := now.Add(attemptsFor)
	if _, err := l.take(next, map[string]int{"9": 1}); err != nil {
		t.Fatal(err)
	}
	l.giveBack(before, map[string]int{"9": failuresEach})
	if _, err := l.take(next, map[string]int{"9": 1}); err == nil {
		t.Error("what was counted in the minute before is given back in this one")
	}
}

// TestLimiter_Site checks that one IPv6 site, however many networks it has, leaves room for others.
func TestLimiter_Site(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	refused := 0
	for i := range 1 << 16 {
		attempts, failures := bounds(fmt.Sprintf("[2001:db8:1:%x::1]:80", i))
		if _, err := l.take(now, attempts, failures); err != nil {
			refused++
		}
	}
	if want := 1<<16 - failuresSite; refused != want {
		t.Errorf("%d refused, want %d", refused, want)
	}
	if len(l.counts) > countersAtMost/2 {
		t.Errorf("%d counters are taken", len(l.counts))
	}
	for range failuresEach {
		attempts, failures := bounds("192.0.2.1:80")
		if _, err := l.take(now, attempts, failures); err != nil {
			t.Errorf("somebody else: %v", err)
		}
	}
}

func TestSender(t *testing.T) {
	for remote, want := range map[string][2]string{
		"192.0.2.1:80": {"192.0.2.1"}, "[::ffff:192.0.2.1]:80": {"192.0.2.1"}, "[2001:db8:1:2:3::4]:80": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"[fe80::1%eth0]:80": {"fe80::/64", "fe80::/48"}, "pipe": {"pipe"}, "": {},
	} {
		if from, site := clientNetwork(remote); from != want[0] || site != want[1] {
			t.Errorf("%q: %q, %q, want %q", remote, from, site, want)
		}
	}
}
