package page

import (
	"cmp"
	"html/template"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
)

// because says why an item waits, in the viewer's language and time zone.
func (v *view) because(w registry.Why) template.HTML {
	r := &rich{view: v}
	return r.html(r.sentence(r.statements(w, w.Because)))
}

// becauseText is because without links, for where HTML is not possible.
func (v *view) becauseText(w registry.Why) string {
	r := &rich{view: v}
	return r.plain(r.sentence(r.statements(w, w.Because)))
}

// helps says what would let an item continue.
func (v *view) helps(w registry.Why) template.HTML {
	r := &rich{view: v}
	return r.html(r.sentence(r.statements(w, w.Helps)))
}

// remedy says how to fix items that failed, or text, if this program does not know its advice.
func (v *view) remedy(what registry.Remedy, text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.sentence(cmp.Or(remedy.Say(remedyWords{r}, what), r.english(text))))
}

// remedyWords are the words of remedies in the viewer's language.
type remedyWords struct{ *rich }

// Advice implements [remedy.Words].
func (w remedyWords) Advice(text string) string { return w.english(text) }

// Stage implements [remedy.Words].
func (w remedyWords) Stage(s registry.Stage) string { return w.stage(s) }

// statements puts statements together.
func (r *rich) statements(w registry.Why, all []registry.Statement) (text string) {
	for i, s := range all {
		if i > 0 {
			text += "; "
		}
		say, ok := wordings[s.Says]
		if !ok { // the Registry is newer than this page
			return r.english(w.Sentence)
		}
		text += say(r, s, w)
	}
	return text
}

