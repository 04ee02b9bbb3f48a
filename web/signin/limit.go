package signin

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/web/wire"
)

// Bounds on attempts to sign in per minute and process. Secrets have 130 bits and cannot be
// guessed; the bounds protect the database, the log and the audit list from a flood.
const (
	attemptsFor     = time.Minute
	failuresEach    = 10     // per address, and per prefix of a token
	attemptsEach    = 60     // per address, including successful ones
	failuresSite    = 100    // per IPv6 site, which has many networks
	attemptsSite    = 600    // likewise
	attemptsOthers  = 600    // from all addresses without a counter of their own
	countersAtMost  = 10_000 // most counters
	tokenPrefix     = 8      // length of the prefix of a token by which attempts are counted
	networkPrefixV6 = 64     // one customer network, whose addresses are free to choose
	sitePrefixV6    = 48     // all networks of a customer; without this bound one customer could use up all counters
)

// TooManyError temporarily refuses an attempt to sign in.
type TooManyError struct {
	After time.Duration // when to try again
}

// Error says when to try again.
func (e *TooManyError) Error() string {
	return e.Unwrap().Error()
}

// Unwrap returns the API's problem.
func (e *TooManyError) Unwrap() error {
	return refused(http.StatusTooManyRequests, wire.CodeTooManyAttempts,
		"too many attempts to sign in from your address, or with this token; wait %d seconds and try again", int(e.After.Seconds()))
}

// limiter counts the attempts of the present minute. It uses bounded memory and no goroutine.
type limiter struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// others is the counter of all keys without a counter of their own.
const others = ""

// taken records where an attempt was counted, and in which minute.
type taken struct {
	since   time.Time
	counted map[string]string // counters by key
}

// take counts one attempt under each key. If one of the keys has reached its bound, it counts
// nothing and returns a *TooManyError.
func (l *limiter) take(now time.Time, bounds ...map[string]int) (taken, error) {
	most := map[string]int{}
	for _, some := range bounds {
		maps.Copy(most, some)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= attemptsFor || now.Before(l.since) {
		l.since, l.counts = now, map[string]int{}
	}
	for key, n := range most {
		if key, n = l.counter(key, n); l.counts[key] >= n {
			return taken{}, &TooManyError{After: max(time.Second, l.since.Add(attemptsFor).Sub(now).Round(time.Second))}
		}
	}
	t := taken{since: l.since, counted: make(map[string]string, len(most))}
	for key, n := range most {
		counted, _ := l.counter(key, n)
		l.counts[counted]++
		t.counted[key] = counted
	}
	return t, nil
}

// counter returns the counter and the bound of a key.
func (l *limiter) counter(key string, most int) (counted string, n int) {
	if _, ok := l.counts[key]; ok || len(l.counts) < countersAtMost {
		return key, most
	}
	return others, attemptsOthers
}

// giveBack uncounts a successful attempt under keys that count only failures. Counts of an earlier
// minute are already gone.
func (l *limiter) giveBack(t taken, most map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.since.Equal(l.since) {
		return
	}
	for key := range most {
		if counted, ok := t.counted[key]; ok && l.counts[counted] > 0 {
			l.counts[counted]--
		}
	}
}

// bounds returns the keys and bounds of attempts from an address: those for all attempts and those
// for failures.
func bounds(remote string) (attempts, failures map[string]int) {
	from, site := clientNetwork(remote)
	attempts, failures = map[string]int{"attempts from " + from: attemptsEach}, map[string]int{"failures from " + from: failuresEach}
	if site != "" {
		attempts["attempts from "+site], failures["failures from "+site] = attemptsSite, failuresSite
	}
	return attempts, failures
}

// clientNetwork returns the client of an attempt: the address without its port or, for IPv6, the
// network and its site.
func clientNetwork(remote string) (from, site string) {
	name, _, err := net.SplitHostPort(remote)
	if err != nil {
		name = remote
	}
	a, err := netip.ParseAddr(name)
	if err != nil {
		return name, ""
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String(), ""
	}
	network, site6 := netip.PrefixFrom(a, networkPrefixV6).Masked(), netip.PrefixFrom(a, sitePrefixV6).Masked()
	return network.String(), site6.String()
}

// prefixOf returns the prefix of a token by which attempts are counted.
func prefixOf(token string) string {
	return strings.ToValidUTF8(token[:min(len(token), tokenPrefix)], "?")
}
