// Package terminal writes what people read: tables and facts, texts of sizes and times, and
// displays that show progress.
//
// What a terminal is too narrow for is shortened, put below its row or left out (Column). What goes
// to a file or a pipe is whole. Clean takes out of a depositor's text what a terminal would obey.
//
// It knows no command, exit code or service.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Width returns the columns of the terminal that w is, 0 when it is none.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// IsTerminal says whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
