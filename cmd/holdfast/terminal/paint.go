package terminal

import (
	"io"
	"os"

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
