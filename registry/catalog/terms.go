package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// eventTermsSet is the kind of the event of an admin's change of terms.
const eventTermsSet = "terms-set"

// encodeTerms returns terms as the column holds them; "" for none.
func encodeTerms(terms registry.Terms) (string, error) {
	if terms.IsZero() {
		return "", nil
	}
	text, err := json.Marshal(terms)
	if err != nil {
		return "", fmt.Errorf("encode terms: %w", err)
	}
	return sqldb.Clean(string(text)), nil
}

// decodeTerms decodes what encodeTerms returned.
func decodeTerms(text string) (terms registry.Terms, err error) {
	if text == "" {
		return terms, nil
	}
	if err := json.Unmarshal([]byte(text), &terms); err != nil {
		return terms, fmt.Errorf("decode terms: %w", err)
	}
	return terms, nil
}

// terms returns the terms of an object that are in force.
func (t *tx) terms(objectID string) (registry.Terms, error) {
	var text string
	if err := t.Get(`SELECT terms FROM object WHERE id = $1`, []any{objectID}, &text); err != nil {
		return registry.Terms{}, fmt.Errorf("look up the terms of %s: %w", objectID, err)
	}
	return decodeTerms(text)
}

// termsWith returns, as the column holds them, the terms of an object when a version of the item is
// recorded: those of the item, which its submission fixed, over those in force.
func (t *tx) termsWith(it registry.WorkItem, objectID string) (string, error) {
	spec, err := work.SpecOf(it)
	if err != nil {
		return "", err
	}
	before, err := t.terms(objectID)
	if err != nil {
		return "", err
	}
	return encodeTerms(spec.TermsInForce().Over(before))
}

// SetTerms implements registry.Deciding.
func (s *Catalog) SetTerms(ctx context.Context, objectID string, terms registry.Terms, reason, actor string) error {
	reason, actor = sqldb.Clean(reason), sqldb.Clean(actor)
	text, err := encodeTerms(terms)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(t *tx) error {
		if err := t.requirePresent(objectID); err != nil {
			return err
		}
		before, err := t.terms(objectID)
		if err != nil {
			return err
		}
		was, err := encodeTerms(before)
		if err != nil || was == text { // a repeat
			return err
		}
		if err := t.WhileRestored(); err != nil {
			return err
		}
		if err := t.Do(`UPDATE object SET terms = $2 WHERE id = $1`, objectID, text); err != nil {
			return err
		}
		err = t.writeBetween(subject{object: objectID, kinds: []string{registry.PolicyAssignment}}, registry.Premis{
			ID: sqldb.NewID(), ObjectID: objectID, Type: registry.PolicyAssignment, At: sqldb.FromMicros(t.Now), Agent: software, Outcome: "success",
			Detail: terms.Detail(actor, reason),
		})
		if err != nil {
			return err
		}
		return t.noteObject(objectID, work.Entry{
			Kind: eventTermsSet, Actor: actor,
			Data: map[string]any{"object_id": objectID, "reason": reason, "terms": terms.String(), "before": before.String()},
		})
	})
	if err != nil {
		return fmt.Errorf("set the terms of %s: %w", objectID, err)
	}
	return nil
}
