package terminal

import (
	"io"
	"os"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Meaning is what a coloured word says. The word says it, too: colour is never the only sign.
type Meaning int

// The meanings.
const (
	Plain   Meaning = iota // nothing in particular: no colour
	Quiet                  // nothing to look at: faint
	Good                   // it is done or works: green
	Busy                   // it is under way: blue
	Waiting                // it waits, or needs attention soon: yellow
	Bad                    // it failed or does not work: red
)

// Paint colours words by their meaning; the zero value leaves them as they are.
type Paint bool

// PaintFor returns the Paint for w: colours on a terminal, unless NO_COLOR is set or TERM is dumb.
func PaintFor(w io.Writer) Paint {
	return Paint(IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// Word returns a word in the colour of a meaning.
func (p Paint) Word(m Meaning, word string) string {
	if !p || word == "" || m == Plain {
		return word
	}
	return colours[m] + word + plainText
}

// colours are the codes of the meanings: the terminal's own palette, so that they are legible on
// light and dark grounds.
var colours = map[Meaning]string{Quiet: faint, Good: "\x1b[32m", Busy: "\x1b[34m", Waiting: "\x1b[33m", Bad: "\x1b[1;31m"}

// StateMeaning returns what a state of an item, or of what has such states, means.
func StateMeaning(state string) Meaning {
	switch registry.State(state) {
	case registry.StateCompleted:
		return Good
	case registry.StateFailed:
		return Bad
	case registry.StateHeld:
		return Waiting
	case registry.StateCancelled, registry.StateAborted, registry.StateDeleted:
		return Quiet
	case registry.StateEstimating, registry.StateProvisioning, registry.StateDownloading, registry.StateScanning, registry.StateProcessing,
		registry.StateReplicating, registry.StateRecording, registry.StateNotify, registry.StateReporting, registry.StateUpdateReport:
		return Busy
	}
	return Plain
}

// conditions are the meanings of the words that begin conditions of attempts, tokens and subscriptions.
var conditions = map[string]Meaning{
	"done": Good, "good": Good, "ok": Good,
	"retry": Waiting, "snooze": Waiting, "sent-back": Waiting, "paused": Waiting,
	"failed": Bad, "failing": Bad, "lost": Bad, "expired": Bad,
	"cancelled": Quiet, "withdrawn": Quiet, "revoked": Quiet,
}

// ConditionMeaning returns what a condition means, by its first word.
func ConditionMeaning(condition string) Meaning {
	word, _, _ := strings.Cut(condition, " ")
	return conditions[word]
}

// Counted returns the meaning of a number: that of m unless it is 0.
func Counted(m Meaning) func(string) Meaning {
	return func(value string) Meaning {
		if value == "0" || value == "" {
			return Quiet
		}
		return m
	}
}
