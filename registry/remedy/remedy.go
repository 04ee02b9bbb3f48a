// Package remedy explains how to fix an item that did not complete, and how much of its work a
// restart keeps. Package registry/why explains why an item waits.
package remedy

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Fix is what fixes an item that did not complete: a correction by the producer, or an act of an
// admin.
type Fix struct {
	Text string // "" if nothing needs to be done
	// Requeue reports whether an admin's requeue is part of the fix. Otherwise a requeue would fail
	// again or be refused.
	Requeue bool
	From    registry.Stage // stage from which to requeue; "": where the item failed
}

// Of returns the fix for an item. Reports, mails, lists of failures and package registry/why all
// use it. code is the failure's code, and remedy the worker's advice; either may be empty. The item
// needs its action, stage, status, attempt, commitment, error class and spec.
func Of(it registry.WorkItem, code, remedy string) Fix {
	f := fixOf(it, code, remedy)
	if f.Requeue && slices.Contains(registry.AllowedActs(it.Position()), registry.ActAbandon) {
		f.Text += "; if its version can never be completed, two admins abandon it"
	}
	return f
}

func fixOf(it registry.WorkItem, code, remedy string) Fix {
	p := it.Position()
	if fix, ok := functionFix(it); ok {
		return fix
	}
	switch it.Status {
	case registry.Cancelled:
		return Fix{Text: "nothing, or an admin requeues it", Requeue: true}
	case registry.Deleted, registry.Aborted:
		if it.Commitment == registry.Preserved {
			return Fix{Text: "nothing: its object is preserved"}
		}
		return Fix{Text: "nothing, or the producer submits it again"}
	case registry.Failed:
	case registry.Prepare, registry.Pending, registry.Running, registry.Completed:
		return Fix{}
	}
	switch {
	case p.Refused():
		return Fix{Text: "the producer corrects the row and submits it alone, in a new batch"}
	case code == registry.CodeAbandoned:
		return Fix{Text: "an admin requeues the item to make the version again, or deletes it", Requeue: true}
	case it.ErrorClass == registry.ContentFault:
		return contentFix(it, code)
	case it.ErrorClass == registry.JobsFault:
		return Fix{Text: "requeue the failed jobs, then ask the batch for an updated report"}
	case code == registry.CodeUnfitProfile:
		return Fix{Text: "an admin corrects the profile of the collection, then the producer submits this deposit alone"}
	case it.Stage == registry.Notify && remedy != "":
		text := remedy + ", or correct the callback of the collection, then requeue the item; or give the delivery up: the object is preserved"
		return Fix{Text: text, Requeue: true}
	case remedy != "":
		return Fix{Text: remedy + ", then requeue the item", Requeue: true}
	}
	return Fix{Text: "an admin finds the cause and requeues the item", Requeue: true}
}

// functionFix returns the fix for an item that a program outside Holdfast carries out, where it differs
// from that of others. No producer is at fault. A step of a process is never requeued.
func functionFix(it registry.WorkItem) (f Fix, ok bool) {
	ended := it.Status == registry.Aborted || it.Status == registry.Deleted
	switch {
	case it.Action == registry.StepProcess && (ended || it.Status == registry.Failed || it.Status == registry.Cancelled):
		return Fix{Text: "repair or retry its process, if that is in error still"}, true
	case it.Action == registry.Task && ended:
		return Fix{Text: "nothing, or submit the task again"}, true
	case it.Action == registry.Task && it.Status == registry.Failed && it.ErrorClass == registry.ContentFault:
		return Fix{Text: "correct what its arguments name, then requeue the task; if the arguments are wrong, submit another one", Requeue: true}, true
	}
	return f, false
}

