package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Cause is the part of a failure that is the same for all items that failed for the same reason.
// [CauseOf] creates it.
type Cause struct {
	Stage Stage      `json:"stage"`
	Class ErrorClass `json:"class"`
	// Code is the failure's code: http-503, timeout, digest-mismatch, a rule of checkm or a code of
	// S3; "" if only the text says it.
	Code string `json:"code,omitempty"`
	// Host is the remote host of the failure, with its port if named; "" for none or several.
	Host string `json:"host,omitempty"`
	// Text is the note without its variable parts, see [CauseText].
	Text string `json:"text"`
}

// Bounds of workers' codes and hosts.
const (
	mostCode = 64
	mostHost = 255
)

// CauseOf returns the cause of a failure in a stage. code and host come from the worker. If the
// worker gave neither, CauseOf reads them from the note as far as possible.
func CauseOf(stage Stage, class ErrorClass, code, host, note string) Cause {
	note = wholeWords(note)
	c := Cause{Stage: stage, Class: class, Code: causeWord(code, mostCode), Host: causeWord(strings.ToLower(host), mostHost), Text: CauseText(note)}
	if c.Code == "" && c.Host == "" {
		c.Code, c.Host = statusIn(note), hostIn(note)
	}
	return c
}

// Fingerprint returns the identifier of the cause: 16 hexadecimal digits, the value of the query
// field cause. With both a code and a host the text does not count: it may differ by file or by the
// number of retries.
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

// FailureGroup is the failed items of a query with the same cause.
type FailureGroup struct {
	// Fingerprint is the value of the query field cause; "" for items whose cause is not computed
	// yet.
	Fingerprint string `json:"fingerprint"`
	Cause
	Count int64 `json:"count"`
	// First and Last are the times of the first and the last failure.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// ItemID is the last of the items, as an example. Name is its [WorkItem.Heading], Note its complete
	// failure note.
	ItemID string `json:"item_id"`
	Name   string `json:"name"`
	Note   string `json:"note"`
	// Act says how to fix them, as [ItemReader.Why] says it for the example.
	Act string `json:"act"`
	// Remedy has the facts of Act.
	Remedy Remedy `json:"remedy"`
	// Useless reports that a requeue cannot fix them, by the example's remedy.Fix.
	Useless bool `json:"requeue_useless,omitempty"`
	// From is the stage from which to requeue them; "": where they failed.
	From Stage `json:"requeue_from,omitempty"`
}

// Match returns the query of the group's items: the items of q with this cause. ok is false if the
// cause is not computed yet, or if the query would be too long.
func (g FailureGroup) Match(q Query) (match Query, ok bool) {
	if g.Fingerprint == "" {
		return Query{}, false
	}
	match.Terms = append(append(match.Terms, q.Terms...), Term{Field: "cause", Value: g.Fingerprint})
	return match, len(match.Terms) <= MaxQueryTerms && len(match.String()) <= MaxQueryBytes // longer queries cannot be parsed again
}

// Requeue returns the query for a bulk requeue of the group's items from the stage From. ok is false
// if a requeue does not help, or if the group has no query.
func (g FailureGroup) Requeue(q Query) (match Query, ok bool) {
	if g.Useless {
		return Query{}, false
	}
	return g.Match(q)
}

// Title describes the cause to people in one line: its code and host, or its text. The code of a
// content fault is left out where the text says what is wrong.
func (c Cause) Title() string {
	text, _, _ := strings.Cut(c.Text, "\n")
	text = placeholders.ReplaceAllLiteralString(rowPlace.ReplaceAllLiteralString(text, ""), "…")
	switch {
	case c.Code != "" && c.Host != "":
		return c.Code + " from " + c.Host
	case c.Code != "" && text == "":
		return c.Code
	case c.Code != "" && c.Class != ContentFault:
		return c.Code + ": " + text
	}
	return text
}

// rowPlace is where in a manifest a fault is, at the beginning of its text: each row has another.
var rowPlace = regexp.MustCompile(`^(line <n>)?(, )?(column <n>)?: `)

