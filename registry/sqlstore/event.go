package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
)

// actorRegistry is the actor of what the Registry does by itself.
const actorRegistry = "registry"

// actorWorker is the actor of what workers settle.
const actorWorker = "worker"

// entry is an event to be written.
type entry struct {
	itemID      string
	attempt     int64
	kind, actor string
	data        any
	collection  string // "": that of the item, if there is such an item
	part        bool   // of an act that has its own entry in the audit log
}

// event appends one event of an item, with its collection.
func (t *tx) event(itemID string, attempt int64, kind, actor string, data any) error {
	return t.note(entry{itemID: itemID, attempt: attempt, kind: kind, actor: actor, data: data})
}

// note appends one event. Writing transactions are serialised until their commit can be seen, so the feed's cursor can be
// given inside them: nobody who has read up to a number finds a smaller one later (R17).
func (t *tx) note(e entry) error {
	text, err := json.Marshal(e.data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.kind, err)
	}
	if e.data == nil {
		text = []byte("{}")
	}
	audited := int64(0)
	if !e.part && t.audit == "" && isAct(e.kind, e.actor) {
		audited = 1
	}
	t.wrote = true
	t.events = append(t.events, []any{
		newID(), clean(e.itemID), e.attempt, clean(e.kind), clean(e.actor), t.now, string(text), clean(e.collection), t.audit, audited,
	})
	return nil
}

// writeEvents writes what was noted, many events a statement. They get their numbers here, in the order in which they were
// noted. Only the end of the transaction calls it: written inside a savepoint, they could be undone with another write.
func (t *tx) writeEvents() error {
	if len(t.events) == 0 {
		return nil
	}
	var last int64
	if err := t.get(`SELECT COALESCE(MAX(feed_seq), 0) FROM event`, nil, &last); err != nil {
		return fmt.Errorf("look for the feed's end: %w", err)
	}
	var rows [][]any
	for _, e := range t.events {
		last++
		rows = append(rows, append([]any{last}, e...))
	}
	t.events = nil
	if err := t.insertRows(insertEvent, rows); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// keepCollection tells noted events of an item whose row goes which collection it was in.
func (t *tx) keepCollection(it registry.WorkItem) {
	const itemID, collection = 1, 7
	for _, e := range t.events {
		if e[itemID] == it.ID {
			e[collection] = it.Collection
		}
	}
}

// insertEvent is the statement that writes events.
var insertEvent = insertInto(
	`INSERT INTO event (feed_seq, id, item_id, attempt, type, actor, at, data, collection, audit_id, audited)`,
	`($1, $2, $3, $4, $5, $6, $7, $8, COALESCE((SELECT collection FROM work_item WHERE id = $3), $9), $10, $11)`)

// isAct says whether an event is what a person did or was refused.
func isAct(kind, actor string) bool {
	switch {
	case kind == registry.EventRefused:
		return true
	case actor == "" || actor == actorRegistry || actor == actorWorker:
		return false
	}
	return !slices.Contains(systemActs, kind)
}

// systemActs are the types of events that workers and the Registry bring about, whoever their actor is.
var systemActs = func() (kinds []string) {
	for _, t := range registry.Transitions() {
		if t.By == "worker" || t.By == "registry" {
			kinds = append(kinds, string(t.Act))
		}
	}
	return kinds
}()

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
