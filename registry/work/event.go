package work

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// ActorRegistry is the actor of what the Registry does on its own.
const ActorRegistry = "registry"

// ActorWorker is the actor of what workers settle.
const ActorWorker = "worker"

// Entry is an event to write.
type Entry struct {
	ItemID      string
	attempt     int64
	Kind, Actor string
	Data        any
	Collection  string // "": the item's, if there is such an item
	part        bool   // part of an act that has its own entry in the audit log
}

// Event appends an event of an item, with the item's collection.
func (t *Tx) Event(itemID string, attempt int64, kind, actor string, data any) error {
	return t.Note(Entry{ItemID: itemID, attempt: attempt, Kind: kind, Actor: actor, Data: data})
}

// Note appends an event. Write transactions are serial until their commit is visible, so the feed's
// numbers can be assigned inside them: a reader at one number never sees a smaller one later (R17).
func (t *Tx) Note(e Entry) error {
	text, err := json.Marshal(e.Data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.Kind, err)
	}
	if e.Data == nil {
		text = []byte("{}")
	}
	audited := int64(0)
	if !e.part && t.Audit == "" && isAct(e.Kind, e.Actor) {
		audited = 1
	}
	t.wrote = true
	t.events = append(t.events, []any{
		sqldb.NewID(), sqldb.Clean(e.ItemID), e.attempt, sqldb.Clean(e.Kind), sqldb.Clean(e.Actor), t.Now, string(text), sqldb.Clean(e.Collection), t.Audit, audited,
	})
	return nil
}

// writeEvents writes the noted events, many in one statement, and numbers them in the order in
// which they were noted. Only the end of the transaction calls it: a savepoint that is rolled back
// would take other writes' events with it.
func (t *Tx) writeEvents() error {
	if len(t.events) == 0 {
		return nil
	}
	var last int64
	if err := t.Get(`SELECT COALESCE(MAX(feed_seq), 0) FROM event`, nil, &last); err != nil {
		return fmt.Errorf("look for the feed's end: %w", err)
	}
	var rows [][]any
	for _, e := range t.events {
		last++
		rows = append(rows, append([]any{last}, e...))
	}
	t.events = nil
	if err := t.InsertRows(insertEvent, rows); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// setEventCollection sets the collection of an item's noted events, whose row is about to be
// deleted.
func (t *Tx) setEventCollection(it registry.WorkItem) {
	const itemID, collection = 1, 7
	for _, e := range t.events {
		if e[itemID] == it.ID {
			e[collection] = it.Collection
		}
	}
}

// insertEvent writes events.
var insertEvent = sqldb.InsertInto(
	`INSERT INTO event (feed_seq, id, item_id, attempt, type, actor, at, data, collection, audit_id, audited)`,
	`($1, $2, $3, $4, $5, $6, $7, $8, COALESCE((SELECT collection FROM work_item WHERE id = $3), $9), $10, $11)`)

// isAct reports whether an event belongs to the audit log: a person's act, a refused request or a backup.
func isAct(kind, actor string) bool {
	switch {
	case kind == registry.EventRefused, kind == registry.EventBackupMade:
		return true
	case actor == "" || actor == ActorRegistry || actor == ActorWorker:
		return false
	}
	return !slices.Contains(systemActs, kind)
}

// systemActs are the types of events that workers and the Registry cause, even when their actor is
// a person.
var systemActs = func() (kinds []string) {
	for _, t := range registry.Transitions() {
		if t.By == "worker" || t.By == "registry" {
			kinds = append(kinds, string(t.Act))
		}
	}
	return kinds
}()

// Moved is the data of a transition's event.
type Moved struct {
	From   registry.Stage      `json:"from,omitempty"`
	Stage  registry.Stage      `json:"stage"`
	Status registry.Status     `json:"status"`
	Reason string              `json:"reason,omitempty"`
	Error  string              `json:"error,omitempty"`
	Class  registry.ErrorClass `json:"error_class,omitempty"`
	Worker string              `json:"worker,omitempty"`
	Wait   string              `json:"wait,omitempty"`
	Spec   any                 `json:"spec,omitempty"` // of an item that is neither batch nor job
}

// NotedItems returns the items of the events that this transaction has noted and not written.
func (t *Tx) NotedItems() (items []string) {
	for _, e := range t.events {
		if id, ok := e[1].(string); ok {
			items = append(items, id)
		}
	}
	return items
}