// wordings word each statement.
var wordings = map[registry.Says]func(*rich, registry.Statement, registry.Why) string{
	registry.SaysSettled: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("it has ended (%s) and waits for nothing", r.term(s.State))
	},
	registry.SaysFailed: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("it failed at %s: %s", r.stage(s.Stage), r.english(s.Text))
	},
	registry.SaysAbandonAsked: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("%s asked %s to abandon its version: %s", r.data(s.Name), r.ago(*s.Since), r.data(s.Text))
	},
	registry.SaysHeld: func(r *rich, s registry.Statement, w registry.Why) string { return r.hold(s.Hold, w) },
	registry.SaysHeldNext: func(r *rich, s registry.Statement, w registry.Why) string {
		return r.T("before its next step: %s", r.hold(s.Hold, w))
	},
	registry.SaysNotSealed: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("its graph %s is not sealed yet; its items start after that", r.link(GraphURL(s.GraphID), short(s.GraphID)))
	},
	registry.SaysRequires: (*rich).requires,
	registry.SaysJobsOpen: (*rich).jobsOpen,
	registry.SaysLocked: func(r *rich, s registry.Statement, _ registry.Why) string {
		if len(s.Items) == 0 {
			return r.T("waits for another item that works on the same object")
		}
		return r.T("waits for %s (%s), which was submitted earlier or has begun already, and works on the same object (%s)",
			r.item(s.Items[0]), r.state(s.Items[0].State, s.Items[0].NextTry), r.data(s.Name))
	},
	registry.SaysNoted: func(r *rich, s registry.Statement, _ registry.Why) string { return r.english(s.Text) },
	registry.SaysNextCheck: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("next check at %s", r.at(*s.Until))
	},
	registry.SaysRetry: (*rich).retry,
	registry.SaysNotDue: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("waits for its time")
	},
	registry.SaysPlace: (*rich).place,
	registry.SaysTurn: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("waits for its turn at %s", r.stage(s.Stage))
	},
	registry.SaysShareUsed: func(r *rich, s registry.Statement, _ registry.Why) string {
		if s.Uploads {
			return r.T("of %d slots at %s, collection %s has the %d that one collection may have; the others (%d) are kept for other collections and uploads",
				s.N, r.stage(s.Stage), r.data(s.Collection), s.Of, s.Others)
		}
		return r.T("of %d slots at %s, collection %s has the %d that one collection may have; the others (%d) are kept for other collections",
			s.N, r.stage(s.Stage), r.data(s.Collection), s.Of, s.Others)
	},
	registry.SaysSlotsTaken: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("of %d slots at %s, all but those for uploads (%d) are taken, %d of them by collection %s",
			s.N, r.stage(s.Stage), s.Others, s.Of, r.data(s.Collection))
	},
	registry.SaysStageLimit: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("the limit of %d running item at %s is reached|the limit of %d running items at %s is reached", s.N, r.stage(s.Stage))
	},
	registry.SaysCollectionLimit: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("the limit of %d running item of collection %s is reached|the limit of %d running items of collection %s is reached", s.N, r.data(s.Collection))
	},
	registry.SaysAlone: func(r *rich, s registry.Statement, _ registry.Why) string {
		if s.Name == "" {
			return r.T("its workers were lost %d times in a row, so it runs alone", s.N)
		}
		return r.T("its workers were lost %d times in a row, so it runs alone as soon as worker %s runs nothing else", s.N, r.data(s.Name))
	},
	registry.SaysNoWorker: func(r *rich, s registry.Statement, w registry.Why) string {
		text := r.T("no worker serves %s", r.stage(s.Stage))
		if s.Hold != nil {
			text += ": " + r.hold(s.Hold, w)
		}
		return text
	},
	registry.SaysStopping: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("the last worker that serves %s is stopping", r.stage(s.Stage))
	},
	registry.SaysRunning: (*rich).running,
	registry.SaysLeaseOver: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("%s ran on %s, whose lease ended at %s; another worker will take over", r.stage(s.Stage), r.data(s.Name), r.at(*s.Until))
	},
	registry.SaysProgress: func(r *rich, s registry.Statement, _ registry.Why) (text string) {
		for i, p := range s.Progress {
			if i > 0 {
				text += ", "
			}
			text += r.progress(p)
		}
		return text
	},

	registry.SaysStartsInTurn: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("nothing: it starts in its turn; a lower priority number brings it forward")
	},
	registry.SaysStartsFreed: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("nothing: it starts when a running one ends; more workers for %s, or a higher HOLDFAST_CONCURRENCY, let more run at once", r.stage(s.Stage))
	},
	registry.SaysLimitFreed: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("nothing: it starts in its turn when a running one ends; an admin may raise the limit")
	},
	registry.SaysJobsSettle: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("nothing: it goes on when these have ended")
	},
	registry.SaysLockFreed: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("nothing: it goes on when that item has ended")
	},
	registry.SaysThaws: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("nothing: it goes on when the archive has restored the files")
	},
	registry.SaysRetried: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.orNow(s, r.T("it is retried by itself"))
	},
	registry.SaysChecked: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.orNow(s, r.T("it is checked again by itself"))
	},
	registry.SaysAdvice: func(r *rich, s registry.Statement, _ registry.Why) string {
		if s.Remedy == nil {
			return r.english(s.Text)
		}
		return cmp.Or(remedy.Say(remedyWords{r}, *s.Remedy), r.english(s.Text))
	},
	registry.SaysRelease: func(r *rich, s registry.Statement, _ registry.Why) string {
		if s.Hold.Scope.Keyless() {
			return r.T("resume the queue")
		}
		return r.T("release the hold on %s %s", r.term(s.Hold.Scope), r.link("/holds", s.Hold.Key))
	},
	registry.SaysRequeue: func(r *rich, s registry.Statement, _ registry.Why) string {
		if s.Items[0].Step {
			return r.T("requeue %s, or abort it to go on without it", r.item(s.Items[0]))
		}
		return r.T("requeue %s", r.item(s.Items[0]))
	},
	registry.SaysSeal: func(r *rich, s registry.Statement, _ registry.Why) string {
		return r.T("seal graph %s", r.link(GraphURL(s.GraphID), short(s.GraphID)))
	},
	registry.SaysStart: func(r *rich, s registry.Statement, _ registry.Why) string {
		if name := s.Stage.Function(); name != "" {
			return r.T("start the program that serves %s", r.data(name))
		}
		return r.T("start a worker for %s", r.stage(s.Stage))
	},
	registry.SaysFreeRoom: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("free room on the volume, or let items that have room reserved there end")
	},
	registry.SaysMoreMemory: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("nothing, or raise HOLDFAST_UNPACK_MEMORY of the workers that process")
	},
	registry.SaysConfirmAbandon: func(r *rich, _ registry.Statement, _ registry.Why) string {
		return r.T("another admin confirms that it is abandoned, or requeues the item to complete the version")
	},
}

