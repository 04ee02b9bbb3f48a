package signin

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/web/wire"
)

// Bounds on attempts to sign in, each within a minute. Secrets have 130 bits and are not guessed;
// the bounds keep a flood from the database, the log and the audit log. They hold for one process.
const (
	attemptsFor     = time.Minute
	failuresEach    = 10     // from one address, or with one beginning of a token
	attemptsEach    = 60     // from one address, those that succeed among them
	failuresSite    = 100    // from one site of IPv6, which has many networks
	attemptsSite    = 600    // likewise
	attemptsOthers  = 600    // from all addresses that there is no room to count one by one
	countersAtMost  = 10_000 // counted one by one
	tokenPrefix     = 8      // characters of a token by which attempts on it are counted
	networkPrefixV6 = 64     // a customer's network, in which every address is free to take
	sitePrefixV6    = 48     // what a customer may have of networks: without a bound on it, one could fill the counters for everybody
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

// taken is where an attempt was counted, and in which minute.
type taken struct {
	since   time.Time
	counted map[string]string // by the key that was asked for
}

// take counts one attempt under each key, unless one of them has had as many as it may: then it
// counts none and refuses.
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

// counter is where a key is counted, and how far.
func (l *limiter) counter(key string, most int) (counted string, n int) {
	if _, ok := l.counts[key]; ok || len(l.counts) < countersAtMost {
		return key, most
	}
	return others, attemptsOthers
}

// giveBack undoes take for an attempt that succeeded, of which only failures are counted. What was
// counted in an earlier minute is gone by itself.
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

// bounds are the keys that an attempt from an address is counted under, and how far: as an attempt,
// and unless it succeeds as a failure.
func bounds(remote string) (attempts, failures map[string]int) {
	from, site := sender(remote)
	attempts, failures = map[string]int{"attempts from " + from: attemptsEach}, map[string]int{"failures from " + from: failuresEach}
	if site != "" {
		attempts["attempts from "+site], failures["failures from "+site] = attemptsSite, failuresSite
	}
	return attempts, failures
}

// sender is whom an attempt comes from: the address without its port, and of IPv6 the network, and
// the site that it is in.
func sender(remote string) (from, site string) {
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

// beginning is what attempts with a token are counted by.
func beginning(token string) string {
	return strings.ToValidUTF8(token[:min(len(token), tokenPrefix)], "?")
}
