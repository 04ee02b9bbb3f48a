package evidence

import (
	"slices"

	"github.com/holdfast/holdfast/registry/receipt"
)

// Fork is what signed checkpoints say of a chain that lost events and then went on with others of the same
// numbers. Storages may still have segments of the lost branch (docs/receipt.md, After a backup was restored).
type Fork struct {
	Gaps []receipt.Gap    // whose loss two people accepted
	End  receipt.ChainEnd // of the chain later; a zero value: not known
}

// link is an event of a chain, which stands for all before it.
type link struct {
	seq  int64
	hash string
}

// leave limits the segments of lost branches to the events before them. It goes by events that files share
// with each other, from the one that was signed and lost, and from those that were signed later. A branch that
// nothing contradicts is not lost any more: it counts.
func (f Fork) leave(files []*judged) {
	for _, gap := range f.Gaps {
		lost := spread(files, gap.After, link{gap.To, gap.Hash})
		counts, other := f.counts(files, gap.After)
		back := false // the record took the lost events back
		hashes := map[int64]string{}
		for l := range counts {
			back = back || lost[l]
			hashes[l.seq] = l.hash
		}
		if back {
			continue
		}
		var left []*judged
		for _, j := range files {
			is := false
			for _, l := range j.links {
				hash, known := hashes[l.seq]
				is = is || lost[l] || l.seq > gap.After && known && hash != l.hash
			}
			if is {
				left = append(left, j)
			}
			other = other || !is && j.span.Last() > gap.After && len(j.links) > 0
		}
		if !other {
			continue
		}
		for _, j := range left {
			j.limit(gap.After)
		}
	}
}

// counts returns the events after a number that are of one branch with the later checkpoint or with a receipt,
// and whether there are any.
func (f Fork) counts(files []*judged, after int64) (branch map[link]bool, any bool) {
	var from []link
	if f.End.Seq > after {
		from = append(from, link{f.End.Seq, f.End.Hash})
	}
	for _, j := range files {
		for _, l := range j.links {
			if j.Version > 0 && l.seq > after {
				from = append(from, l)
			}
		}
	}
	return spread(files, after, from...), len(from) > 0
}

// spread returns the events after a number that are of one branch with any of some events.
func spread(files []*judged, after int64, from ...link) map[link]bool {
	branch := map[link]bool{}
	for _, l := range from {
		branch[l] = true
	}
	for grown := true; grown; {
		grown = false
		for _, j := range files {
			if slices.ContainsFunc(j.links, func(l link) bool { return branch[l] }) {
				grown = j.join(branch, after) || grown
			}
		}
	}
	return branch
}

// join adds a file's events after a number to a branch, and reports whether there were new ones.
func (j *judged) join(branch map[link]bool, after int64) bool {
	before := len(branch)
	for _, l := range j.links {
		if l.seq > after {
			branch[l] = true
		}
	}
	return len(branch) > before
}

// limit lets a file count up to an event.
func (j *judged) limit(last int64) {
	if j.span.Last() > last {
		j.span.Count = max(0, last-j.span.First+1)
		j.limited = true
	}
}
