package account

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

var _ registry.Signing = (*Accounts)(nil)

// seenEvery is the shortest interval at which a session's use is recorded, so that reading pages
// writes little.
const seenEvery = time.Minute

const selectSession = `SELECT s.id, s.hash, s.token_id, s.subject, s.name, s.role, s.collections, s.method, s.agent, s.address,
	s.created_at, s.seen_at, s.idle, s.expires_at FROM session s LEFT JOIN token t ON t.id = s.token_id `

// goodSession is an SQL condition: the session is valid at the time $1.
const goodSession = `s.expires_at > $1 AND s.seen_at + s.idle > $1
	AND (s.token_id = '' OR t.id IS NOT NULL AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $1)) `

func scanSession(row sqldb.Scanner) (registry.Session, error) {
	var s registry.Session
	var collections string
	var created, seen, idle, expires int64
	err := row.Scan(&s.ID, &s.Hash, &s.TokenID, &s.Subject, &s.Name, &s.Role, &collections, &s.Method, &s.Agent, &s.Address,
		&created, &seen, &idle, &expires)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(collections), &s.Collections); err != nil {
		return s, fmt.Errorf("decode collections of session %s: %w", s.ID, err)
	}
	if len(s.Collections) == 0 {
		s.Collections = nil
	}
	s.CreatedAt, s.SeenAt, s.ExpiresAt = sqldb.FromMicros(created), sqldb.FromMicros(seen), sqldb.FromMicros(expires)
	s.Idle = time.Duration(idle) * time.Microsecond
	return s, nil
}

// AddLink implements registry.Signing.
func (s *Accounts) AddLink(ctx context.Context, hash, tokenID string, good time.Duration) error {
	err := s.write(ctx, func(t *tx) error {
		tok, err := t.goodToken(tokenID)
		if err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM sign_in_link WHERE expires_at <= $1`, t.Now); err != nil {
			return err
		}
		err = t.Do(`DELETE FROM sign_in_link WHERE hash IN (SELECT hash FROM sign_in_link WHERE token_id = $1 ORDER BY expires_at DESC, hash LIMIT 1000000 OFFSET $2)`,
			tokenID, registry.MostLinks-1)
		if err != nil {
			return err
		}
		if err := t.Do(`INSERT INTO sign_in_link (hash, token_id, expires_at) VALUES ($1, $2, $3)`, hash, tokenID, t.Now+good.Microseconds()); err != nil {
			return err
		}
		return t.Event(tokenID, 0, registry.EventLinkMade, tok.Name, tokenNote{tok.Name, tok.Role, tok.Collections, tok.Stages, tok.ExpiresAt})
	})
	if err != nil {
		return fmt.Errorf("add sign-in link: %w", err)
	}
	return nil
}

// goodToken returns a token. It returns ErrNotFound if the token is unknown, revoked or expired.
func (t *tx) goodToken(id string) (registry.Token, error) {
	tok, err := scanToken(t.Row(selectToken+`WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) || err == nil && !tok.Good(sqldb.FromMicros(t.Now)) {
		return registry.Token{}, fmt.Errorf("token: %w", registry.ErrNotFound)
	}
	return tok, err
}

// LinkToken implements registry.Signing.
func (s *Accounts) LinkToken(ctx context.Context, link string) (registry.Token, error) {
	now := s.db.Now()
	tok, err := scanToken(s.db.Read.QueryRowContext(ctx, selectToken+`WHERE id = (SELECT token_id FROM sign_in_link WHERE hash = $1 AND expires_at > $2)`, link, sqldb.Micros(now)))
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && !tok.Good(now):
		return registry.Token{}, fmt.Errorf("link: %w", registry.ErrNotFound)
	case err != nil:
		return registry.Token{}, fmt.Errorf("look up sign-in link: %w", err)
	}
	return tok, nil
}

// AddLinkedSession implements registry.Signing.
func (s *Accounts) AddLinkedSession(ctx context.Context, link string, in registry.Session, l registry.Lifetime) (out registry.Session, err error) {
	err = s.write(ctx, func(t *tx) error {
		in := in
		in.Method = registry.SignInLink
		err := t.Row(`SELECT token_id FROM sign_in_link WHERE hash = $1 AND expires_at > $2`, link, t.Now).Scan(&in.TokenID)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("link: %w", registry.ErrNotFound)
		} else if err != nil {
			return err
		}
		// Write transactions are serial, so no other sign-in can use the link.
		if err := t.Do(`DELETE FROM sign_in_link WHERE hash = $1`, link); err != nil {
			return err
		}
		out, err = t.addSession(in, l)
		return err
	})
	if err != nil {
		return registry.Session{}, fmt.Errorf("sign in by link: %w", err)
	}
	return out, nil
}

// AddSession implements registry.Signing.
func (s *Accounts) AddSession(ctx context.Context, in registry.Session, l registry.Lifetime) (out registry.Session, err error) {
	err = s.write(ctx, func(t *tx) (err error) { out, err = t.addSession(in, l); return err })
	if err != nil {
		return registry.Session{}, fmt.Errorf("sign in: %w", err)
	}
	return out, nil
}

