// Package remedy explains how to fix an item that did not complete, and how much of its work a
// restart keeps. Package registry/why explains why an item waits.
package remedy

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wording"
)

// Fix is what fixes an item that did not complete: a correction by the producer, or an act of an
// admin.
type Fix struct {
	registry.Remedy

	Text string // the remedy in English; "" if nothing needs to be done
	// Requeue reports whether an admin's requeue is part of the fix. Otherwise a requeue would fail
	// again or be refused.
	Requeue bool
}

// Of returns the fix for an item. Reports, mails, lists of failures and package registry/why all
// use it. code is the failure's code, and remedy the worker's advice; either may be empty. The item
// needs its action, stage, status, attempt, commitment, error class and spec.
func Of(it registry.WorkItem, code, remedy string) Fix {
	f := fixOf(it, code, remedy)
	f.Abandon = f.Requeue && slices.Contains(registry.AllowedActs(it.Position()), registry.ActAbandon)
	f.Text = wording.Remedy(wording.English{}, f.Remedy)
	return f
}

// act returns a fix without a requeue.
func act(a registry.Advice) Fix { return Fix{Remedy: registry.Remedy{Advice: a}} }

// requeue returns a fix with a requeue.
func requeue(a registry.Advice) Fix { return Fix{Remedy: registry.Remedy{Advice: a}, Requeue: true} }

func fixOf(it registry.WorkItem, code, remedy string) Fix {
	p := it.Position()
	if fix, ok := functionFix(it); ok {
		return fix
	}
	switch it.Status {
	case registry.Cancelled:
		return requeue(registry.AdviceRequeueOrNothing)
	case registry.Deleted, registry.Aborted:
		if it.Commitment == registry.Preserved {
			return act(registry.AdvicePreserved)
		}
		return act(registry.AdviceSubmitOrNothing)
	case registry.Failed:
	case registry.Prepare, registry.Pending, registry.Running, registry.Completed:
		return Fix{}
	}
	switch {
	case p.Refused():
		return act(registry.AdviceRow)
	case code == registry.CodeAbandoned:
		return requeue(registry.AdviceVersionAgain)
	case it.ErrorClass == registry.ContentFault:
		return contentFix(it, code)
	case it.ErrorClass == registry.JobsFault:
		return act(registry.AdviceRequeueJobs)
	case code == registry.CodeUnfitProfile:
		return act(registry.AdviceProfile)
	case remedy == "":
		return requeue(registry.AdviceFindCause)
	}
	f := requeue(registry.AdviceKnown)
	if it.Stage == registry.Notify {
		f = requeue(registry.AdviceCallback)
	}
	f.Remedy.Text = remedy
	return f
}

// functionFix returns the fix for an item that a program outside Holdfast carries out, where it differs
// from that of others. No producer is at fault. A step of a process is never requeued.
func functionFix(it registry.WorkItem) (f Fix, ok bool) {
	ended := it.Status == registry.Aborted || it.Status == registry.Deleted
	switch {
	case it.Action == registry.StepProcess && (ended || it.Status == registry.Failed || it.Status == registry.Cancelled):
		return act(registry.AdviceRepairProcess), true
	case it.Action == registry.Task && ended:
		return act(registry.AdviceTaskOrNothing), true
	case it.Action == registry.Task && it.Status == registry.Failed && it.ErrorClass == registry.ContentFault:
		return requeue(registry.AdviceArguments), true
	}
	return f, false
}

// contentFix returns what the producer corrects; the item's note says what is wrong, and where. A
// file that the producer mends at its address needs no new submission. That would make a second
// object, and repeat the completed jobs of a batch. An upload never changes, so it must be
// submitted again.
func contentFix(it registry.WorkItem, code string) Fix {
	f := act(registry.AdviceDeposit)
	f.Anew = registry.AnewAlone
	if it.Action == registry.Batch {
		f.Anew = registry.AnewWhole
	}
	switch {
	case code == "digest-mismatch":
		f.Advice = registry.AdviceDigest
	case code == "size-mismatch":
		f.Advice = registry.AdviceSize
	case code == "digest-unsupported":
		f.Advice = registry.AdviceAlgorithm
		return f
	case code == "http-404", code == "http-410":
		f.Advice, f.Requeue = registry.AdvicePut, true
		return f
	case code == "identifier-mismatch", code == "owner-mismatch", code == "name-taken":
		f.Advice = registry.AdviceIdentifier
		return f
	case code == "no-object":
		f.Advice = registry.AdviceUpdate
		return f
	case strings.HasPrefix(code, "unpack-"):
		f.Advice = registry.AdvicePack
	}
	if fetched(it) {
		f.Requeue, f.Mended, f.From = true, true, fetchedAgain(it)
	}
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
