package search

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// mostScanned bounds how many items are searched for text that the text index cannot find.
const mostScanned = 10_000

// indexed reports whether the text index can find a text: it needs three letters or digits in a
// row.
func indexed(text string) bool {
	const least = 3
	run := 0
	for _, r := range text {
		if run++; !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			run = 0
		}
		if run == least {
			return true
		}
	}
	return false
}

// shortTerm returns the first term whose text the text index cannot find. ok is false if there is
// none, or if another term leaves few items to search.
func shortTerm(q registry.ItemQuery, r reach) (short registry.Term, ok bool) {
	if r.ids != nil || r.batches != nil || r.graphs != nil {
		return short, false
	}
	texts := []registry.Term{}
	if q.Text != "" {
		texts = append(texts, registry.Term{Value: q.Text})
	}
	for _, t := range q.Match.Terms {
		if !t.Not && t.InText() {
			texts = append(texts, t)
		}
	}
	for _, t := range texts {
		if indexed(t.Value) {
			return registry.Term{}, false
		}
		if !ok {
			short, ok = t, true
		}
	}
	return short, ok
}

// checkShort returns a *registry.QueryError if a query's text cannot be found by the text index and
// its other terms leave too many items to search.
func (s *Search) checkShort(ctx context.Context, q registry.ItemQuery, r reach) error {
	short, ok := shortTerm(q, r)
	if !ok || len(r.places) == 0 { // its terms contradict each other: nothing can match
		return nil
	}
	var w sqldb.Where
	conds, known := r.conds(&w)
	if !known {
		conds = []string{"1 = 1"}
	}
	many, err := s.hasAtLeast(ctx, &r, w.Args, conds, mostScanned+1)
	if err != nil || !many {
		return err
	}
	return &registry.QueryError{
		Position: strings.Index(q.Match.String(), short.String()) + 1, Word: short.String(),
		Problem: fmt.Sprintf("%q has no three letters or digits in a row, and more than %s items would have to be searched: "+
			"search for a longer text, or add a collection, a state or another field that fewer items match", short.Value, sqldb.HumanCount(mostScanned)),
	}
}
