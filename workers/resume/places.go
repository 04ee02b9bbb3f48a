package resume

import (
	"slices"
)

// Places is a set of mostly consecutive numbers, as ascending, separate spans: each has its first
// number and the one after its last. Files that several workers finish concurrently leave few gaps,
// so the set stays small.
type Places [][2]int

// Has reports whether n is in the set.
func (p Places) Has(n int) bool {
	i, exact := p.search(n)
	return exact || i > 0 && n < p[i-1][1]
}

// Add adds n to the set.
func (p Places) Add(n int) Places {
	if p.Has(n) {
		return p
	}
	i, _ := p.search(n)
	after := i > 0 && p[i-1][1] == n
	before := i < len(p) && p[i][0] == n+1
	switch {
	case after && before:
		p[i-1][1] = p[i][1]
		return slices.Delete(p, i, i+1)
	case after:
		p[i-1][1] = n + 1
	case before:
		p[i][0] = n
	default:
		return slices.Insert(p, i, [2]int{n, n + 1})
	}
	return p
}

// search returns the first span that begins at n or after it.
func (p Places) search(n int) (i int, exact bool) {
	return slices.BinarySearchFunc(p, n, func(s [2]int, n int) int { return s[0] - n })
}
