package work

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// loadNoteKey reads the secret from which the items' note keys are derived, and creates it on first
// use. The secret is part of the database, so backups contain it. If several processes start at
// once, all use the same one.
func (e *Engine) loadNoteKey(ctx context.Context) error {
	drawn := make([]byte, sha256.Size)
	_, _ = rand.Read(drawn) // it never fails
	text, err := e.db.Setting(ctx, "note-key", ActorRegistry, hex.EncodeToString(drawn))
	if err == nil {
		e.notes, err = hex.DecodeString(text)
	}
	if err == nil && len(e.notes) != sha256.Size {
		err = fmt.Errorf("it has %d bytes, not %d", len(e.notes), sha256.Size)
	}
	if err != nil {
		return fmt.Errorf("read the key of interim data: %w", err)
	}
	return nil
}

// NoteKey returns the key of an item's interim data. The key of one item does not reveal another's.
func (e *Engine) NoteKey(itemID string) []byte {
	h := hmac.New(sha256.New, e.notes)
	h.Write([]byte("interim data of item " + itemID))
	return h.Sum(nil)
}
