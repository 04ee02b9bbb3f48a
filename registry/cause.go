package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Cause is what a failure comes to without what is the one item's own, so that all items that
// failed for the same reason have the same. It is made by [CauseOf].
type Cause struct {
	Stage Stage      `json:"stage"`
	Class ErrorClass `json:"class"`
	// Code is what happened in one word: http-503, timeout, digest-mismatch, a rule of checkm or a
	// code of S3; "" when nothing but the text says it.
	Code string `json:"code,omitempty"`
	// Host is the one other machine that it happened with, with its port if that is named; "" for
	// none or several.
	Host string `json:"host,omitempty"`
	// Text is the note with its variable parts replaced, see [CauseText].
	Text string `json:"text"`
}

// Bounds of what a worker says of a failure.
const (
	mostCode = 64
	mostHost = 255
)

// CauseOf returns the cause of a failure at a stage. code and host are what the worker knew of the
// error; where it knew nothing, because it was of a version that did not tell or met an error that
// says no more than its text, they are read from the note as far as it shows them.
func CauseOf(stage Stage, class ErrorClass, code, host, note string) Cause {
	note = wholeWords(note)
	c := Cause{Stage: stage, Class: class, Code: causeWord(code, mostCode), Host: causeWord(strings.ToLower(host), mostHost), Text: CauseText(note)}
	if c.Code == "" && c.Host == "" {
		c.Code, c.Host = statusIn(note), hostIn(note)
	}
	return c
}

// Fingerprint names the cause: 16 hexadecimal digits, the value of the query language's field
// cause. Where a code and a host are known, they say it all: how often a server asked to be left
// alone, or at which of its files it was met first, is no other cause. Otherwise the text counts,
// too.
func (c Cause) Fingerprint() string {
	parts := []string{string(c.Stage), string(c.Class), c.Code, c.Host, c.Text}
	if c.Code != "" && c.Host != "" {
		parts[4] = ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:FingerprintLen/2])
}

// FingerprintLen is how many hexadecimal digits a fingerprint has.
const FingerprintLen = 16

// FailureGroup is the failed items of a query that have one cause.
type FailureGroup struct {
	// Fingerprint names the cause for the query language's field cause; "" is the group of those
	// whose cause was not looked at yet, which is about to be done.
	Fingerprint string `json:"fingerprint"`
	Cause
	Count int64 `json:"count"`
	// First and Last say when the first and the last of them failed.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// ItemID is one of them as an example, the one that came last; Note is what its failure says in
	// full.
	ItemID string `json:"item_id"`
	Note   string `json:"note"`
	// Act is what puts them right, as [ItemReader.Why] says it of the example.
	Act string `json:"act"`
	// Useless says that a requeue helps none of them, by the example's remedy.Fix: their batches,
	// or what was uploaded, cannot come out otherwise.
	Useless bool `json:"requeue_useless,omitempty"`
	// From is where a requeue of them begins; "": where they failed.
	From Stage `json:"requeue_from,omitempty"`
}

// Requeue returns the query by which the group's items are asked to be requeued in bulk, from the
// stage From: those of q that have its cause. ok is false where that helps none of them.
func (g FailureGroup) Requeue(q Query) (match Query, ok bool) {
	if g.Fingerprint == "" || g.Useless {
		return Query{}, false
	}
	match.Terms = append(append(match.Terms, q.Terms...), Term{Field: "cause", Value: g.Fingerprint})
	return match, len(match.Terms) <= MaxQueryTerms && len(match.String()) <= MaxQueryBytes // longer ones are not read again
}

// Title is the cause in one line: what happened and where, or its text.
func (c Cause) Title() string {
	switch {
	case c.Code != "" && c.Host != "":
		return c.Code + " from " + c.Host
	case c.Code != "":
		return c.Code + ": " + c.Text
	}
	return c.Text
}

// causeWord is a code or host as it is kept: one word, or none.
func causeWord(text string, most int) string {
	if len(text) > most || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '@' }) {
		return ""
	}
	return text
}

// statusIn returns the code of the first HTTP status that a note tells with its name, "" when it
// tells none.
func statusIn(note string) string {
	for at := range note {
		if _, code := statusAt(note[at:]); code != "" && (at == 0 || !isLetterOrDigit(rune(note[at-1]))) {
			return code
		}
	}
	return ""
}

// statusAt returns the code of the HTTP status, number and name, that a text begins with, and its
// length; "" for none.
func statusAt(text string) (n int, code string) {
	if len(text) < 4 || text[3] != ' ' {
		return 0, ""
	}
	status, err := strconv.Atoi(text[:3])
	name := http.StatusText(status)
	if err != nil || status < 300 || name == "" || !strings.HasPrefix(text[4:], name) {
		return 0, ""
	}
	return 4 + len(name), "http-" + text[:3]
}

// hostIn returns the host of the first address in a note, "" when it has none.
func hostIn(note string) string {
	for word := range strings.FieldsSeq(note) {
		if _, rest, ok := cutScheme(word); ok {
			return hostOf(rest)
		}
	}
	return ""
}
