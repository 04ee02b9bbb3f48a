package work

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// loadNoteKey reads the secret that items' note keys are made of, which is drawn when there is none
// yet. It is a part of the record: it goes into backups with it, and comes back with them. Of
// several processes at once one draws it.
func (e *Engine) loadNoteKey(ctx context.Context) error {
	drawn := make([]byte, sha256.Size)
	_, _ = rand.Read(drawn) // which never fails
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

// noteKey is an item's own key: whoever has one item's can make no other's of it.
func (e *Engine) noteKey(itemID string) []byte {
	h := hmac.New(sha256.New, e.notes)
	h.Write([]byte("interim data of item " + itemID))
	return h.Sum(nil)
}
