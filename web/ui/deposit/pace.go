package deposit

import (
	"sync"
	"time"
)

// paces measure how fast deposits go on, from what pages have read of them in the last minutes. Each
// process measures for itself.
type paces struct {
	mu  sync.Mutex
	all map[string][]sample
}

// sample is how far a deposit was at a time.
type sample struct {
	at   time.Time
	done int64
}

const (
	paceOver  = 2 * time.Minute // the time over which a pace is measured
	paceLeast = 3 * time.Second // between two samples
	mostPaces = 1000            // deposits measured at once
)

// add records how far a deposit is, and returns its pace per second; 0 if it is not known.
func (p *paces) add(id string, done int64, now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil || len(p.all) > mostPaces {
		p.all = map[string][]sample{}
	}
	known := p.all[id]
	if n := len(known); n > 0 && done < known[n-1].done { // it began again
		known = nil
	}
	for len(known) > 1 && now.Sub(known[0].at) > paceOver {
		known = known[1:]
	}
	if n := len(known); n == 0 || now.Sub(known[n-1].at) >= paceLeast {
		known = append(known, sample{now, done})
	}
	p.all[id] = known
	first, last := known[0], known[len(known)-1]
	if last.at.Sub(first.at) < paceLeast || last.done == first.done {
		return 0
	}
	return float64(last.done-first.done) / last.at.Sub(first.at).Seconds()
}
