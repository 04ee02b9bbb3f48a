package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/holdfast/holdfast/registry"
)

// SaveResult implements registry.Working.
func (s *Store) SaveResult(ctx context.Context, l registry.Lease, name string, value json.RawMessage) (json.RawMessage, error) {
	var holds json.RawMessage
	err := s.write(ctx, func(t *tx) error {
		it, err := t.live(l)
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
		after := maps.Clone(it.Results)
		if after == nil {
			after = map[string]json.RawMessage{}
		}
		after[name] = value
		if err := registry.CheckResults(after); err != nil {
			return err
		}
		holds = value
		return t.setResult(it, name, value)
	})
	if err != nil {
		return nil, fmt.Errorf("save result %s of item %s: %w", name, l.ItemID, err)
	}
	return holds, nil
}

func (t *tx) setResult(it registry.WorkItem, name string, value json.RawMessage) error {
	if it.Results == nil {
		it.Results = map[string]json.RawMessage{}
	}
	if it.Results[name] = value; value == nil {
		delete(it.Results, name)
	}
	state, err := json.Marshal(it.Results)
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	err = t.do(`UPDATE work_item SET state = $2 WHERE id = $1`, it.ID, string(state))
	return err
}
