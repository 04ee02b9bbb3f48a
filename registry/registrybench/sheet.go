package registrybench

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// sheet is rows of a table that are written together: for each of a million rows, a statement would
// take an hour.
type sheet struct {
	table   string
	columns []string
	rows    [][]any
}

func newSheet(table, columns string) sheet {
	return sheet{table: table, columns: strings.Fields(columns)}
}

func sheetOfItems() sheet {
	return newSheet("work_item", `seq id tenant collection parent_id row_no action stage status priority rank name error_class note
		run_at nudge_at created_by created_at updated_at finished_at attempt retry_count blocker_count size_bytes volume ready
		cause cause_code cause_host`)
}

func sheetOfDetails() sheet { return newSheet("work_detail", "item_id spec payload") }

func sheetOfEvents() sheet {
	return newSheet("event", "id feed_seq item_id attempt type actor at data collection")
}

func sheetOfAttempts() sheet {
	return newSheet("attempt", `item_id n request_id stage worker version started_at lease_until stuck_after progress_at max_attempts
		finished_at outcome response`)
}

func sheetOfDeps() sheet {
	return newSheet("work_dep", "item_id requires_id wait_for at_start")
}

// add puts a row on the sheet.
func (s *sheet) add(values ...any) { s.rows = append(s.rows, values) }

// write writes all rows, some in one statement. SQLite takes time by the square of how many values
// one has.
func (s *sheet) write(ctx context.Context, tx *sql.Tx) error {
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

func (s *sheet) statement(rows int) string {
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
