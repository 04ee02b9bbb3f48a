package item

import (
	"encoding/json"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
)

// eventRow is an event in the history.
type eventRow struct {
	registry.Event

	Text   string // says it in plain words; "": its type says it
	Reason string // what a person said about it, after Text
	Error  string // what a worker said
	Data   bool   // the page shows its data, too
}

// rowOf says an event in the viewer's language.
func rowOf(t lang.Texts, e registry.Event) eventRow {
	row := eventRow{Event: e, Text: plainEvent(t, e)}
	var d struct {
		Spec   json.RawMessage `json:"spec"`
		Reason string          `json:"reason"`
		Error  string          `json:"error"`
	}
	err := json.Unmarshal(e.Data, &d)
	row.Data = row.Text == "" || err == nil && d.Spec != nil
	if row.Text != "" {
		row.Reason, row.Error = d.Reason, d.Error
	}
	return row
}

// eventData is what the events of items have, as far as sentences need it.
type eventData struct {
	From   registry.Stage  `json:"from"`
	Stage  registry.Stage  `json:"stage"`
	Status registry.Status `json:"status"`

	ARK     string `json:"ark"`
	Object  string `json:"object_id"`
	Version int    `json:"version"`
	Files   int64  `json:"files"`
}

// plainEvent says in plain words what happened; "" for an event of another kind, whose data the page
// shows.
func plainEvent(t lang.Texts, e registry.Event) string {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	stage, from := t.T(string(d.Stage)), t.T(string(d.From))
	text := ""
	switch registry.Act(e.Type) {
	case registry.ActSubmit:
		text = t.T("Submitted.")
	case registry.ActClaim:
		text = t.T("Attempt %d at %s began.", e.Attempt, stage)
	case registry.ActAdvance:
		text = lang.Sentence(t.T("%s is done; next comes %s", from, stage))
	case registry.ActComplete:
		text = t.T("Completed.")
	case registry.ActFail:
		text = t.T("Failed at %s. A person must decide.", stage)
	case registry.ActRetry:
		text = t.T("An attempt at %s failed; it will be tried again.", stage)
	case registry.ActSnooze:
		text = t.T("It cannot go on at %s yet, and looks again later.", stage)
	case registry.ActRelease:
		text = t.T("Its worker stopped; it goes on at %s on another one.", stage)
	case registry.ActSendBack:
		text = t.T("Sent back from %s to %s.", from, stage)
	case registry.ActLose:
		text = t.T("Its worker was not heard of any more at %s.", stage)
		if d.Status == registry.Failed {
			text = t.T("Its worker was not heard of any more at %s, and no try is left.", stage)
		}
	case registry.ActReject:
		text = t.T("Refused.")
	case registry.ActRequeue:
		text = t.T("Requeued at %s.", stage)
	case registry.ActRetryNow:
		text = t.T("The next try was started at once.")
	case registry.ActCancel:
		text = t.T("Cancelled.")
	case registry.ActAbort:
		text = t.T("Aborted: it ended for good.")
	case registry.ActDelete:
		text = t.T("Deleted.")
	case registry.ActPrepare:
		text = t.T("Made as part of a graph, which is not sealed yet.")
	case registry.ActSeal:
		text = t.T("Its graph was sealed: it may start.")
	case registry.ActUpdateReport:
		text = t.T("A new report was asked for.")
	case registry.ActHold:
		text = t.T("Held.")
	case registry.ActUnhold:
		text = t.T("Released.")
	case registry.ActAdopt:
		text = t.T("Its version was found in the storages: it goes on at %s.", stage)
	case registry.ActPriority, registry.ActGiveUp, registry.ActAbandon, registry.ActPurge:
	}
	switch e.Type {
	case registry.EventIdentified:
		text = t.T("Named %s.", d.ARK)
	case registry.EventIntend:
		text = t.T("Version %d of %s was announced: from here on it is only carried on.", d.Version, d.Object)
	case registry.EventStored:
		text = t.T("Version %d of %s was written and read back.", d.Version, d.Object) + " " + t.T("%d file|%d files", d.Files) + "."
	case registry.EventRecorded:
		text = t.T("Version %d of %s is recorded: it can be seen and fetched.", d.Version, d.Object)
	}
	return text
}