// stage names a stage: in words, or a function as it is called.
func (r *rich) stage(s registry.Stage) string {
	if name := s.Function(); name != "" {
		return r.data(string(s))
	}
	return r.term(s)
}

// item names an item that another one waits for, with a link.
func (r *rich) item(o registry.Obstacle) string {
	if o.ID == "" {
		return r.T("an item of another collection")
	}
	name := o.Name
	if name == "" {
		name = o.ID
	}
	return r.link("/items/"+url.PathEscape(o.ID), name)
}

// state is an item's state, with the time of its next try.
func (r *rich) state(s registry.State, next *registry.NextTry) string {
	if next == nil {
		return r.term(s)
	}
	return r.nextTry(*next, r.at)
}

func (r *rich) requires(s registry.Statement, _ registry.Why) string {
	if len(s.Items) == 0 {
		return r.T("waits for %d item|waits for %d items", s.N)
	}
	text := ""
	for i, o := range s.Items {
		if i > 0 {
			text += ", "
		}
		name := r.item(o)
		if o.Step {
			name = r.T("its step outside %s", name)
		}
		text += name + " (" + r.term(o.State)
		if o.Note != "" {
			text += ": " + r.english(o.Note)
		}
		text += ")"
	}
	if more := s.N - int64(len(s.Items)); more > 0 {
		return r.T("waits for %s and %d more", text, more)
	}
	return r.T("waits for %s", text)
}

func (r *rich) jobsOpen(s registry.Statement, _ registry.Why) string {
	text := r.T("waits for %d item|waits for %d items", s.N)
	for i, o := range s.Items {
		if i == 0 {
			text += ": "
		} else {
			text += ", "
		}
		text += r.item(o) + " (" + r.state(o.State, o.NextTry) + ")"
	}
	if more := s.N - int64(len(s.Items)); more > 0 && len(s.Items) > 0 {
		return r.T("%s and %d more", text, more)
	}
	return text
}

func (r *rich) retry(s registry.Statement, _ registry.Why) string {
	text := r.T("retry at %s", r.at(*s.Until))
	if s.N > 0 {
		text += ", " + r.try(int(s.N), int(s.Of))
	}
	if s.Text != "" {
		text += " (" + r.english(s.Text) + ")"
	}
	return text
}

func (r *rich) place(s registry.Statement, _ registry.Why) (text string) {
	switch {
	case s.N > registry.MostInLine:
		text = r.T("position beyond %d for %s", registry.MostInLine, r.stage(s.Stage))
	case s.Of > registry.MostInLine:
		text = r.T("position %d of more than %d for %s", s.N, registry.MostInLine, r.stage(s.Stage))
	default:
		text = r.T("position %d of %d for %s", s.N, s.Of, r.stage(s.Stage))
	}
	if s.Others > 1 {
		text += ", " + r.T("where %d collections take turns", s.Others)
	}
	return text
}

func (r *rich) running(s registry.Statement, _ registry.Why) string {
	switch {
	case s.Name == "":
		return r.T("running")
	case s.Since == nil || s.Until == nil:
		return r.T("running on %s", r.data(s.Name))
	}
	return r.T("running %s on %s since %s, lease until %s", r.stage(s.Stage), r.data(s.Name), r.at(*s.Since), r.at(*s.Until))
}

