package catalog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// chainEnd is the end of an object's chain of events.
type chainEnd struct {
	seq  int64
	hash string
}

// writePremis adds PREMIS events to an object's chain, each with the hash of the one before. It
// skips events that are recorded already. Workers choose the ids. If an id belongs to another
// event, of any object, the event gets an id made from its content, so that nobody can block it. It
// returns the end of the chain, and how many events are new.
func (t *tx) writePremis(of subject, events ...registry.Premis) (end chainEnd, added int, err error) {
	if err := of.check(events); err != nil {
		return end, 0, err
	}
	if end, err = t.chainEnd(of.object); err != nil || len(events) == 0 {
		return end, 0, err
	}
	events = slices.Clone(events)
	ids := make([]string, 0, 2*len(events))
	for i, e := range events {
		// Hash what the table will hold, so that a reader computes the same hash.
		e.ID, e.Type, e.Agent, e.Outcome, e.Detail = sqldb.Clean(e.ID), sqldb.Clean(e.Type), sqldb.Clean(e.Agent), sqldb.Clean(e.Outcome), sqldb.Clean(e.Detail)
		e.At, e.Seq, e.Hash = sqldb.FromMicros(sqldb.Micros(e.At)), 0, ""
		events[i] = e
		ids = append(ids, e.ID, idOfContent(e))
	}
	recorded, err := t.premisByID(ids)
	if err != nil {
		return end, 0, err
	}
	var rows [][]any
	for _, e := range events {
		other, taken := recorded[e.ID]
		if taken && !sameEvent(e, other) {
			e.ID = idOfContent(e)
			_, taken = recorded[e.ID]
		}
		if taken {
			continue
		}
		recorded[e.ID] = e
		e.Seq = end.seq + 1
		e.Hash = receipt.EventOf(e).Hash(end.hash)
		end = chainEnd{e.Seq, e.Hash}
		rows = append(rows, []any{e.ID, e.ObjectID, e.Version, e.ItemID, e.Type, sqldb.Micros(e.At), e.Agent, e.Outcome, e.Detail, e.Seq, e.Hash})
	}
	if err := t.InsertRows(insertPremis, rows); err != nil {
		return end, 0, fmt.Errorf("write preservation events of %s: %w", of.object, err)
	}
	return end, len(rows), nil
}

// insertPremis writes preservation events.
var insertPremis = sqldb.InsertInto(`INSERT INTO premis_event (`+premisColumns+`)`, `($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`)

// premisByID returns the recorded events that have one of the ids.
func (t *tx) premisByID(ids []string) (map[string]registry.Premis, error) {
	known, err := sqldb.Collect(t.Ask(`SELECT `+premisColumns+` FROM premis_event WHERE `+t.Among("id"), t.List(ids)), "look up preservation events", scanPremis)
	recorded := map[string]registry.Premis{}
	for _, e := range known {
		recorded[e.ID] = e
	}
	return recorded, err
}

// sameEvent says whether two events with one id are the same event. A repeat may differ in time.
func sameEvent(a, b registry.Premis) bool { return idOfContent(a) == idOfContent(b) }

// idOfContent is an event's id if its own is taken: a digest of its content, without time and place
// in the chain.
func idOfContent(e registry.Premis) string {
	e.At, e.Seq, e.Hash = time.Time{}, 0, ""
	text, _ := json.Marshal(e) // strings and numbers cannot fail
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func (t *tx) chainEnd(objectID string) (chainEnd, error) {
	end := chainEnd{hash: receipt.Zero}
	err := t.Get(`SELECT seq, hash FROM premis_event WHERE object_id = $1 AND seq > 0 ORDER BY seq DESC LIMIT 1`,
		[]any{objectID}, &end.seq, &end.hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return end, fmt.Errorf("find the end of the events of %s: %w", objectID, err)
	}
	return end, nil
}

// PremisEvents implements registry.Evidencing.
func (s *Catalog) PremisEvents(ctx context.Context, objectID, after string, limit int) (page registry.Page[registry.Premis], err error) {
	seq, at, id := int64(-1), int64(0), ""
	if after != "" {
		if seq, at, id, err = parseEventCursor(after); err != nil {
			return page, err
		}
	}
	limit = sqldb.PageSize(limit)
	ask := s.db.Read.Ask(ctx, `SELECT `+premisColumns+`
		FROM premis_event WHERE object_id = $1 AND (seq, at, id) > ($2, $3, $4) ORDER BY seq, at, id LIMIT $5`,
		objectID, seq, at, id, limit+1)
	rows, err := sqldb.Collect(ask, "list events of "+objectID, scanPremis)
	return sqldb.PageOf(rows, limit, func(last registry.Premis) string {
		return registry.EventCursor(last.Seq, sqldb.Micros(last.At), last.ID)
	}), err
}

const premisColumns = `id, object_id, version, item_id, type, at, agent, outcome, detail, seq, hash`

func scanPremis(row sqldb.Scanner) (p registry.Premis, err error) {
	var at int64
	err = row.Scan(&p.ID, &p.ObjectID, &p.Version, &p.ItemID, &p.Type, &at, &p.Agent, &p.Outcome, &p.Detail, &p.Seq, &p.Hash)
	p.At = sqldb.FromMicros(at)
	return p, err
}

func parseEventCursor(text string) (seq, at int64, id string, err error) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) == 3 {
		var second error
		seq, err = strconv.ParseInt(parts[0], 10, 64)
		at, second = strconv.ParseInt(parts[1], 10, 64)
		if err == nil && second == nil {
			return seq, at, parts[2], nil
		}
	}
	return 0, 0, "", fmt.Errorf("page cursor %q: %w", text, registry.ErrNotFound)
}
