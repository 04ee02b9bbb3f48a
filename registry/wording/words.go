// Package wording says what the Registry knows as statements: why an item waits, what helps, what an act
// entails, and what is wrong with a value. Each has one wording, whose English is the key of its translations. Commands and the API
// say it in English, pages in the reader's language, with links.
package wording

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Words are the texts of a language.
type Words interface {
	// T returns the text whose English form is key, with its arguments. A key with two forms, "%d file|%d
	// files", depends on the first one.
	T(key string, args ...any) string
	// Name returns a name, or what a person wrote, which no language changes.
	Name(text string) string
	// Said returns what a program said, in English in all languages.
	Said(text string) string
	// Term returns the word for a value of an enumeration.
	Term(word any) string
	Stage(s registry.Stage) string
	// State returns a state with the time of the next try, if there is one.
	State(s registry.State, next *registry.NextTry) string
	// Item names an item by its id and, where it has one, its name; "" for an id that the reader may not
	// see.
	Item(id, name string) string
	Graph(id string) string
	// Held names what a hold covers.
	Held(h registry.Hold) string
	Time(t time.Time) string
	Size(bytes int64) string
	// Unit names what a step counts.
	Unit(name string) string
}

// English are the words of commands and of the API.
type English struct {
	At time.Time // now
}

// number is written with thousands separators.
type number int64

// Format implements [fmt.Formatter].
func (n number) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, registry.CountText(int64(n))) }

// T implements Words.
func (English) T(key string, args ...any) string {
	if one, several, both := strings.Cut(key, "|"); both {
		if key = several; len(args) > 0 && fmt.Sprint(args[0]) == "1" {
			key = one
		}
	}
	all := make([]any, len(args))
	for i, arg := range args {
		switch n := arg.(type) {
		case int64:
			all[i] = number(n)
		case int:
			all[i] = number(n)
		default:
			all[i] = arg
		}
	}
	return fmt.Sprintf(key, all...)
}

// Name implements Words.
func (English) Name(text string) string { return text }

// Said implements Words.
func (English) Said(text string) string { return text }

// Term implements Words.
func (English) Term(word any) string { return fmt.Sprint(word) }

// Stage implements Words.
func (English) Stage(s registry.Stage) string { return string(s) }

// State implements Words.
func (e English) State(s registry.State, next *registry.NextTry) string {
	return registry.StateText(s, next, e.At.UTC())
}

// Item implements Words.
func (English) Item(id, name string) string {
	if id == "" {
		return registry.Foreign
	}
	return strings.TrimSpace(name + " " + id)
}

// Graph implements Words.
func (English) Graph(id string) string { return id }

// Held implements Words.
func (English) Held(h registry.Hold) string { return h.Key }

// Time implements Words: in UTC, and only the time of day if it is today.
func (e English) Time(t time.Time) string {
	if t.UTC().Format(time.DateOnly) == e.At.UTC().Format(time.DateOnly) {
		return t.UTC().Format(time.TimeOnly) + " UTC"
	}
	return t.UTC().Format(time.DateTime) + " UTC"
}

// Size implements Words.
func (English) Size(bytes int64) string { return registry.SizeText(bytes) }

// Unit implements Words.
func (English) Unit(name string) string { return name }

var _ Words = English{}
