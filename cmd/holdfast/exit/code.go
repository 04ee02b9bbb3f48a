// Package exit says what a command ends in: the exit codes (docs/exit-codes.md), errors that carry
// a code or advice, and one table that maps the errors of other packages to codes. A code's meaning
// never changes.
//
// It knows no command, terminal or service. An error that only one command has is declared by that
// command with Coded.
package exit

// Code is an exit code. As an error it ends a command that has already said what went wrong, so it
// has no text.
type Code int

// Error implements error.
func (Code) Error() string { return "" }

// Err returns the code as the error that ends a command, nil for OK.
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

// Meaning says what an exit code means.
type Meaning struct {
	Code Code
	Text string
}

// Meanings lists all exit codes, for help and docs/exit-codes.md.
func Meanings() []Meaning {
	return []Meaning{
		{OK, "done; with --wait: all completed, or had completed before"},
		{Failed, "failed; with --wait: all failed on the system, and can be requeued"},
		{Usage, "the command line, a value or the environment is wrong"},
		{Partly, "partly done; with --wait: some completed, or they failed on both grounds"},
		{NotFound, "not found: no such item, object, collection or path"},
		{Temporary, "try again: not reachable, too slow, or port or folder in use"},
		{Content, "the content is wrong, and its producer must correct it"},
		{Held, "all that is left is held, or somebody must confirm an act"},
		{Refused, "refused: not allowed, or in conflict with what was done before"},
		{NoSpace, "no space"},
		{Nothing, "nothing to do: no item matches"},
		{Interrupted, "interrupted"},
	}
}

// Together returns the exit code of several results: Held when any is held, since somebody must
// still act, else their common code, else Partly. It is OK for none.
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