// contentFix returns what the producer corrects; the item's note says what is wrong, and where. A
// file that the producer mends at its address needs no new submission. That would make a second
// object, and repeat the completed jobs of a batch. An upload never changes, so it must be
// submitted again.
func contentFix(it registry.WorkItem, code string) Fix {
	anew := "submits this deposit alone"
	if it.Action == registry.Batch {
		anew = "submits it again"
	}
	what := "corrects the deposit"
	switch {
	case code == "digest-mismatch":
		what = "compares the file with the original, corrects the file or its digest"
	case code == "size-mismatch":
		what = "compares the file with the original, corrects the file or its size"
	case code == "digest-unsupported":
		return Fix{Text: "the producer gives a digest by sha256 or sha512, and " + anew}
	case code == "http-404", code == "http-410":
		text := "the producer puts the file there, then an admin requeues the item; if the address is wrong, the producer corrects it and " + anew
		return Fix{Text: text, Requeue: true}
	case code == "identifier-mismatch", code == "owner-mismatch", code == "name-taken":
		return Fix{Text: "the producer corrects the ARK or the local id, and " + anew}
	case code == "no-object":
		return Fix{Text: "the producer corrects the identifier, or submits without update, and " + anew}
	case strings.HasPrefix(code, "unpack-"):
		what = "packs the container again"
	}
	if !fetched(it) {
		return Fix{Text: "the producer " + what + ", and " + anew}
	}
	f := Fix{Requeue: true, From: fetchedAgain(it)}
	f.Text = "the producer " + what + "; if it is mended at its address, an admin requeues the item"
	if f.From != "" {
		f.Text += " from " + string(f.From)
	}
	f.Text += ", for anything else the producer " + anew
	return f
}

// fetched reports whether some of the item's data come from addresses, where the producer can mend
// them.
func fetched(it registry.WorkItem) bool {
	var spec registry.Spec
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return true // unknown
	}
	return !spec.Own(it.Action)
}

// fetchedAgain returns the stage from which a requeued item fetches its files again. It returns ""
// if the item failed there or before.
func fetchedAgain(it registry.WorkItem) registry.Stage {
	if r, ok := registry.RouteOf(it.Action); ok && it.Stage != registry.Download && slices.Contains(r.UpTo(it.Stage), registry.Download) {
		return registry.Download
	}
	return ""
}

// ResumePoint describes how much of an item's present step is done and kept, so that a restart
// continues there; "" if nothing is. attempts are all attempts of the item, oldest first. A restart
// may find a little less: a kill loses what came after the last checkpoint.
func ResumePoint(it registry.WorkItem, attempts []registry.Attempt) string {
	if it.Status.Settled() && it.Status != registry.Failed && it.Status != registry.Cancelled {
		return ""
	}
	var forgotten int64 // up to this attempt, all progress was dropped
	if raw, ok := it.Results[registry.ResultRecheck]; ok {
		_ = json.Unmarshal(raw, &forgotten) // the Registry wrote it
	}
	var furthest []registry.Progress
	for i := len(attempts) - 1; i >= 0 && attempts[i].Stage == it.Stage && attempts[i].N > forgotten; i-- {
		for _, p := range attempts[i].Progress {
			furthest = keep(furthest, p)
		}
	}
	var parts []string
	for _, p := range furthest {
		parts = append(parts, far(p, it))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; a restart continues here"
}

// keep adds a measure whose work is kept, unless an earlier attempt came further: a new worker
// counts from zero.
func keep(furthest []registry.Progress, p registry.Progress) []registry.Progress {
	if !p.Kept || p.Position <= 0 {
		return furthest
	}
	for i, have := range furthest {
		if have.Title == p.Title {
			if have.Position < p.Position {
				furthest[i] = p
			}
			return furthest
		}
	}
	return append(furthest, p)
}

// far describes a measure: 48,211 of 70,002 files transferred; 1.2 of 1.9 TiB transferred. If the
// measure has no end, far uses the item's size.
func far(p registry.Progress, it registry.WorkItem) string {
	text, what, end := registry.CountText, p.Title, p.End
	if p.Unit == "bytes" {
		text, what = registry.SizeText, strings.TrimPrefix(p.Title, "bytes ")
	}
	switch {
	case end >= 0 || it.Stage != registry.Download:
	case p.Unit == "bytes":
		end = it.SizeBytes
	default:
		end = it.Files
	}
	at := text(p.Position)
	if end >= p.Position {
		of := text(end)
		if number, unit, ok := strings.Cut(at, " "); ok && strings.HasSuffix(of, " "+unit) {
			at = number
		}
		at += " of " + of
	}
	return at + " " + what
}
