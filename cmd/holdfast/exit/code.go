// Package exit defines the exit codes (docs/exit-codes.md), errors that carry a code or advice, and
// the table that maps the errors of other packages to codes. A code's meaning never changes.
//
// It knows no command, terminal or service. An error of a single command is declared by that command
// with Coded.
package exit

// Code is an exit code. As an error it has no text: it ends a command that has already printed its
// errors.
type Code int

// Error implements error.
func (Code) Error() string { return "" }

// Err returns the code as an error, nil for OK.
func (c Code) Err() error {
	if c == OK {
		return nil
	}
	return c
}

// The exit codes (docs/exit-codes.md). Their meanings never change.
const (
	OK          Code = 0
	Failed      Code = 1
	Usage       Code = 2
	Partly      Code = 3
	NotFound    Code = 4
	Temporary   Code = 5
	Content     Code = 6
	Held        Code = 7
	Refused     Code = 8
	NoSpace     Code = 9
	Nothing     Code = 10
	Interrupted Code = 130
)

// Meaning is the explanation of an exit code.
type Meaning struct {
	Code Code
	Text string
}

// Meanings lists all exit codes, for help and docs/exit-codes.md.
func Meanings() []Meaning {
	return []Meaning{
		{OK, "success; with --wait: all completed, now or earlier"},
		{Failed, "failed; with --wait: all failed on system faults, and can be requeued"},
		{Usage, "the command line, a value or the environment is wrong"},
		{Partly, "partly done; with --wait: only some completed, or content and system faults are mixed"},
		{NotFound, "not found: no such item, object, collection or path"},
		{Temporary, "try again: not reachable, too slow, or the port or folder is in use"},
		{Content, "the content is wrong: its producer must correct it"},
		{Held, "the rest is held, or an act needs confirmation"},
		{Refused, "refused: not allowed, or in conflict with an earlier act"},
		{NoSpace, "no space"},
		{Nothing, "nothing to do: no item matches"},
		{Interrupted, "interrupted"},
	}
}

// Together returns the exit code of several results: Held if any is held, because a person must still
// act; else their common code; else Partly. It returns OK for no results.
func Together(codes []Code) Code {
	if len(codes) == 0 {
		return OK
	}
	for _, c := range codes {
		if c == Held {
			return Held
		}
	}
	for _, c := range codes[1:] {
		if c != codes[0] {
			return Partly
		}
	}
	return codes[0]
}
