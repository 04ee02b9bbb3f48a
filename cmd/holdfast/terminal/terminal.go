// Package terminal writes for people: tables, facts, sizes, times, and displays of progress.
//
// On a narrow terminal it shortens, moves or hides columns (Column). Output to a file or pipe is
// complete. Clean replaces characters in depositors' text that a terminal would obey.
//
// It knows no command, exit code or service.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Width returns the number of columns of the terminal w, 0 if w is not a terminal.
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

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
