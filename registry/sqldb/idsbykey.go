package sqldb

import (
	"iter"
)

// IDsByKey groups ids by a key, in the order of arrival. The zero value is ready.
type IDsByKey[K comparable] struct {
	order []K
	ids   map[K][]string
}

// Add adds an id to the group of its key.
func (g *IDsByKey[K]) Add(key K, id string) {
	if g.ids == nil {
		g.ids = map[K][]string{}
	}
	if g.ids[key] == nil {
		g.order = append(g.order, key)
	}
	g.ids[key] = append(g.ids[key], id)
}

// All yields the groups in the order of their first ids.
func (g *IDsByKey[K]) All() iter.Seq2[K, []string] {
	return func(yield func(K, []string) bool) {
		for _, key := range g.order {
			if !yield(key, g.ids[key]) {
				return
			}
		}
	}
}
