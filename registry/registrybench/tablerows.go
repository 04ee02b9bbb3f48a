package registrybench

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// tableRows are rows of a table that are inserted together. One statement per row would take an
// hour for a million rows.
type tableRows struct {
	table   string
	columns []string
	rows    [][]any
}

func newTableRows(table, columns string) tableRows {
	return tableRows{table: table, columns: strings.Fields(columns)}
}

func itemRows() tableRows {
	return newTableRows("work_item", `seq id tenant collection parent_id row_no action stage status priority rank name error_class note
		run_at nudge_at created_by created_at updated_at finished_at attempt retry_count blocker_count size_bytes volume ready
		cause cause_code cause_host`)
}

func detailRows() tableRows { return newTableRows("work_detail", "item_id spec payload") }

func eventRows() tableRows {
	return newTableRows("event", "id feed_seq item_id attempt type actor at data collection")
}

func attemptRows() tableRows {
	return newTableRows("attempt", `item_id n request_id stage worker version started_at lease_until stuck_after progress_at max_attempts
		finished_at outcome response`)
}

func depRows() tableRows {
	return newTableRows("work_dep", "item_id requires_id wait_for at_start")
}

// add adds a row.
func (s *tableRows) add(values ...any) { s.rows = append(s.rows, values) }

// write inserts all rows, several with one statement. SQLite needs time by the square of the number
// of values in a statement.
func (s *tableRows) write(ctx context.Context, tx *sql.Tx) error {
	most := 1000 / len(s.columns)
	for begin := 0; begin < len(s.rows); begin += most {
		rows := s.rows[begin:min(begin+most, len(s.rows))]
		args := make([]any, 0, len(rows)*len(s.columns))
		for _, r := range rows {
			args = append(args, r...)
		}
		if _, err := tx.ExecContext(ctx, s.statement(len(rows)), args...); err != nil {
			return fmt.Errorf("write rows of %s: %w", s.table, err)
		}
	}
	return nil
}

func (s *tableRows) statement(rows int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + s.table + " (" + strings.Join(s.columns, ", ") + ") VALUES ")
	for n := range rows * len(s.columns) {
		switch {
		case n == 0:
			b.WriteString("(")
		case n%len(s.columns) == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(n+1))
	}
	return b.String() + ")"
}
