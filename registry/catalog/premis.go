package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/receipt"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// chainEnd is where an object's chain of events ends.
type chainEnd struct {
	seq  int64
	hash string
}

// premis writes preservation events of an item's object, each chained to the one before it. Those that are there are left.
func (t *tx) premis(of subject, events ...registry.Premis) error {
	if len(events) == 0 {
		return nil
	}
	if err := of.tells(events); err != nil {
		return err
	}
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	known, err := t.Strings(`SELECT id FROM premis_event WHERE `+t.Among("id"), t.List(ids))
	if err != nil {
		return fmt.Errorf("look for preservation events: %w", err)
	}
	there := map[string]bool{}
	for _, id := range known {
		there[id] = true
	}
	ends := map[string]chainEnd{}
	for _, e := range events {
		if there[e.ID] {
			continue
		}
		there[e.ID] = true
		end, ok := ends[e.ObjectID]
		if !ok {
			if end, err = t.chainEnd(e.ObjectID); err != nil {
				return err
			}
		}
		// What is hashed is what the table holds, so that it comes to the same when it is read.
		e.Type, e.Agent, e.Outcome, e.Detail, e.At = sqldb.Clean(e.Type), sqldb.Clean(e.Agent), sqldb.Clean(e.Outcome), sqldb.Clean(e.Detail), sqldb.FromMicros(sqldb.Micros(e.At))
		e.Seq = end.seq + 1
		e.Hash = receipt.EventOf(e).Hash(end.hash)
		ends[e.ObjectID] = chainEnd{e.Seq, e.Hash}
		err := t.Do(`INSERT INTO premis_event (id, object_id, version, item_id, type, at, agent, outcome, detail, seq, hash)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			e.ID, e.ObjectID, e.Version, e.ItemID, e.Type, sqldb.Micros(e.At), e.Agent, e.Outcome, e.Detail, e.Seq, e.Hash)
		if err != nil {
			return fmt.Errorf("write preservation event %s: %w", e.Type, err)
		}
	}
	return nil
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

// PremisEvents implements registry.Reading.
func (s *Catalog) PremisEvents(ctx context.Context, objectID, after string, limit int) (page registry.Page[registry.Premis], err error) {
	seq, at, id := int64(-1), int64(0), ""
	if after != "" {
		if seq, at, id, err = parseEventCursor(after); err != nil {
			return page, err
		}
	}
	limit = sqldb.PageSize(limit)
	ask := s.db.Read.Ask(ctx, `SELECT id, object_id, version, item_id, type, at, agent, outcome, detail, seq, hash
		FROM premis_event WHERE object_id = $1 AND (seq, at, id) > ($2, $3, $4) ORDER BY seq, at, id LIMIT $5`,
		objectID, seq, at, id, limit+1)
	rows, err := sqldb.Collect(ask, "list events of "+objectID, scanPremis)
	return sqldb.PageOf(rows, limit, func(last registry.Premis) string {
		return registry.EventCursor(last.Seq, sqldb.Micros(last.At), last.ID)
	}), err
}

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
