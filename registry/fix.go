package registry

import (
	"encoding/json"
	"slices"
	"strings"
)

// Fix is what puts right that an item did not complete: what the producer corrects, or what an admin does.
type Fix struct {
	Text string // "" for what needs nothing
	// Requeue says that an admin's requeue is a part of it. Where it is not, a requeue would fail again, or be refused.
	Requeue bool
	From    Stage // where that begins; "": where the item failed
}

// CodeUnfitProfile is what happened where the profile of an item's collection, which the item keeps, cannot be gone by.
const CodeUnfitProfile = "profile-unfit"

// CodeAbandoned is what happened to a job whose announced version was abandoned: see [Abandonment].
const CodeAbandoned = "abandoned"

// FixOf says what puts an item right. It is the one place where that is said, for reports, mails, lists of failures, what they
// offer, and the answer to why. code is what happened in one word and remedy what the worker knew; either may be "". Of the
// item it needs action, stage, status, attempt, commitment, error class and spec.
func FixOf(it WorkItem, code, remedy string) Fix {
	f := fixOf(it, code, remedy)
	if f.Requeue && slices.Contains(AllowedActs(it.Position()), ActAbandon) {
		f.Text += "; where its version can never be completed, two admins abandon it"
	}
	return f
}

func fixOf(it WorkItem, code, remedy string) Fix {
	p := it.Position()
	switch it.Status {
	case Cancelled:
		return Fix{Text: "nothing, or an admin requeues it", Requeue: true}
	case Deleted, Aborted:
		if it.Commitment == Preserved {
			return Fix{Text: "nothing: its object is preserved"}
		}
		return Fix{Text: "nothing, or the producer submits it again"}
	case Failed:
	case Prepare, Pending, Running, Completed:
		return Fix{}
	}
	switch {
	case p.Refused():
		return Fix{Text: "the producer corrects the row and submits it alone, in a new batch"}
	case code == CodeAbandoned:
		return Fix{Text: "an admin requeues the item, which makes the version anew, or deletes it", Requeue: true}
	case it.ErrorClass == ContentFault:
		return contentFix(it, code)
	case it.ErrorClass == JobsFault:
		return Fix{Text: "requeue the failed jobs, then ask the batch for an updated report"}
	case code == CodeUnfitProfile:
		return Fix{Text: "an admin corrects the profile of the collection, then the producer submits this deposit alone"}
	case it.Stage == Notify && remedy != "":
		text := remedy + ", or correct the callback of the collection, then requeue the item; or give the delivery up: the object is preserved"
		return Fix{Text: text, Requeue: true}
	case remedy != "":
		return Fix{Text: remedy + ", then requeue the item", Requeue: true}
	}
	return Fix{Text: "an admin looks at the cause and requeues the item", Requeue: true}
}

// contentFix says what the producer corrects. What exactly is wrong, and where, is in the item's note. What is fetched from an
// address needs no submission of its own when it has been mended there: that would make a second object of it, and all jobs of a
// batch that did complete would be made once more, too. What was uploaded never changes, and can only be submitted anew.
func contentFix(it WorkItem, code string) Fix {
	anew := "submits this deposit alone"
	if it.Action == Batch {
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
		text := "the producer puts the file there, then an admin requeues the item; where the address is wrong, the producer corrects it and " + anew
		return Fix{Text: text, Requeue: true}
	case code == "identifier-mismatch", code == "owner-mismatch", code == "name-taken":
		return Fix{Text: "the producer corrects the ARK or the local id, and " + anew}
	case code == "no-object":
		return Fix{Text: "the producer corrects the identifier, or leaves the update away, and " + anew}
	case strings.HasPrefix(code, "unpack-"):
		what = "packs the container anew"
	}
	if !fetched(it) {
		return Fix{Text: "the producer " + what + ", and " + anew}
	}
	f := Fix{Requeue: true, From: fetchedAgain(it)}
	f.Text = "the producer " + what + "; what is mended at its address an admin requeues"
	if f.From != "" {
		f.Text += " from " + string(f.From)
	}
	f.Text += ", for anything else the producer " + anew
	return f
}

// fetched says that some of what the item takes in comes from addresses, where it may be mended.
func fetched(it WorkItem) bool {
	var spec Spec
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return true // it is not known
	}
	return !spec.Own(it.Action)
}

// Own says that all that an item of an action takes in by what its spec names lies here already, as an upload. The files that an
// uploaded object manifest lists do not; the manifest of a batch is all that the batch itself takes in. What is found in a
// payload, as a bag's fetch.txt is, is not known before it is read.
func (s Spec) Own(a Action) bool {
	_, uploaded := UploadID(s.URL)
	return uploaded && (a != Ingest || s.Type != ObjectManifest)
}

// fetchedAgain is the stage from which a requeued item fetches its files once more, "" when that is where it failed, or before.
func fetchedAgain(it WorkItem) Stage {
	if r, ok := RouteOf(it.Action); ok && r.index(Download) >= 0 && r.index(it.Stage) > r.index(Download) {
		return Download
	}
	return ""
}