func (t *tx) addSession(s registry.Session, l registry.Lifetime) (registry.Session, error) {
	expires := t.Now + l.Most.Microseconds()
	if s.TokenID != "" {
		tok, err := t.goodToken(s.TokenID)
		if err != nil {
			return s, err
		}
		s.Name, s.Role, s.Collections = tok.Name, tok.Role, tok.Collections
		if tok.ExpiresAt != nil {
			expires = min(expires, sqldb.Micros(*tok.ExpiresAt))
		}
	}
	if s.Collections == nil {
		s.Collections = []string{}
	}
	collections, err := json.Marshal(s.Collections)
	if err != nil {
		return s, fmt.Errorf("encode collections of %s: %w", s.Name, err)
	}
	if err := t.Do(`DELETE FROM session WHERE expires_at <= $1 OR seen_at + idle <= $1`, t.Now); err != nil {
		return s, err
	}
	if err := t.endLongestUnused(s); err != nil {
		return s, err
	}
	n, err := t.Exec(`INSERT INTO session (id, hash, token_id, subject, name, role, collections, method, agent, address, created_at, seen_at, idle, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13) ON CONFLICT DO NOTHING`,
		s.ID, s.Hash, s.TokenID, s.Subject, sqldb.Clean(s.Name), s.Role, string(collections), s.Method, sqldb.Clean(s.Agent), sqldb.Clean(s.Address),
		t.Now, l.Idle.Microseconds(), expires)
	if err != nil {
		return s, err
	}
	if n == 0 {
		return s, registry.ErrTaken
	}
	stored, err := scanSession(t.Row(selectSession+`WHERE s.id = $1`, s.ID))
	if err != nil {
		return s, err
	}
	return stored, t.noteSession(stored, registry.EventSignedIn, stored.Name)
}

// endLongestUnused ends the longest unused sessions of the same token or subject, so that there is
// room for one more.
func (t *tx) endLongestUnused(of registry.Session) error {
	for {
		found, err := scanSession(t.Row(selectSession+`WHERE s.token_id = $1 AND s.subject = $2 ORDER BY s.seen_at DESC, s.created_at DESC, s.id LIMIT 1 OFFSET $3`,
			of.TokenID, of.Subject, registry.MostSessions-1))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM session WHERE id = $1`, found.ID); err != nil {
			return err
		}
		if err := t.noteSession(found, registry.EventSessionEnded, of.Name); err != nil {
			return err
		}
	}
}

// noteSession writes an event of a session. It contains nothing that would let a reader use the
// session.
func (t *tx) noteSession(s registry.Session, kind, actor string) error {
	return t.Event(s.ID, 0, kind, actor, struct {
		Name    string                `json:"name"`
		Role    registry.Role         `json:"role"`
		Method  registry.SignInMethod `json:"method"`
		Subject string                `json:"subject,omitempty"`
		Address string                `json:"address,omitempty"`
		Agent   string                `json:"agent,omitempty"`
	}{s.Name, s.Role, s.Method, s.Subject, s.Address, s.Agent})
}

// SessionByHash implements registry.Signing.
func (s *Accounts) SessionByHash(ctx context.Context, hash string, active bool) (registry.Session, error) {
	now := s.db.Now()
	found, err := scanSession(s.db.Read.QueryRowContext(ctx, selectSession+`WHERE `+goodSession+`AND s.hash = $2`, sqldb.Micros(now), hash))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return registry.Session{}, fmt.Errorf("session: %w", registry.ErrNotFound)
	case err != nil:
		return registry.Session{}, fmt.Errorf("look up session: %w", err)
	}
	if !active || now.Sub(found.SeenAt) < min(seenEvery, found.Idle/10) {
		return found, nil
	}
	// A delayed request must not revive a session that has expired since the query above.
	err = s.write(ctx, func(t *tx) error {
		return t.Do(`UPDATE session SET seen_at = $2 WHERE hash = $1 AND seen_at < $2 AND seen_at + idle > $2`, hash, t.Now)
	})
	if err != nil {
		return registry.Session{}, fmt.Errorf("note use of session: %w", err)
	}
	if found.TokenID != "" {
		s.uses.note(found.TokenID, sqldb.Micros(now))
	}
	return found, nil
}

// Sessions implements registry.Signing.
func (s *Accounts) Sessions(ctx context.Context) (out []registry.Session, err error) {
	ask := s.db.Read.Ask(ctx, selectSession+`WHERE `+goodSession+`ORDER BY s.seen_at DESC, s.created_at DESC, s.id`, sqldb.Micros(s.db.Now()))
	return sqldb.Collect(ask, "list sessions", func(row sqldb.Scanner) (registry.Session, error) {
		found, err := scanSession(row)
		found.Hash = "" // a list does not need it
		return found, err
	})
}

// EndSession implements registry.Signing.
func (s *Accounts) EndSession(ctx context.Context, id, kind, actor string) error {
	err := s.write(ctx, func(t *tx) error {
		found, err := scanSession(t.Row(selectSession+`WHERE `+goodSession+`AND s.id = $2`, t.Now, id))
		if errors.Is(err, sql.ErrNoRows) {
			return registry.ErrNotFound
		} else if err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM session WHERE id = $1`, id); err != nil {
			return err
		}
		return t.noteSession(found, kind, actor)
	})
	if err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	return nil
}
