package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
)

// actorRegistry is the actor of what the Registry does by itself.
const actorRegistry = "registry"

// event appends one event. SQLite has one writer, so the feed's cursor can be given inside the transaction (R17).
func (t *tx) event(itemID string, attempt int64, kind, actor string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", kind, err)
	}
	if data == nil {
		text = []byte("{}")
	}
	t.wrote = true
	_, err = t.exec(`INSERT INTO event (id, feed_seq, item_id, attempt, type, actor, at, data, audit_id)
		VALUES ($1, (SELECT COALESCE(MAX(feed_seq), 0) + 1 FROM event), $2, $3, $4, $5, $6, $7, $8)`,
		newID(), clean(itemID), attempt, clean(kind), clean(actor), t.now, string(text), t.audit)
	if err != nil {
		return fmt.Errorf("write event %s of %s: %w", kind, itemID, err)
	}
	return nil
}

// moved is the data of a transition's event.
type moved struct {
	From   registry.Stage      `json:"from,omitempty"`
	Stage  registry.Stage      `json:"stage"`
	Status registry.Status     `json:"status"`
	Reason string              `json:"reason,omitempty"`
	Error  string              `json:"error,omitempty"`
	Class  registry.ErrorClass `json:"error_class,omitempty"`
	Worker string              `json:"worker,omitempty"`
	Wait   string              `json:"wait,omitempty"`
	Spec   any                 `json:"spec,omitempty"` // of an item that is no batch or job
}

// newID returns a UUIDv7: unique, and sorted by time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// clean makes text fit for every database and every reader: valid UTF-8, no NUL, at most 2,000 bytes (R10).
func clean(s string) string {
	const limit = 2000
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
