package work

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// NewItem is an item to insert.
type NewItem struct {
	ID, Tenant, Collection, Parent string
	Line, Row                      int64 // as in registry.NewJob
	Action                         registry.Action
	Stage                          registry.Stage
	Status                         registry.Status
	Priority                       int
	Name                           string
	Spec                           registry.Spec
	Fingerprint                    string
	Class                          registry.ErrorClass
	Note                           string
	Code                           string // failure code of an item that is inserted as failed
	Actor                          string
	Input                          any    // the spec, for actions with a spec type of their own; also the event's data
	EventSpec                      any    // replaces Input in the event
	Delay                          int64  // microseconds until it may run
	Graph                          string // "" for none
	Blockers                       int64  // open requirements; the caller inserts their edges
	Storages                       []string
	Optional                       []registry.Stage
}

// birth is the initial condition of an item.
type birth struct {
	act             registry.Act
	nudge, finished sql.NullInt64
	ready           int
}

// birth returns how the item begins at a time in microseconds.
func (n NewItem) birth(now int64) (birth, error) {
	b := birth{act: registry.ActSubmit}
	switch {
	case n.Status == registry.Prepare:
		b.act = registry.ActPrepare
	case n.Status.Settled():
		b.act = registry.ActReject
		b.finished = sql.NullInt64{Int64: now, Valid: true}
	case n.Blockers > 0:
		b.ready = 2 // blocked
	default:
		b.nudge = messageAt(n.Stage, now+n.Delay)
		if n.Delay <= 0 {
			b.ready = 1
		}
	}
	return b, registry.CheckAct(registry.Position{Action: n.Action, Stage: n.Stage}, b.act, n.Status)
}

// detail returns the item's row of work_detail.
func (n NewItem) detail() ([]any, error) {
	var input any = n.Spec
	if n.Input != nil {
		input = n.Input
	}
	spec, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	payload := ""
	if n.Action == registry.Batch {
		payload = n.Spec.URL
	}
	return []any{n.ID, string(spec), payload}, nil
}

// insertDetail writes rows of work_detail.
var insertDetail = sqldb.InsertInto(`INSERT INTO work_detail (item_id, spec, payload)`, `($1, $2, $3)`)

// values returns the item's row of work_item. seq numbers items in the order of insertion.
func (n NewItem) values(b birth, seq, now int64) []any {
	var first string
	var others []string
	if len(n.Storages) > 0 {
		first, others = n.Storages[0], n.Storages[1:]
	}
	var why cause
	if n.Status == registry.Failed {
		why = causeOf(n.Stage, n.Class, n.Code, "", sqldb.Clean(n.Note))
	}
	return []any{
		seq, n.ID, n.Tenant, n.Collection,
		sql.NullString{String: n.Parent, Valid: n.Parent != ""},
		n.Line, n.Row, n.Action, n.Stage,
		n.Status, n.Priority, Rank(now, n.Priority), sqldb.Clean(n.Name), n.Fingerprint, n.Class, sqldb.Clean(n.Note),
		now + n.Delay, b.nudge, sqldb.Clean(n.Actor), now, b.finished, n.Graph, n.Blockers,
		first, sqldb.WordList(others), sqldb.WordList(n.Optional), b.ready,
		why.fingerprint, why.code, why.host, sqldb.Bit(n.Spec.Own(n.Action)), n.title(),
	}
}

// title returns the title by which lists show the item, and by which it is found.
func (n NewItem) title() string {
	if !n.Action.Titled() {
		return ""
	}
	return sqldb.Clean(n.Spec.OwnTitle())
}

// insertItem writes rows of work_item.
var insertItem = sqldb.InsertInto(
	`INSERT INTO work_item (seq, id, tenant, collection, parent_id, row_no, ordinal, action, stage, status, priority, rank, name,
		fingerprint, error_class, note, run_at, nudge_at, created_by, created_at, updated_at, finished_at, graph_id, blocker_count,
		volume, other_storages, optional, ready, cause, cause_code, cause_host, own, title)`,
	`($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20, $21, $22, $23, $24, $25, $26, $27, $28,
		$29, $30, $31, $32)`)

// Insert inserts items, each with its event. Items that are ready become due at once.
func (t *Tx) Insert(items ...NewItem) error {
	var seq int64
	if err := t.Get(`SELECT COALESCE(MAX(seq), 0) FROM work_item`, nil, &seq); err != nil {
		return fmt.Errorf("look for the last item: %w", err)
	}
	var rows, details [][]any
	for _, n := range items {
		b, err := n.birth(t.Now)
		if err != nil {
			return err
		}
		seq++
		detail, err := n.detail()
		if err != nil {
			return err
		}
		rows, details = append(rows, n.values(b, seq, t.Now)), append(details, detail)
		if b.ready == 1 {
			t.wake = true
			if err := t.openLane(n.Stage, n.Collection); err != nil {
				return err
			}
		}
		err = t.Note(Entry{
			ItemID: n.ID, Kind: string(b.act), Actor: n.Actor, Collection: n.Collection, part: n.Parent != "",
			Data: Moved{Stage: n.Stage, Status: n.Status, Error: n.Note, Class: n.Class, Spec: cmp.Or(n.EventSpec, n.Input)},
		})
		if err != nil {
			return err
		}
	}
	if err := t.InsertRows(insertItem, rows); err != nil {
		return fmt.Errorf("insert items: %w", err)
	}
	if err := t.InsertRows(insertDetail, details); err != nil {
		return fmt.Errorf("insert details of items: %w", err)
	}
	return nil
}
