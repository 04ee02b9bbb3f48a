package sqlstore

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// match appends the conditions of a parsed query.
func (w *where) match(q registry.Query) error {
	for _, term := range q.Terms {
		if err := w.term(term); err != nil {
			return err
		}
	}
	return nil
}

func (w *where) term(t registry.Term) error {
	cond, value := "", t.Value
	switch t.Field {
	case "state":
		for _, s := range registry.Statuses() {
			if registry.StateOf(registry.Position{Status: s}).Equal(t.Value) && (s.Settled() || s == registry.Prepare) {
				cond, value = "i.status = ?", string(s)
			}
		}
	case "status":
		cond = "i.status = ?"
	case "collection":
		cond = "i.collection = ?"
	case "batch":
		cond = "i.parent_id = ?"
	}
	if cond == "" {
		return fmt.Errorf("query: %s:%s is not understood", t.Field, t.Value)
	}
	if t.Not {
		cond = "NOT (" + cond + ")"
	}
	w.add(cond, value)
	return nil
}
