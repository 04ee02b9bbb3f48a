package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// insertLog writes lines of logs. A renewal that was not answered is sent again, with the same
// lines.
var insertLog = sqldb.InsertNew(`INSERT INTO attempt_log (item_id, n, seq, at, level, text)`, `($1, $2, $3, $4, $5, $6)`)

// keepLog keeps lines that a live attempt logged, and drops those for which there is no room.
func (t *Tx) keepLog(l registry.Lease, lines []registry.LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	var newest int64
	rows := make([][]any, len(lines))
	for i, line := range lines {
		newest = max(newest, line.Seq)
		at := t.Now
		if !line.At.IsZero() {
			at = min(sqldb.Micros(line.At), at)
		}
		rows[i] = []any{l.ItemID, l.N, line.Seq, at, levelOf(line.Level), oneLine(line.Text)}
	}
	if err := t.InsertRows(insertLog, rows); err != nil {
		return fmt.Errorf("keep the log of item %s: %w", l.ItemID, err)
	}
	if newest > registry.MostLogLines {
		if err := t.Do(`DELETE FROM attempt_log WHERE item_id = $1 AND n = $2 AND seq <= $3`, l.ItemID, l.N, newest-registry.MostLogLines); err != nil {
			return fmt.Errorf("drop old lines of the log of item %s: %w", l.ItemID, err)
		}
	}
	if l.N > registry.MostLogs {
		if err := t.Do(`DELETE FROM attempt_log WHERE item_id = $1 AND n <= $2`, l.ItemID, l.N-registry.MostLogs); err != nil {
			return fmt.Errorf("drop old logs of item %s: %w", l.ItemID, err)
		}
	}
	return nil
}

// levelOf returns a known level.
func levelOf(level string) string {
	if slices.Contains([]string{"DEBUG", "INFO", "WARN", "ERROR"}, level) {
		return level
	}
	return "INFO"
}

// oneLine makes a text fit for one line on every screen.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, sqldb.Clean(text))
}

// Log implements registry.AttemptReader.
func (e *Engine) Log(ctx context.Context, q registry.LogQuery) (page registry.Page[registry.LogLine], err error) {
	n, seq, err := q.Cursor()
	if err != nil {
		return page, err
	}
	if q.Limit <= 0 {
		return page, errors.New("read a log: no limit")
	}
	query, args := `SELECT n, seq, at, level, text FROM attempt_log WHERE item_id = $1`, []any{q.ItemID}
	than, order := `>`, ` ORDER BY n, seq`
	if q.Newest {
		than, order = `<`, ` ORDER BY n DESC, seq DESC`
	}
	if q.After != "" {
		query, args = query+` AND (n, seq) `+than+` ($2, $3)`, append(args, n, seq)
	}
	rows, err := sqldb.Collect(e.db.Read.Ask(ctx, query+order+sqldb.Limit(q.Limit+1), args...), "read the log of "+q.ItemID, scanLogLine)
	if err != nil {
		return page, err
	}
	page.Rows = rows
	if len(rows) > q.Limit {
		page.Rows = rows[:q.Limit]
		last := page.Rows[q.Limit-1]
		page.Next = registry.LogCursor(last.N, last.Seq)
	}
	countDropped(page.Rows, rows, q.Newest, registry.LogLine{N: n, Seq: seq})
	return page, nil
}

func scanLogLine(row sqldb.Scanner) (l registry.LogLine, err error) {
	var at int64
	err = row.Scan(&l.N, &l.Seq, &at, &l.Level, &l.Text)
	l.At = sqldb.FromMicros(at)
	return l, err
}

// countDropped sets how many lines are missing before each line. all are the rows with the next one,
// if there is one; cursor is the line before the first row, if these are not the newest.
func countDropped(rows, all []registry.LogLine, newest bool, cursor registry.LogLine) {
	for i := range rows {
		var before registry.LogLine
		switch {
		case newest && i+1 < len(all):
			before = all[i+1]
		case !newest && i > 0:
			before = all[i-1]
		case !newest:
			before = cursor
		}
		rows[i].Dropped = rows[i].Seq - 1
		if before.N == rows[i].N {
			rows[i].Dropped -= before.Seq
		}
	}
}
