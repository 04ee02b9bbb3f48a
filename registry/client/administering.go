package client

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// Command implements registry.Administering.
func (s *Store) Command(ctx context.Context, c registry.Command) (registry.WorkItem, error) {
	if err := checkKeys("command", c.ItemID, c.IdempotencyKey); err != nil {
		return registry.WorkItem{}, err
	}
	return call[registry.WorkItem](ctx, s, "command", c)
}

// Bulk implements registry.Administering.
func (s *Store) Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error) {
	if err := checkKeys("bulk act", append([]string{b.IdempotencyKey}, b.Within...)...); err != nil {
		return registry.WorkItem{}, err
	}
	return call[registry.WorkItem](ctx, s, "bulk", b)
}

// RequestObject implements registry.Administering.
func (s *Store) RequestObject(ctx context.Context, r registry.ObjectRequest) (registry.WorkItem, error) {
	if err := checkKeys("request", r.Spec.ObjectID, r.IdempotencyKey); err != nil {
		return registry.WorkItem{}, err
	}
	return call[registry.WorkItem](ctx, s, "request-object", r)
}

// AskForCheck implements registry.Administering.
func (s *Store) AskForCheck(ctx context.Context, objectID, reason, actor string) error {
	if checkKeys("check", objectID) != nil {
		return fmt.Errorf("ask for a check of object %q: %w", objectID, registry.ErrNotFound) // there can be none
	}
	return s.tell(ctx, "ask-for-check", wire.CheckAsked{ObjectID: objectID, Reason: reason, Actor: actor})
}

// SetAccepting implements registry.Administering.
func (s *Store) SetAccepting(ctx context.Context, a registry.Accepting) error {
	return s.tell(ctx, "set-accepting", a)
}

// AddHold implements registry.Administering.
func (s *Store) AddHold(ctx context.Context, h registry.Hold) error {
	if err := checkKeys("hold", h.Key); err != nil {
		return err
	}
	return s.tell(ctx, "add-hold", h)
}

// RemoveHold implements registry.Administering.
func (s *Store) RemoveHold(ctx context.Context, scope registry.HoldScope, key, actor string) error {
	if checkKeys("hold", key) != nil {
		return fmt.Errorf("release hold on %s %q: %w", scope, key, registry.ErrNotFound) // there can be none
	}
	return s.tell(ctx, "remove-hold", wire.HoldRemoval{Scope: scope, Key: key, Actor: actor})
}

// PutCollection implements registry.Administering.
func (s *Store) PutCollection(ctx context.Context, c registry.Collection, actor string) error {
	if err := checkKeys("collection", append([]string{c.Mnemonic, c.Profile.Owner}, c.Profile.Storages...)...); err != nil {
		return err
	}
	return s.tell(ctx, "put-collection", wire.CollectionRecord{Collection: c, Actor: actor})
}

// AddToken implements registry.Administering.
func (s *Store) AddToken(ctx context.Context, t registry.Token) error {
	if err := checkKeys("token", append([]string{t.ID, t.Hash}, t.Collections...)...); err != nil {
		return err
	}
	return s.tell(ctx, "add-token", wire.RecordOf(t))
}

// TokenByHash implements registry.Administering.
func (s *Store) TokenByHash(ctx context.Context, hash string) (registry.Token, error) {
	out, err := call[wire.TokenRecord](ctx, s, "token", wire.ByHash{Hash: hash})
	return out.Whole(), err
}

// Tokens implements registry.Administering.
func (s *Store) Tokens(ctx context.Context) ([]registry.Token, error) {
	records, err := list[wire.TokenRecord](ctx, s, "tokens", wire.Nothing{})
	out := make([]registry.Token, len(records))
	for i, r := range records {
		out[i] = r.Whole()
	}
	return out, err
}

// RevokeToken implements registry.Administering.
func (s *Store) RevokeToken(ctx context.Context, id, actor string) error {
	return s.tell(ctx, "revoke-token", wire.TokenRevocation{ID: id, Actor: actor})
}

// PutCredential implements registry.Administering.
func (s *Store) PutCredential(ctx context.Context, c registry.Credential) error {
	if err := checkKeys("credential", c.Collection, c.Origin, c.Name, c.Endpoint, c.Region, c.Sealed); err != nil {
		return err
	}
	return s.tell(ctx, "put-credential", wire.CredentialRecordOf(c))
}

// Credentials implements registry.Administering. A worker may ask for them, too.
func (s *Store) Credentials(ctx context.Context, collection string) ([]registry.Credential, error) {
	records, err := list[wire.CredentialRecord](ctx, s, "credentials", wire.ByID{ID: collection})
	out := make([]registry.Credential, len(records))
	for i, r := range records {
		out[i] = r.Whole()
	}
	return out, err
}

// RemoveCredential implements registry.Administering.
func (s *Store) RemoveCredential(ctx context.Context, collection, origin, actor string) error {
	return s.tell(ctx, "remove-credential", wire.CredentialRemoval{Collection: collection, Origin: origin, Actor: actor})
}

// Refused implements registry.Administering.
func (s *Store) Refused(ctx context.Context, r registry.Refusal) error {
	return s.tell(ctx, "refused", r)
}
