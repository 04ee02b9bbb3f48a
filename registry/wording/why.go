package wording

import (
	"maps"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// Say sets the sentences of an explanation by its statements, in English.
func Say(w *registry.Why) {
	english := English{At: w.At}
	w.Sentence, w.Act = Because(english, *w), Helps(english, *w)
}

// Because words why an item waits; "" if it says what this program does not know.
func Because(in Words, w registry.Why) string { return all(in, w.Because, w.ItemID) }

// Helps words what would let an item continue; "" if it says what this program does not know.
func Helps(in Words, w registry.Why) string {
	text := all(in, w.Helps, w.ItemID)
	if text == "" {
		return ""
	}
	switch w.Helps[0].Says {
	case registry.SaysStartsInTurn, registry.SaysStartsFreed, registry.SaysLimitFreed, registry.SaysJobsSettle, registry.SaysLockFreed,
		registry.SaysThaws, registry.SaysRetried, registry.SaysChecked:
		return in.T("nothing: %s", text)
	default:
		return text
	}
}

// Statement words one statement about an item, an act on it, or a fault; "" for one that this program does not know.
func Statement(in Words, s registry.Statement, itemID string) string {
	for _, all := range kinds {
		if say := all[s.Says]; say != nil {
			return say(phrase{in, itemID}, s)
		}
	}
	return ""
}

// Statements lists all that a statement may say.
func Statements() (all []registry.Says) {
	for _, some := range kinds {
		all = slices.AppendSeq(all, maps.Keys(some))
	}
	return all
}

// kinds are the words of all kinds of statements.
var kinds = []map[registry.Says]func(phrase, registry.Statement) string{wordings, consequences, faults}

func all(in Words, statements []registry.Statement, itemID string) (text string) {
	for i, s := range statements {
		said := Statement(in, s, itemID)
		if said == "" {
			return ""
		}
		if i > 0 {
			text += "; "
		}
		text += said
	}
	return text
}

// phrase words statements about an item.
type phrase struct {
	Words

	itemID string
}

// wordings word each statement of why an item waits, and of what helps.
var wordings = map[registry.Says]func(phrase, registry.Statement) string{
	registry.SaysSettled: func(p phrase, s registry.Statement) string {
		return p.T("it is %s and waits for nothing", p.Term(s.State))
	},
	registry.SaysFailed: func(p phrase, s registry.Statement) string {
		return p.T("it failed at %s: %s", p.Stage(s.Stage), p.Said(s.Text))
	},
	registry.SaysAbandonAsked: func(p phrase, s registry.Statement) string {
		return p.T("abandoning its version was asked for by %s at %s: %s", p.Name(s.Name), p.Time(*s.Since), p.Name(s.Text))
	},
	registry.SaysHeld: func(p phrase, s registry.Statement) string { return p.hold(s.Hold) },
	registry.SaysHeldNext: func(p phrase, s registry.Statement) string {
		return p.T("before its next step: %s", p.hold(s.Hold))
	},
	registry.SaysNotSealed: func(p phrase, s registry.Statement) string {
		return p.T("its graph %s is not sealed yet; its items start after that", p.Graph(s.GraphID))
	},
	registry.SaysRequires:  phrase.requires,
	registry.SaysJobsOpen:  phrase.jobsOpen,
	registry.SaysLocked:    phrase.locked,
	registry.SaysNoted:     func(p phrase, s registry.Statement) string { return p.Said(s.Text) },
	registry.SaysNextCheck: func(p phrase, s registry.Statement) string { return p.T("next check at %s", p.Time(*s.Until)) },
	registry.SaysRetry:     phrase.retry,
	registry.SaysNotDue:    func(p phrase, _ registry.Statement) string { return p.T("waits for its time") },
	registry.SaysPlace:     phrase.place,
	registry.SaysTurn:      func(p phrase, s registry.Statement) string { return p.T("waits for its turn at %s", p.Stage(s.Stage)) },
	registry.SaysShareUsed: func(p phrase, s registry.Statement) string {
		if s.Uploads {
			return p.T("of the %d slot at %s, collection %s has the %d that one collection may have; the others (%d) are kept for other collections and uploads|"+
				"of the %d slots at %s, collection %s has the %d that one collection may have; the others (%d) are kept for other collections and uploads",
				s.N, p.Stage(s.Stage), p.Name(s.Collection), s.Of, s.Others)
		}
		return p.T("of the %d slot at %s, collection %s has the %d that one collection may have; the others (%d) are kept for other collections|"+
			"of the %d slots at %s, collection %s has the %d that one collection may have; the others (%d) are kept for other collections",
			s.N, p.Stage(s.Stage), p.Name(s.Collection), s.Of, s.Others)
	},
	registry.SaysSlotsTaken: func(p phrase, s registry.Statement) string {
		return p.T("of the %d slot at %s, all but those for uploads (%d) are taken, %d of them by collection %s|"+
			"of the %d slots at %s, all but those for uploads (%d) are taken, %d of them by collection %s",
			s.N, p.Stage(s.Stage), s.Others, s.Of, p.Name(s.Collection))
	},
	registry.SaysStageLimit: func(p phrase, s registry.Statement) string {
		return p.T("the limit of %d running item at %s is reached|the limit of %d running items at %s is reached", s.N, p.Stage(s.Stage))
	},
	registry.SaysCollectionLimit: func(p phrase, s registry.Statement) string {
		return p.T("the limit of %d running item of collection %s is reached|the limit of %d running items of collection %s is reached", s.N, p.Name(s.Collection))
	},
	registry.SaysAlone: func(p phrase, s registry.Statement) string {
		if s.Name == "" {
			return p.T("its workers were lost %d times in a row, so it runs alone", s.N)
		}
		return p.T("its workers were lost %d times in a row, so it runs alone as soon as worker %s runs nothing else", s.N, p.Name(s.Name))
	},
	registry.SaysNoWorker: func(p phrase, s registry.Statement) string {
		text := p.T("no worker serves %s", p.Stage(s.Stage))
		if s.Hold != nil {
			text += ": " + p.hold(s.Hold)
		}
		return text
	},
	registry.SaysStopping: func(p phrase, s registry.Statement) string {
		return p.T("the last worker that serves %s is stopping", p.Stage(s.Stage))
	},
	registry.SaysRunning: phrase.running,
	registry.SaysLeaseOver: func(p phrase, s registry.Statement) string {
		return p.T("was running %s on %s, whose lease ended at %s; another worker will take over", p.Stage(s.Stage), p.Name(s.Name), p.Time(*s.Until))
	},
	registry.SaysProgress: func(p phrase, s registry.Statement) (text string) {
		for i, measure := range s.Progress {
			if i > 0 {
				text += ", "
			}
			text += Progress(p.Words, measure)
		}
		return text
	},

	registry.SaysStartsInTurn: func(p phrase, _ registry.Statement) string {
		return p.T("it starts in its turn; a lower priority number brings it forward")
	},
	registry.SaysStartsFreed: func(p phrase, s registry.Statement) string {
		return p.T("it starts when a running one ends; more workers for %s, or a higher HOLDFAST_CONCURRENCY, let more run at once", p.Stage(s.Stage))
	},
	registry.SaysLimitFreed: func(p phrase, _ registry.Statement) string {
		return p.T("it starts in its turn when a running one ends; an admin may raise the limit")
	},
	registry.SaysJobsSettle: func(p phrase, _ registry.Statement) string {
		return p.T("it continues when they have settled")
	},
	registry.SaysLockFreed: func(p phrase, _ registry.Statement) string {
		return p.T("it continues when that item has settled")
	},
	registry.SaysThaws: func(p phrase, _ registry.Statement) string {
		return p.T("it continues when the archive has restored the files")
	},
	registry.SaysRetried: func(p phrase, s registry.Statement) string {
		return p.orNow(s, p.T("it is retried automatically"))
	},
	registry.SaysChecked: func(p phrase, s registry.Statement) string {
		return p.orNow(s, p.T("it is checked again automatically"))
	},
	registry.SaysAdvice: func(p phrase, s registry.Statement) string {
		if s.Remedy != nil {
			if text := Remedy(p, *s.Remedy); text != "" {
				return text
			}
		}
		return p.Said(s.Text)
	},
	registry.SaysRelease: func(p phrase, s registry.Statement) string {
		if s.Hold.Scope.Keyless() {
			return p.T("resume the queue")
		}
		return p.T("release the hold on %s %s", p.Term(s.Hold.Scope), p.Held(*s.Hold))
	},
	registry.SaysRequeue: func(p phrase, s registry.Statement) string {
		if s.Items[0].Step {
			return p.T("requeue item %s, or abort it to go on without it", p.Item(s.Items[0].ID, ""))
		}
		return p.T("requeue item %s", p.Item(s.Items[0].ID, ""))
	},
	registry.SaysSeal: func(p phrase, s registry.Statement) string { return p.T("seal graph %s", p.Graph(s.GraphID)) },
	registry.SaysStart: func(p phrase, s registry.Statement) string {
		if name := s.Stage.Function(); name != "" {
			return p.T("start the program that serves %s", p.Name(name))
		}
		return p.T("start a worker for %s", p.Stage(s.Stage))
	},
	registry.SaysFreeRoom: func(p phrase, _ registry.Statement) string {
		return p.T("free room on the volume, or let items that have room reserved there complete")
	},
	registry.SaysMoreMemory: func(p phrase, _ registry.Statement) string {
		return p.T("nothing, or raise HOLDFAST_UNPACK_MEMORY of the process workers")
	},
	registry.SaysConfirmAbandon: func(p phrase, _ registry.Statement) string {
		return p.T("another admin confirms the abandonment, or requeues the item to complete the version")
	},
}

// requires says what an item needs to start.
func (p phrase) requires(s registry.Statement) (text string) {
	for _, o := range s.Items {
		item := p.Item(o.ID, o.Name)
		if o.Step {
			item = p.T("its outside step %s", item)
		}
		if item = p.T("%s, which is %s", item, p.Term(o.State)); o.Note != "" {
			item += ": " + p.Said(o.Note)
		}
		text = p.also(text, item)
	}
	switch more := s.N - int64(len(s.Items)); {
	case more > 0 && text != "":
		text = p.also(text, p.T("%d other item|%d other items", more))
	case more > 0:
		text = p.T("%d item|%d items", more)
	}
	return p.T("waits for %s", text)
}

func (p phrase) also(text, more string) string {
	if text == "" {
		return more
	}
	return p.T("%s, and for %s", text, more)
}

// jobsOpen says which jobs a batch needs.
func (p phrase) jobsOpen(s registry.Statement) string {
	text, sep := p.T("waits for %d item|waits for %d items", s.N), ": "
	for _, o := range s.Items {
		text, sep = text+sep+p.called(o), ", "
	}
	if more := s.N - int64(len(s.Items)); more > 0 && len(s.Items) > 0 {
		text = p.T("%s and %d more", text, more)
	}
	return text
}

// called names an item, with its state.
func (p phrase) called(o registry.Obstacle) string {
	return p.Item(o.ID, o.Name) + " (" + p.State(o.State, o.NextTry) + ")"
}

func (p phrase) locked(s registry.Statement) string {
	if len(s.Items) == 0 {
		return p.T("waits for another item that works on the same object")
	}
	return p.T("waits for item %s, which was submitted earlier or has begun already, and works on the same object (%s)", p.called(s.Items[0]), p.Name(s.Name))
}

func (p phrase) retry(s registry.Statement) string {
	note := ""
	switch {
	case s.N > 0 && s.Of > 0:
		note = p.T("attempt %d of %d", s.N, s.Of)
	case s.N > 0:
		note = p.T("attempt %d", s.N)
	}
	switch {
	case s.Text != "" && note != "":
		note += ": " + p.Said(s.Text)
	case s.Text != "":
		note = p.Said(s.Text)
	}
	text := p.T("retry at %s", p.Time(*s.Until))
	if note != "" {
		text += " (" + note + ")"
	}
	return text
}

func (p phrase) place(s registry.Statement) (text string) {
	switch {
	case s.N > registry.MostInLine:
		text = p.T("position beyond %d for %s", registry.MostInLine, p.Stage(s.Stage))
	case s.Of > registry.MostInLine:
		text = p.T("position %d of more than %d for %s", s.N, registry.MostInLine, p.Stage(s.Stage))
	default:
		text = p.T("position %d of %d for %s", s.N, s.Of, p.Stage(s.Stage))
	}
	if s.Others > 1 {
		text += ", " + p.T("where %d collections take turns", s.Others)
	}
	return text
}

func (p phrase) running(s registry.Statement) string {
	switch {
	case s.Name == "":
		return p.T("running")
	case s.Since == nil || s.Until == nil:
		return p.T("running on %s", p.Name(s.Name))
	}
	return p.T("running %s on %s since %s, lease until %s", p.Stage(s.Stage), p.Name(s.Name), p.Time(*s.Since), p.Time(*s.Until))
}

// Progress words a measure: 48 of 70 files, 1.2 GiB of 3 GiB.
func Progress(in Words, p registry.Progress) string {
	text := func(n int64) string {
		if p.Unit == "bytes" {
			return in.Size(n)
		}
		return in.T("%d", n)
	}
	said := text(p.Position)
	if p.End >= 0 {
		said = in.T("%s of %s", said, text(p.End))
	}
	if p.Unit != "bytes" {
		said += " " + in.Unit(p.Unit)
	}
	return said
}

// orNow adds that the item can be retried at once, if it can.
func (p phrase) orNow(s registry.Statement, text string) string {
	if s.ItemID == "" {
		return text
	}
	return p.T("%s, or at once: retry item %s", text, p.Item(s.ItemID, ""))
}

// hold says what keeps an item, by whom, since when, and why.
func (p phrase) hold(h *registry.Hold) string {
	what := p.T("held")
	switch h.Scope {
	case registry.HoldAll:
		what = p.T("everything is paused")
	case registry.HoldIngest:
		what = p.T("queue paused")
	case registry.HoldStage:
		what = p.T("%s %s is held", p.Term(h.Scope), p.Stage(registry.Stage(h.Key)))
	case registry.HoldCollection, registry.HoldVolume, registry.HoldWorker:
		what = p.T("%s %s is held", p.Term(h.Scope), p.Name(h.Key))
	case registry.HoldBatch:
		if h.Key != p.itemID {
			what = p.T("its batch is held")
		}
	case registry.HoldItem:
	}
	return p.T("%s by %s since %s (%s)", what, p.Name(h.Actor), p.Time(h.CreatedAt), p.Name(h.Reason))
}
