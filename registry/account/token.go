package account

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

const selectToken = `SELECT id, hash, name, role, collections, stages, created_by, created_at, expires_at, revoked_at, used_at FROM token `

func scanToken(row sqldb.Scanner) (registry.Token, error) {
	var tok registry.Token
	var collections, stages string
	var created int64
	var expires, revoked, used sql.NullInt64
	err := row.Scan(&tok.ID, &tok.Hash, &tok.Name, &tok.Role, &collections, &stages, &tok.CreatedBy, &created, &expires, &revoked, &used)
	if err != nil {
		return tok, err
	}
	if err := json.Unmarshal([]byte(collections), &tok.Collections); err != nil {
		return tok, fmt.Errorf("decode collections of token %s: %w", tok.ID, err)
	}
	if len(tok.Collections) == 0 {
		tok.Collections = nil
	}
	tok.Stages = stagesOf(stages)
	tok.CreatedAt, tok.ExpiresAt, tok.RevokedAt, tok.UsedAt = sqldb.FromMicros(created), sqldb.Optional(expires), sqldb.Optional(revoked), sqldb.Optional(used)
	return tok, nil
}

// stagesOf reads the stages in a column, which are separated by commas.
func stagesOf(text string) (out []registry.Stage) {
	for s := range strings.SplitSeq(text, ",") {
		if s != "" {
			out = append(out, registry.Stage(s))
		}
	}
	return out
}

func stagesText(stages []registry.Stage) string {
	words := make([]string, len(stages))
	for i, s := range stages {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

// AddToken implements registry.TokenKeeper.
func (s *Accounts) AddToken(ctx context.Context, tok registry.Token) error {
	if tok.Collections == nil {
		tok.Collections = []string{}
	}
	collections, err := json.Marshal(tok.Collections)
	if err != nil {
		return fmt.Errorf("encode collections of token %s: %w", tok.Name, err)
	}
	var expires sql.NullInt64
	if tok.ExpiresAt != nil {
		expires = sql.NullInt64{Int64: sqldb.Micros(*tok.ExpiresAt), Valid: true}
	}
	err = s.write(ctx, func(t *tx) error {
		var there int
		if err := t.Get(`SELECT COUNT(*) FROM token WHERE name = $1`, []any{sqldb.Clean(tok.Name)}, &there); err != nil {
			return err
		}
		if there > 0 {
			return registry.ErrNameTaken
		}
		n, err := t.Exec(`INSERT INTO token (id, hash, name, role, collections, stages, created_by, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
			tok.ID, tok.Hash, sqldb.Clean(tok.Name), tok.Role, string(collections), sqldb.Clean(stagesText(tok.Stages)), sqldb.Clean(tok.CreatedBy), t.Now, expires)
		if err != nil {
			return err
		}
		if n == 0 {
			return registry.ErrTaken
		}
		return t.Event(tok.ID, 0, registry.EventTokenCreated, tok.CreatedBy, tokenNote{tok.Name, tok.Role, tok.Collections, tok.Stages, tok.ExpiresAt})
	})
	if err != nil {
		return fmt.Errorf("add token %s: %w", tok.Name, err)
	}
	return nil
}

// tokenNote is the data of a token's event. It contains nothing that would let a reader use the
// token.
type tokenNote struct {
	Name        string           `json:"name"`
	Role        registry.Role    `json:"role"`
	Collections []string         `json:"collections,omitempty"`
	Stages      []registry.Stage `json:"stages,omitempty"`
	ExpiresAt   *time.Time       `json:"expires_at,omitempty"`
}

// TokenByHash implements registry.TokenKeeper.
func (s *Accounts) TokenByHash(ctx context.Context, hash string) (registry.Token, error) {
	now := s.db.Now()
	tok, err := scanToken(s.db.Read.QueryRowContext(ctx, selectToken+`WHERE hash = $1`, hash))
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && !tok.Good(now):
		return registry.Token{}, fmt.Errorf("token: %w", registry.ErrNotFound)
	case err != nil:
		return registry.Token{}, fmt.Errorf("look up token: %w", err)
	}
	s.used(tok, now)
	return tok, nil
}

// Tokens implements registry.TokenKeeper.
func (s *Accounts) Tokens(ctx context.Context) (out []registry.Token, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectToken+`ORDER BY created_at, id`), "list tokens", func(row sqldb.Scanner) (registry.Token, error) {
		tok, err := scanToken(row)
		tok.Hash = "" // a list does not need it
		return tok, err
	})
}

// RevokeToken implements registry.TokenKeeper.
func (s *Accounts) RevokeToken(ctx context.Context, id, actor string) error {
	err := s.write(ctx, func(t *tx) error { return t.revoke(id, actor) })
	if err == nil {
		err = s.work.WithdrawRevoked(ctx, actor)
	}
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	return nil
}

func (t *tx) revoke(id, actor string) error {
	tok, err := scanToken(t.Row(selectToken+`WHERE id = $1`, id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return registry.ErrNotFound
	case err != nil:
		return err
	case tok.RevokedAt != nil:
		return nil
	}
	if tok.Role == registry.RoleAdmin && tok.Good(sqldb.FromMicros(t.Now)) {
		var others int
		err := t.Get(`SELECT COUNT(*) FROM token WHERE role = $1 AND id <> $2 AND revoked_at IS NULL
			AND (expires_at IS NULL OR expires_at > $3)`, []any{registry.RoleAdmin, id, t.Now}, &others)
		if err != nil {
			return err
		}
		if others == 0 {
			return registry.ErrLastAdmin
		}
	}
	if err := t.Do(`UPDATE token SET revoked_at = $2 WHERE id = $1`, id, t.Now); err != nil {
		return err
	}
	if err := t.ForgetWorkers(tok.ID); err != nil {
		return err
	}
	return t.Event(id, 0, registry.EventTokenRevoked, actor, tokenNote{tok.Name, tok.Role, tok.Collections, tok.Stages, tok.ExpiresAt})
}

// revokedNames returns the names of those tokens that were revoked, by their ids.
func revokedNames(t *work.Tx, ids []string) (map[string]string, error) {
	names := map[string]string{}
	err := sqldb.Each(t.Ask(`SELECT id, name FROM token WHERE `+t.Among("id")+` AND revoked_at IS NOT NULL`, t.List(ids)),
		"look for revoked tokens", func(row sqldb.Scanner) error {
			var id, name string
			err := row.Scan(&id, &name)
			names[id] = name
			return err
		})
	return names, err
}
