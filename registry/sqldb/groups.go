package sqldb

import (
	"iter"
)

// Groups are items that have something in common, in the order in which they came.
type Groups[K comparable] struct {
	order []K
	ids   map[K][]string
}

// Add adds an item to the group of its key, which begins with it if it is the first.
func (g *Groups[K]) Add(key K, id string) {
	if g.ids == nil {
		g.ids = map[K][]string{}
	}
	if g.ids[key] == nil {
		g.order = append(g.order, key)
	}
	g.ids[key] = append(g.ids[key], id)
}

// All yields each group, the one that began first first.
func (g *Groups[K]) All() iter.Seq2[K, []string] {
	return func(yield func(K, []string) bool) {
		for _, key := range g.order {
			if !yield(key, g.ids[key]) {
				return
			}
		}
	}
}
