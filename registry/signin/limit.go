package signin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry/wire"
)

// Bounds on attempts to sign in, each within a minute. Secrets have 130 bits and are not guessed; the bounds keep a flood from
// the database, the log and the audit log. They hold for one process.
const (
	attemptsFor     = time.Minute
	failuresEach    = 10     // from one address, or with one beginning of a token
	attemptsEach    = 60     // from one address, those that succeed among them
	attemptsOthers  = 600    // from all addresses that there is no room to count one by one
	countersAtMost  = 10_000 // counted one by one
	tokenPrefix     = 8      // characters of a token by which attempts on it are counted
	networkPrefixV6 = 64     // a customer's network, in which every address is free to take
)

// TooManyError refuses an attempt to sign in for the time being.
type TooManyError struct {
	After time.Duration // when to try again
}

// Error says when to try again.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("too many attempts to sign in from your address, or with this token; wait %d seconds and try again", int(e.After.Seconds()))
}

// Unwrap returns the problem that says it.
func (e *TooManyError) Unwrap() error {
	return wire.NewProblem(http.StatusTooManyRequests, wire.CodeTooManyAttempts, e.Error())
}

// limiter counts attempts of the running minute. It takes bounded memory and has no goroutine.
type limiter struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// others is the counter of what there is no room for.
const others = ""

// take counts one attempt under each key, unless one of them has had as many as it may: then it counts none and refuses.
func (l *limiter) take(now time.Time, most map[string]int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= attemptsFor || now.Before(l.since) {
		l.since, l.counts = now, map[string]int{}
	}
	for key, n := range most {
		if key, n = l.counter(key, n); l.counts[key] >= n {
			return &TooManyError{After: max(time.Second, l.since.Add(attemptsFor).Sub(now).Round(time.Second))}
		}
	}
	for key, n := range most {
		key, _ = l.counter(key, n)
		l.counts[key]++
	}
	return nil
}

// counter is where a key is counted, and how far.
func (l *limiter) counter(key string, most int) (counted string, n int) {
	if _, ok := l.counts[key]; ok || len(l.counts) < countersAtMost {
		return key, most
	}
	return others, attemptsOthers
}

// giveBack undoes take for an attempt that succeeded, of which only failures are counted.
func (l *limiter) giveBack(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if l.counts[key] > 0 {
			l.counts[key]--
		}
	}
}

// host is whom an attempt comes from: the address without its port, and of IPv6 the network.
func host(remote string) string {
	name, _, err := net.SplitHostPort(remote)
	if err != nil {
		name = remote
	}
	a, err := netip.ParseAddr(name)
	if err != nil {
		return name
	}
	if a = a.Unmap(); a.Is6() {
		if network, err := a.WithZone("").Prefix(networkPrefixV6); err == nil {
			return network.String()
		}
	}
	return a.String()
}

// beginning is what attempts with a token are counted by.
func beginning(token string) string {
	return strings.ToValidUTF8(token[:min(len(token), tokenPrefix)], "?")
}
