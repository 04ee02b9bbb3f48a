package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// SaveResult implements registry.Working.
func (e *Engine) SaveResult(ctx context.Context, l registry.Lease, name string, value json.RawMessage) (json.RawMessage, error) {
	if err := bounds.Check(l, name, value); err != nil {
		return nil, err
	}
	var holds json.RawMessage
	err := e.Write(ctx, func(t *Tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if first, ok := it.Results[name]; ok {
			holds = first
			return nil
		}
		if err := ownResult(name); err != nil {
			return err
		}
		holds = value
		if err := t.SetResult(it, name, value); err != nil {
			return err
		}
		return registry.CheckResults(it.Results)
	})
	if err != nil {
		return nil, fmt.Errorf("save result %s of item %s: %w", name, l.ItemID, err)
	}
	return holds, nil
}

// SetState implements registry.Working.
func (e *Engine) SetState(ctx context.Context, l registry.Lease, value json.RawMessage) error {
	err := bounds.Check(l, value)
	if err == nil && len(value) > registry.MostState {
		err = fmt.Errorf("%w: the state takes %s; the limit is %s", registry.ErrInvalid, registry.SizeText(int64(len(value))), registry.SizeText(registry.MostState))
	}
	if err == nil && !json.Valid(value) {
		err = fmt.Errorf("%w: the state is not JSON", registry.ErrInvalid)
	}
	if err == nil {
		err = e.Write(ctx, func(t *Tx) error {
			it, err := t.Live(l)
			if err != nil {
				return err
			}
			if err := t.SetResult(it, registry.ResultState, value); err != nil {
				return err
			}
			return registry.CheckResults(it.Results)
		})
	}
	if err != nil {
		return fmt.Errorf("set the state of item %s: %w", l.ItemID, err)
	}
	return nil
}

// SetResult sets a result of an item. A nil value deletes it.
func (t *Tx) SetResult(it registry.WorkItem, name string, value json.RawMessage) error {
	if it.Results == nil {
		it.Results = map[string]json.RawMessage{}
	}
	return t.setResults(it, map[string]json.RawMessage{name: value})
}

// KeepResults writes the results of different items as they are in their maps, whose values are JSON.
func (t *Tx) KeepResults(items []registry.WorkItem) error {
	rows := make([][]any, len(items))
	for i, it := range items {
		rows[i] = []any{it.ID, encodeResults(it.Results)}
	}
	if err := t.InsertRows(updateResults, rows); err != nil {
		return fmt.Errorf("write results of items: %w", err)
	}
	return nil
}

var updateResults = sqldb.UpdateFrom(`UPDATE work_detail SET results = v.column2`, `($1, $2)`, `work_detail.item_id = v.column1`)

// setResults sets and deletes several results of an item, whose map it changes.
func (t *Tx) setResults(it registry.WorkItem, changes map[string]json.RawMessage) error {
	for name, value := range changes {
		if value == nil {
			delete(it.Results, name)
			continue
		}
		if !json.Valid(value) {
			return fmt.Errorf("%w: result %.100q is not JSON", registry.ErrInvalid, name)
		}
		it.Results[name] = value
	}
	if err := t.Do(`UPDATE work_detail SET results = $2 WHERE item_id = $1`, it.ID, encodeResults(it.Results)); err != nil {
		return fmt.Errorf("write results of item %s: %w", it.ID, err)
	}
	return nil
}

// encodeResults returns results, whose values are JSON, as their column holds them.
func encodeResults(results map[string]json.RawMessage) string {
	text := []byte("{")
	for i, name := range slices.Sorted(maps.Keys(results)) {
		if i > 0 {
			text = append(text, ',')
		}
		key, _ := json.Marshal(name) // every text can be encoded
		text = append(append(append(text, key...), ':'), results[name]...)
	}
	return string(append(text, '}'))
}

// decodeResults decodes what encodeResults encoded. It looks for the ends of the values and not into
// them: each transition reads all results of its item, and a plan is large.
func decodeResults(text []byte) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	depth, name, colon := 0, 0, 0 // name and colon of the present result; colon 0: not reached
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case c == '{' || c == '[':
			if depth++; depth == 1 {
				name = at + 1
			}
		case c == ':' && depth == 1:
			colon = at
		case colon > 0 && depth == 1 && (c == ',' || c == '}'):
			var key string
			if err := json.Unmarshal(text[name:colon], &key); err != nil {
				return nil, err
			}
			out[key] = text[colon+1 : at : at]
			name, colon = at+1, 0
			fallthrough
		case c == '}' || c == ']':
			if c != ',' {
				depth--
			}
		}
	}
	if depth != 0 || len(text) == 0 || text[0] != '{' {
		return nil, errors.New("not an object, or cut off")
	}
	return out, nil
}

// ownResults calls ownResult for all results of an attempt.
func ownResults(results map[string]json.RawMessage) error {
	for name := range results {
		if err := ownResult(name); err != nil {
			return err
		}
	}
	return nil
}

// ownResult returns ErrInvalid for results that only the Registry sets, because it acts on them: a
// settled name, a decision of two people.
func ownResult(name string) error {
	switch name {
	case registry.ResultAbandon, registry.ResultARK, registry.ResultBulk, registry.ResultCallback, registry.ResultCorrections, registry.ResultDuplicateOf, registry.ResultExpanded,
		registry.ResultPlan, registry.ResultRecheck, registry.ResultSentBack, registry.ResultSuperseded, registry.ResultUntold:
		return fmt.Errorf("%w: only the Registry sets the result %s", registry.ErrInvalid, name)
	}
	return nil
}

// stepEvents are the types of events that steps may send with their settlements. Any other type
// would let a worker write to the audit log, or report events about other items in the feed.
var stepEvents = map[registry.Stage][]string{
	registry.Expand:   {registry.EventManifestRefused, registry.EventManifestWarnings, registry.EventRowsRepeated},
	registry.Estimate: {registry.EventManifestWarnings},
	registry.Download: {registry.EventManifestWarnings},
	registry.Process:  {registry.EventBagRefused, registry.EventContainerRefused, registry.EventStored, registry.EventValidation},
	registry.Record:   {registry.EventIdentifierPublished},
	registry.Delete:   {registry.EventIdentifierWithdrawn},
}

// ownEvents returns ErrInvalid for events that the item's stage may not send.
func ownEvents(it registry.WorkItem, events []registry.NewEvent) error {
	for _, e := range events {
		if !slices.Contains(stepEvents[it.Stage], e.Type) {
			return fmt.Errorf("%w: stage %s may not report events of type %q, only %v", registry.ErrInvalid, it.Stage, e.Type, registry.AllOf(stepEvents[it.Stage]))
		}
	}
	return nil
}
