package work

import (
	"context"
	"fmt"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// cause is the part of a failure's cause that its row stores. The rest follows from the note.
type cause struct{ fingerprint, code, host string }

func causeOf(stage registry.Stage, class registry.ErrorClass, code, host, note string) cause {
	c := registry.CauseOf(stage, class, code, host, note)
	return cause{c.Fingerprint(), c.Code, c.Host}
}

// overCause is the cause of failed items that nobody need see to any more. It is no fingerprint.
const overCause = "over"

// StandingFailure is the condition of a failed item i that somebody has to see to.
const StandingFailure = "i.cause <> '" + overCause + "'"

// FailuresOver takes failed items out of the list of failures, since nobody need see to them any
// more. They stay failed. Items that have not failed, and repeats, change nothing.
func (t *Tx) FailuresOver(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	err := t.Do(`UPDATE work_item SET cause = $2 WHERE `+t.Among("id")+` AND status = 'failed'`, t.List(ids), overCause)
	if err != nil {
		return fmt.Errorf("take items out of the failures: %w", err)
	}
	return nil
}

// Bounds of nameCauses: items in one transaction, transactions in one call.
const (
	causesAtOnce = 1000
	causesTimes  = 10
)

// nameCauses finds the causes of failed items without one: they failed under an older program. It
// does a bounded amount. Without such items it only looks into an index.
func (e *Engine) nameCauses(ctx context.Context) error {
	for range causesTimes {
		var some bool
		err := e.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM work_item i WHERE i.status = 'failed' AND i.cause = '')`).Scan(&some)
		if err == nil && some {
			err = e.Write(ctx, (*Tx).nameCauses)
		}
		if err != nil || !some {
			return err
		}
	}
	return nil
}

// nameCauses finds the causes of up to causesAtOnce failed items.
func (t *Tx) nameCauses() error {
	found, err := t.causeless()
	if err != nil {
		return fmt.Errorf("look for failures without a cause: %w", err)
	}
	for c, seqs := range found.All() {
		err := t.Do(`UPDATE work_item SET cause = $2, cause_code = $3, cause_host = $4 WHERE `+t.Among("id")+` AND status = 'failed'`,
			t.List(seqs), c.fingerprint, c.code, c.host)
		if err != nil {
			return fmt.Errorf("write causes of failures: %w", err)
		}
	}
	return nil
}

// causeless returns failed items without a cause, grouped by the cause that they should have.
func (t *Tx) causeless() (found sqldb.IDsByKey[cause], err error) {
	found = sqldb.IDsByKey[cause]{}
	err = sqldb.Each(t.Ask(`SELECT i.id, i.stage, i.error_class, i.note FROM work_item i
		WHERE i.status = 'failed' AND i.cause = '' LIMIT `+strconv.Itoa(causesAtOnce)), "", func(row sqldb.Scanner) error {
		var id, note string
		var stage registry.Stage
		var class registry.ErrorClass
		if err := row.Scan(&id, &stage, &class, &note); err != nil {
			return err
		}
		found.Add(causeOf(stage, class, "", "", note), id)
		return nil
	})
	return found, err
}
