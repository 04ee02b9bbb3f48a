package sqlstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
)

// loadNoteKey reads the secret that items' note keys are made of, which is drawn when there is none yet. It is a part of the record: it goes into
// backups with it, and comes back with them. Of several processes at once one draws it.
func (s *Store) loadNoteKey(ctx context.Context) error {
	const find = `SELECT value FROM setting WHERE name = 'note-key'`
	var text string
	err := s.db.QueryRowContext(ctx, find).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		drawn := make([]byte, sha256.Size)
		_, _ = rand.Read(drawn) // which never fails
		_, err = s.db.ExecContext(ctx, `INSERT INTO setting (name, value, reason, actor, at) VALUES ('note-key', $1, '', 'registry', 0)
			ON CONFLICT (name) DO NOTHING`, hex.EncodeToString(drawn))
		if err == nil {
			err = s.db.QueryRowContext(ctx, find).Scan(&text)
		}
	}
	if err == nil {
		s.notes, err = hex.DecodeString(text)
	}
	if err == nil && len(s.notes) != sha256.Size {
		err = fmt.Errorf("it has %d bytes, not %d", len(s.notes), sha256.Size)
	}
	if err != nil {
		return fmt.Errorf("read the key of interim data: %w", err)
	}
	return nil
}

// noteKey is an item's own key: whoever has one item's can make no other's of it.
func (s *Store) noteKey(itemID string) []byte {
	h := hmac.New(sha256.New, s.notes)
	h.Write([]byte("interim data of item " + itemID))
	return h.Sum(nil)
}
