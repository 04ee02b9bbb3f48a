package outbound

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// PutCredential implements registry.Secrets.
func (s *Outbound) PutCredential(ctx context.Context, c registry.Credential) error {
	err := c.Check()
	if err == nil {
		err = s.write(ctx, func(t *Tx) error { return t.putCredential(c) })
	}
	if err != nil {
		return fmt.Errorf("save credential of collection %s: %w", c.Collection, err)
	}
	return nil
}

func (t *Tx) putCredential(c registry.Credential) error {
	if err := t.requireOwner(c.Collection); err != nil {
		return err
	}
	err := t.Do(`INSERT INTO credential (collection, origin, kind, name, endpoint, region, path_style, sealed, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (collection, origin) DO UPDATE SET kind = $3, name = $4, endpoint = $5, region = $6, path_style = $7,
		sealed = $8, created_by = $9, created_at = $10`,
		c.Collection, c.Origin, c.Kind, c.Name, c.Endpoint, c.Region, sqldb.Bit(c.PathStyle), c.Sealed, sqldb.Clean(c.CreatedBy), t.Now)
	if err != nil {
		return err
	}
	if err := t.retryNow(c.Collection); err != nil {
		return err
	}
	return t.noteCredential(c, registry.EventCredentialSet, c.CreatedBy)
}

// requireOwner returns ErrNotFound unless the collection or subscription that a credential is for
// exists.
func (t *Tx) requireOwner(owner string) (err error) {
	if name, ok := registry.OwningSubscription(owner); ok {
		_, err = t.subscription(name)
	} else {
		_, err = collection.Of(t.Tx, owner)
	}
	return err
}

// noteCredential writes an event about a credential. The event is in no collection, so that
// depositors do not see it.
func (t *Tx) noteCredential(c registry.Credential, kind, actor string) error {
	return t.Event(c.Collection, 0, kind, actor, struct {
		Collection string                  `json:"collection"`
		Origin     string                  `json:"origin"`
		Kind       registry.CredentialKind `json:"kind"`
		Name       string                  `json:"name,omitempty"`
	}{c.Collection, c.Origin, c.Kind, c.Name})
}

const selectCredential = `SELECT collection, origin, kind, name, endpoint, region, path_style, sealed, created_by, created_at FROM credential `

func scanCredential(row sqldb.Scanner) (registry.Credential, error) {
	var c registry.Credential
	var pathStyle, at int64
	err := row.Scan(&c.Collection, &c.Origin, &c.Kind, &c.Name, &c.Endpoint, &c.Region, &pathStyle, &c.Sealed, &c.CreatedBy, &at)
	c.PathStyle, c.CreatedAt = pathStyle != 0, sqldb.FromMicros(at)
	return c, err
}

// Credentials implements registry.Unlocking.
func (s *Outbound) Credentials(ctx context.Context, collection string) (out []registry.Credential, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectCredential+`WHERE collection = $1 ORDER BY origin`, collection), "list credentials of collection "+collection, scanCredential)
}

// RemoveCredential implements registry.Secrets.
func (s *Outbound) RemoveCredential(ctx context.Context, collection, origin, actor string) error {
	err := s.write(ctx, func(t *Tx) error {
		c, err := scanCredential(t.Row(selectCredential+`WHERE collection = $1 AND origin = $2`, collection, origin))
		if errors.Is(err, sql.ErrNoRows) {
			return registry.ErrNotFound
		} else if err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM credential WHERE collection = $1 AND origin = $2`, collection, origin); err != nil {
			return err
		}
		if err := t.retryNow(c.Collection); err != nil {
			return err
		}
		return t.noteCredential(c, registry.EventCredentialRemoved, actor)
	})
	if err != nil {
		return fmt.Errorf("remove credential of collection %s for %s: %w", collection, origin, err)
	}
	return nil
}
