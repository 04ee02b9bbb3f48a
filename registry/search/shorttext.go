package search

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// mostLookedThrough bounds among how many items text is looked for that the text indexes do not
// know.
const mostLookedThrough = 10_000

// indexed says that the text index helps to find text: it has pieces of three letters or digits.
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

// shortTerm is the first term of a query that asks for text which the text index does not know; ok
// is false when there is none, and when the index, or a name, leaves few items to look for it
// among.
func shortTerm(q registry.ItemQuery, r reach) (short registry.Term, ok bool) {
	if r.ids != nil || r.batches != nil || r.graphs != nil {
		return short, false
	}
	texts := []registry.Term{}
	if q.Text != "" {
		texts = append(texts, registry.Term{Value: q.Text})
	}
	for _, t := range q.Match.Terms {
		if !t.Not && (t.Field == "" || t.Field == "name" || t.Field == "error") {
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

// checkShort refuses a query for text that the text index does not know, with a
// *registry.QueryError, when its other words leave too many items to look for it among.
func (s *Search) checkShort(ctx context.Context, q registry.ItemQuery, r reach) error {
	short, ok := shortTerm(q, r)
	if !ok || len(r.places) == 0 { // its words contradict each other: nothing can match
		return nil
	}
	var w sqldb.Where
	conds, known := r.conds(&w)
	if !known {
		conds = []string{"1 = 1"}
	}
	many, err := s.asMany(ctx, &r, w.Args, conds, mostLookedThrough+1)
	if err != nil || !many {
		return err
	}
	return &registry.QueryError{
		Position: strings.Index(q.Match.String(), short.String()) + 1, Word: short.String(),
		Problem: fmt.Sprintf("%q has no three letters or digits in a row, and there are more than %s items to look for it in: "+
			"ask for more of the text, or name a collection, a state or the like that fewer items have", short.Value, sqldb.HumanCount(mostLookedThrough)),
	}
}
