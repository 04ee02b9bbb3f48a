package sqlstore

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// newItem is an item to be born.
type newItem struct {
	id, tenant, collection, parent string
	line, row                      int64 // as in registry.NewJob
	action                         registry.Action
	stage                          registry.Stage
	status                         registry.Status
	priority                       int
	name                           string
	spec                           registry.Spec
	fingerprint                    string
	class                          registry.ErrorClass
	note                           string
	code                           string // of the note of one that is born failed
	actor                          string
	input                          any    // the spec of actions that have one of their own; its event tells it, too, unless
	told                           any    // this is set, which it tells in its place
	delay                          int64  // microseconds until it may run
	graph                          string // "" for none
	blockers                       int64  // requirements that are open; the caller writes their edges
	storages                       []string
	optional                       []registry.Stage
	limits                         []registry.UploadLimit // of the uploads of a batch's collection
}

// birth is how an item begins.
type birth struct {
	act             registry.Act
	nudge, finished sql.NullInt64
	ready           int
}

// birth says how the item begins at a moment.
func (n newItem) birth(now int64) (birth, error) {
	b := birth{act: registry.ActSubmit}
	switch {
	case n.status == registry.Prepare:
		b.act = registry.ActPrepare
	case n.status.Settled():
		b.act = registry.ActReject
		b.finished = sql.NullInt64{Int64: now, Valid: true}
	case n.blockers > 0:
		b.ready = 2 // blocked
	default:
		b.nudge = sql.NullInt64{Int64: now + n.delay, Valid: true}
		if n.delay <= 0 {
			b.ready = 1
		}
	}
	return b, registry.CheckAct(registry.Position{Action: n.action, Stage: n.stage}, b.act, n.status)
}

// values are the item's row, with its number in the order in which items came.
func (n newItem) values(b birth, seq, now int64) ([]any, error) {
	var input any = n.spec
	if n.input != nil {
		input = n.input
	}
	spec, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	var first string
	var others []string
	if len(n.storages) > 0 {
		first, others = n.storages[0], n.storages[1:]
	}
	var why cause
	if n.status == registry.Failed {
		why = causeOf(n.stage, n.class, n.code, "", clean(n.note))
	}
	return []any{
		seq, n.id, n.tenant, n.collection,
		sql.NullString{String: n.parent, Valid: n.parent != ""},
		n.line, n.row, n.action, n.stage,
		n.status, n.priority, rank(now, n.priority), clean(n.name), string(spec), n.fingerprint, n.class, clean(n.note),
		now + n.delay, b.nudge, clean(n.actor), now, b.finished, n.graph, n.blockers,
		first, wordList(others), wordList(n.optional), b.ready,
		why.fingerprint, why.code, why.host, bit(n.spec.Own(n.action)),
	}, nil
}

// insertItem is the statement that writes items.
var insertItem = insertInto(
	`INSERT INTO work_item (seq, id, tenant, collection, parent_id, row_no, ordinal, action, stage, status, priority, rank, name, spec,
		fingerprint, error_class, note, run_at, nudge_at, created_by, created_at, updated_at, finished_at, graph_id, blocker_count,
		volume, other_storages, optional, ready, cause, cause_code, cause_host, own)`,
	`($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $21, $22, $23, $24, $25, $26, $27, $28,
		$29, $30, $31, $32)`)

// insert makes items, each with its event and, when it is pending, its message.
func (t *tx) insert(items ...newItem) error {
	var seq int64
	if err := t.get(`SELECT COALESCE(MAX(seq), 0) FROM work_item`, nil, &seq); err != nil {
		return fmt.Errorf("look for the last item: %w", err)
	}
	var rows [][]any
	for _, n := range items {
		b, err := n.birth(t.now)
		if err != nil {
			return err
		}
		seq++
		row, err := n.values(b, seq, t.now)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if id, ok := registry.UploadID(n.spec.URL); ok && n.action == registry.Batch {
			if err := t.assign(id, n.collection, n.limits); err != nil {
				return err
			}
		}
		if b.ready == 1 {
			t.wake = true
			if err := t.openLane(n.stage, n.collection); err != nil {
				return err
			}
		}
		err = t.note(entry{
			itemID: n.id, kind: string(b.act), actor: n.actor, collection: n.collection, part: n.parent != "",
			data: moved{Stage: n.stage, Status: n.status, Error: n.note, Class: n.class, Spec: cmp.Or(n.told, n.input)},
		})
		if err != nil {
			return err
		}
	}
	if err := t.insertRows(insertItem, rows); err != nil {
		return fmt.Errorf("insert items: %w", err)
	}
	return nil
}
