package reportfile

import (
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// CSV writes jobs as a table (RFC 4180) with a header line. It puts a ' before texts that a
// spreadsheet would take for a formula, because names and errors come from depositors. JSON has the
// original text.
func CSV(w io.Writer, jobs iter.Seq2[registry.JobResult, error]) error {
	out := csv.NewWriter(w)
	err := out.Write([]string{
		"row", "line", "item_id", "name", "state", "ark", "version", "local_ids", "error_class", "error",
		"fix", "change", "stage", "error_code", "cause", "preserved", "repeats_row", "repeats_line",
		"title",
	})
	for j, jobErr := range jobs {
		if err = errors.Join(err, jobErr); err != nil {
			break
		}
		version, row, line := "", "", ""
		if j.Version > 0 {
			version = strconv.Itoa(j.Version)
		}
		if j.Repeats != nil {
			row, line = strconv.FormatInt(j.Repeats.Row, 10), strconv.FormatInt(j.Repeats.Line, 10)
		}
		err = out.Write([]string{
			strconv.FormatInt(j.Row, 10), strconv.FormatInt(j.Line, 10), j.ItemID, Cell(j.Name), string(j.State), j.ARK, version,
			Cell(strings.Join(j.LocalIDs, "; ")), string(j.Class), Cell(j.Error),
			Cell(j.Fix), string(j.Change), string(j.Stage), Cell(j.Code), j.Cause,
			strconv.FormatBool(j.Preserved || j.State == registry.StateCompleted),
			row, line,
			Cell(j.Title),
		})
	}
	out.Flush()
	return errors.Join(err, out.Error())
}

// Cell returns a cell that no spreadsheet takes for a formula.
func Cell(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