// causeWord returns a valid code or host, or "".
func causeWord(text string, most int) string {
	if len(text) > most || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '@' }) {
		return ""
	}
	return text
}

// statusIn returns the code of the first HTTP status in a note that stands with its name, or "".
func statusIn(note string) string {
	for at := range note {
		if _, code := statusAt(note[at:]); code != "" && (at == 0 || !isLetterOrDigit(rune(note[at-1]))) {
			return code
		}
	}
	return ""
}

// statusAt returns the length and code of the HTTP status, number and name, at the beginning of a
// text; "" for none.
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

// hostIn returns the host of the first URL in a note, or "".
func hostIn(note string) string {
	for word := range strings.FieldsSeq(note) {
		if _, rest, ok := cutScheme(word); ok {
			return hostOf(rest)
		}
	}
	return ""
}

// Remedy is how to fix an item that did not complete, as facts, so that it can be said in any
// language. Package registry/remedy finds and words it. The zero value advises nothing.
type Remedy struct {
	Advice Advice `json:"advice"`
	Text   string `json:"text,omitempty"` // words of the worker
	// Anew says how the producer submits, unless the remedy needs no submission.
	Anew Anew `json:"anew,omitempty"`
	// Mended reports that the producer can mend the files at their addresses instead. Then an admin
	// requeues the item, from the stage From, or from where it failed if From is empty.
	Mended bool  `json:"mended,omitempty"`
	From   Stage `json:"from,omitempty"`
	// Abandon reports that two admins can give the version up instead.
	Abandon bool `json:"abandon,omitempty"`
}

// Advice is the act that a [Remedy] advises. A meaning never changes.
type Advice string

// What is to be done. The facts beside are those of [Remedy].
const (
	AdviceRequeueOrNothing Advice = "requeue-or-nothing"
	AdvicePreserved        Advice = "preserved" // nothing
	AdviceSubmitOrNothing  Advice = "submit-or-nothing"
	AdviceTaskOrNothing    Advice = "task-or-nothing"
	AdviceRepairProcess    Advice = "repair-process"
	AdviceArguments        Advice = "correct-arguments"
	AdviceRow              Advice = "correct-row"
	AdviceVersionAgain     Advice = "version-again"
	AdviceRequeueJobs      Advice = "requeue-jobs"
	AdviceProfile          Advice = "correct-profile"
	AdviceCallback         Advice = "correct-callback" // Text
	AdviceKnown            Advice = "known"            // Text
	AdviceFindCause        Advice = "find-cause"
	AdviceDigest           Advice = "correct-digest"     // Anew, Mended
	AdviceSize             Advice = "correct-size"       // Anew, Mended
	AdvicePack             Advice = "pack-again"         // Anew, Mended
	AdviceDeposit          Advice = "correct-deposit"    // Anew, Mended
	AdviceAlgorithm        Advice = "give-digest"        // Anew
	AdvicePut              Advice = "put-file"           // Anew
	AdviceIdentifier       Advice = "correct-identifier" // Anew
	AdviceUpdate           Advice = "correct-update"     // Anew
)

// Anew is how a producer submits again.
type Anew string

// How a producer submits again.
const (
	AnewAlone Anew = "alone" // this deposit of a batch alone
	AnewWhole Anew = "whole" // all of it
)

// Advices lists all kinds of advice.
func Advices() []Advice {
	return []Advice{
		AdviceRequeueOrNothing, AdvicePreserved, AdviceSubmitOrNothing, AdviceTaskOrNothing, AdviceRepairProcess, AdviceArguments, AdviceRow,
		AdviceVersionAgain, AdviceRequeueJobs, AdviceProfile, AdviceCallback, AdviceKnown, AdviceFindCause, AdviceDigest, AdviceSize, AdvicePack,
		AdviceDeposit, AdviceAlgorithm, AdvicePut, AdviceIdentifier, AdviceUpdate,
	}
}