// progress says one measure.
func (r *rich) progress(p registry.Progress) string {
	text := func(n int64) string {
		if p.Unit == "bytes" {
			return r.bytes(n)
		}
		return r.count(n)
	}
	said := text(p.Position)
	if p.End >= 0 {
		said = r.T("%s of %s", said, text(p.End))
	}
	if p.Unit != "bytes" {
		said += " " + r.unit(p.Unit)
	}
	return said
}

// measured names what a step counts, or a measure of it. Those of programs outside Holdfast are shown as
// they are.
func (v *view) measured(name string) string {
	if to, ok := between(name, "files copied to ", " and verified"); ok {
		return v.texts.T("files copied to %s and verified", to)
	}
	if to, ok := between(name, "bytes copied to ", " and verified"); ok {
		return v.texts.T("bytes copied to %s and verified", to)
	}
	if Measured(name) == "" {
		return name
	}
	return v.texts.T(Measured(name))
}

// unit is as measured, with foreign names as data.
func (r *rich) unit(name string) string {
	if text := r.measured(name); text != name || Measured(name) != "" {
		return text
	}
	return r.data(name)
}

// measure is unit, for pages.
func (v *view) measure(name string) template.HTML {
	r := &rich{view: v}
	return r.html(r.unit(name))
}

// between returns what is between a beginning and an end of a text that has both.
func between(text, beginning, end string) (inside string, ok bool) {
	rest, ok := strings.CutPrefix(text, beginning)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, end)
}

// Measured is the text for a unit or a measure of Holdfast's own steps; "" for any other.
func Measured(name string) string {
	switch name {
	case "files":
		return "files"
	case "rows":
		return "rows"
	case "items":
		return "items"
	case "names":
		return "names"
	case "bytes transferred":
		return "bytes transferred"
	case "files transferred":
		return "files transferred"
	case "bytes read back":
		return "bytes read back"
	case "bytes read again":
		return "bytes read again"
	case "bytes scanned":
		return "bytes scanned"
	case "bytes stored and verified":
		return "bytes stored and verified"
	case "bytes unpacked":
		return "bytes unpacked"
	case "files identified":
		return "files identified"
	case "files listed":
		return "files listed"
	case "files planned":
		return "files planned"
	case "files recorded":
		return "files recorded"
	case "files scanned":
		return "files scanned"
	case "files stored and verified":
		return "files stored and verified"
	case "files unpacked":
		return "files unpacked"
	case "rows expanded":
		return "rows expanded"
	case "rows compared":
		return "rows compared"
	case "sizes asked for":
		return "sizes asked for"
	}
	return ""
}

// orNow adds that the item can be retried at once, if it can.
func (r *rich) orNow(s registry.Statement, text string) string {
	if s.ItemID == "" {
		return text
	}
	return r.T("%s, or at once if you retry it now", text)
}

// hold says what keeps an item, by whom, since when, and why.
func (r *rich) hold(h *registry.Hold, w registry.Why) string {
	what := r.T("held")
	switch h.Scope {
	case registry.HoldAll:
		what = r.T("everything is paused")
	case registry.HoldIngest:
		what = r.T("the queue is paused")
	case registry.HoldStage:
		what = r.T("%s %s is held", r.term(h.Scope), r.stage(registry.Stage(h.Key)))
	case registry.HoldCollection, registry.HoldVolume, registry.HoldWorker:
		what = r.T("%s %s is held", r.term(h.Scope), r.data(h.Key))
	case registry.HoldBatch:
		if h.Key != w.ItemID {
			what = r.T("its batch is held")
		}
	case registry.HoldItem:
	}
	return r.T("%s since %s, by %s: %s", what, r.at(h.CreatedAt), r.data(h.Actor), r.data(h.Reason))
}
