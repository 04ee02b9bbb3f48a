package registry

import (
	"fmt"
	"strings"
	"time"
)

// Why is the answer to "why is it waiting?": statements with their facts, which pages word in the
// reader's language and time zone, and the same in English with times in UTC.
type Why struct {
	ItemID   string    `json:"item_id"`
	Reason   Reason    `json:"reason"`
	Sentence string    `json:"sentence"` // Because in English
	Actor    string    `json:"actor,omitempty"`
	Since    time.Time `json:"since"`
	Act      string    `json:"act,omitempty"` // Helps in English: what would let it continue
	// Because says why it waits, Helps what would let it continue.
	Because []Statement `json:"because,omitempty"`
	Helps   []Statement `json:"helps,omitempty"`
	At      time.Time   `json:"at"` // when this was so
	// Until is the time that it waits for, if it waits for one. Only Explaining.WhyEach sets it.
	Until *time.Time `json:"until,omitempty"`
}

// Statement is one statement of an explanation. Which facts it has depends on what it says.
type Statement struct {
	Says       Says       `json:"says"`
	Stage      Stage      `json:"stage,omitempty"`
	State      State      `json:"state,omitempty"`
	Collection string     `json:"collection,omitempty"`
	GraphID    string     `json:"graph_id,omitempty"`
	ItemID     string     `json:"item_id,omitempty"`
	Name       string     `json:"name,omitempty"` // of a worker, a person, or what is locked
	Text       string     `json:"text,omitempty"` // words of a worker or a person
	N          int64      `json:"n,omitempty"`
	Of         int64      `json:"of,omitempty"`
	Others     int64      `json:"others,omitempty"`
	Uploads    bool       `json:"uploads,omitempty"`
	Since      *time.Time `json:"since,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	Items      []Obstacle `json:"items,omitempty"`
	Hold       *Hold      `json:"hold,omitempty"`
	Progress   []Progress `json:"progress,omitempty"`
	Remedy     *Remedy    `json:"remedy,omitempty"`
}

// Obstacle is an item that another one waits for.
type Obstacle struct {
	ID      string   `json:"id,omitempty"` // "": the reader may not see the item; it is of another collection
	Name    string   `json:"name,omitempty"`
	State   State    `json:"state"`
	NextTry *NextTry `json:"next_try,omitempty"`
	Note    string   `json:"note,omitempty"`
	Step    bool     `json:"step,omitempty"` // it is an outside step of the item that waits
}

// Says is what a [Statement] says. A meaning never changes.
type Says string

// What a statement says of why an item waits, with the facts that it has beside.
const (
	SaysSettled         Says = "settled"          // nothing keeps it; State
	SaysFailed          Says = "failed"           // Stage, Text: the error
	SaysAbandonAsked    Says = "abandon-asked"    // to abandon its version; Name by whom, Since, Text: the reason
	SaysHeld            Says = "held"             // Hold
	SaysHeldNext        Says = "held-next"        // its next step is; Hold
	SaysNotSealed       Says = "not-sealed"       // GraphID
	SaysRequires        Says = "requires"         // to start: the first Items of N
	SaysJobsOpen        Says = "jobs-open"        // to end: the first Items of N
	SaysLocked          Says = "locked"           // by the only one of Items, if it is known; Name: the object
	SaysNoted           Says = "noted"            // Text: what its worker noted
	SaysNextCheck       Says = "next-check"       // Until
	SaysRetry           Says = "retry"            // Until; N: number of the try, 0: unknown; Of: the last one's, 0: unknown; Text: the error
	SaysNotDue          Says = "not-due"          // it waits for its time
	SaysPlace           Says = "place"            // N of Of in the line of Stage, where Others collections take turns; both at most [MostInLine]+1
	SaysTurn            Says = "turn"             // in the line of Stage
	SaysShareUsed       Says = "share-used"       // Collection has Of slots of N at Stage, its share; Others are kept for other collections, and for Uploads
	SaysSlotsTaken      Says = "slots-taken"      // of N slots at Stage all but Others, which are for uploads; Collection has Of
	SaysStageLimit      Says = "stage-limit"      // N run at Stage, which is the limit
	SaysCollectionLimit Says = "collection-limit" // N of Collection run, which is the limit
	SaysAlone           Says = "alone"            // its workers were lost N times, so it runs alone, on worker Name if that is known
	SaysNoWorker        Says = "no-worker"        // that serves Stage; Hold: of the workers
	SaysStopping        Says = "stopping"         // the last worker that serves Stage is
	SaysRunning         Says = "running"          // on worker Name; Stage, Since and Until (its lease), if they are known
	SaysLeaseOver       Says = "lease-over"       // of worker Name, which ran Stage; Until
	SaysProgress        Says = "progress"         // Progress
)

// What a statement says of what helps. The first ones say that nothing needs to be done.
const (
	SaysStartsInTurn   Says = "starts-in-turn"
	SaysStartsFreed    Says = "starts-when-freed"  // when one at Stage ends
	SaysLimitFreed     Says = "limit-freed"        // when one ends
	SaysJobsSettle     Says = "jobs-settle"        // when they have
	SaysLockFreed      Says = "lock-freed"         // when the other item has settled
	SaysThaws          Says = "thaws"              // when the archive has restored the files
	SaysRetried        Says = "retried"            // by itself; or now, by a retry of ItemID
	SaysChecked        Says = "checked"            // by itself; or now, by a retry of ItemID
	SaysAdvice         Says = "advice"             // Text: of the worker, or that of Remedy in English
	SaysRelease        Says = "release"            // Hold, of which only the scope and the key are given
	SaysRequeue        Says = "requeue"            // the only one of Items
	SaysSeal           Says = "seal"               // GraphID
	SaysStart          Says = "start"              // what serves Stage
	SaysFreeRoom       Says = "free-room"          // on its volume
	SaysMoreMemory     Says = "more-memory"        // for workers that unpack
	SaysConfirmAbandon Says = "confirm-abandoning" // by another admin
)

// MostInLine is how many items of a line are counted.
const MostInLine = 10_000

// Say sets the sentences by the statements.
func (w *Why) Say() {
	w.Sentence, w.Act = w.text(w.Because), w.text(w.Helps)
	if len(w.Helps) > 0 {
		switch w.Helps[0].Says {
		case SaysStartsInTurn, SaysStartsFreed, SaysLimitFreed, SaysJobsSettle, SaysLockFreed, SaysThaws, SaysRetried, SaysChecked:
			w.Act = "nothing: " + w.Act
		default:
		}
	}
}

func (w *Why) text(all []Statement) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = inEnglish[s.Says](s, w)
	}
	return strings.Join(texts, "; ")
}

// Statements lists all that a [Statement] may say.
func Statements() (all []Says) {
	for s := range inEnglish {
		all = append(all, s)
	}
	return all
}

// inEnglish words each statement.
var inEnglish = map[Says]func(Statement, *Why) string{
	SaysSettled: func(s Statement, _ *Why) string { return fmt.Sprintf("it is %s and waits for nothing", s.State) },
	SaysFailed:  func(s Statement, _ *Why) string { return fmt.Sprintf("it failed at %s: %s", s.Stage, s.Text) },
	SaysAbandonAsked: func(s Statement, _ *Why) string {
		return fmt.Sprintf("abandoning its version was asked for by %s at %s: %s", s.Name, s.Since.UTC().Format(time.DateTime), s.Text)
	},
	SaysHeld:     func(s Statement, w *Why) string { return w.hold(s.Hold) },
	SaysHeldNext: func(s Statement, w *Why) string { return "before its next step: " + w.hold(s.Hold) },
	SaysNotSealed: func(s Statement, _ *Why) string {
		return fmt.Sprintf("its graph %s is not sealed yet; its items start after that", s.GraphID)
	},
	SaysRequires: requires,
	SaysJobsOpen: jobsOpen,
	SaysLocked:   locked,
	SaysNoted:    func(s Statement, _ *Why) string { return s.Text },
	SaysNextCheck: func(s Statement, w *Why) string {
		return "next check at " + w.moment(*s.Until)
	},
	SaysRetry:  retry,
	SaysNotDue: func(Statement, *Why) string { return "waits for its time" },
	SaysPlace:  place,
	SaysTurn:   func(s Statement, _ *Why) string { return fmt.Sprintf("waits for its turn at %s", s.Stage) },
	SaysShareUsed: func(s Statement, _ *Why) string {
		kept := "other collections"
		if s.Uploads {
			kept += " and uploads"
		}
		return fmt.Sprintf("of the %s at %s, collection %s has the %d that one collection may have; the others (%d) are kept for %s",
			Count(s.N, "slot"), s.Stage, s.Collection, s.Of, s.Others, kept)
	},
	SaysSlotsTaken: func(s Statement, _ *Why) string {
		return fmt.Sprintf("of the %s at %s, all but those for uploads (%d) are taken, %d of them by collection %s",
			Count(s.N, "slot"), s.Stage, s.Others, s.Of, s.Collection)
	},
	SaysStageLimit: func(s Statement, _ *Why) string {
		return fmt.Sprintf("the limit of %s at %s is reached", Count(s.N, "running item"), s.Stage)
	},
	SaysCollectionLimit: func(s Statement, _ *Why) string {
		return fmt.Sprintf("the limit of %s of collection %s is reached", Count(s.N, "running item"), s.Collection)
	},
	SaysAlone: func(s Statement, _ *Why) string {
		text := fmt.Sprintf("its workers were lost %d times in a row, so it runs alone", s.N)
		if s.Name != "" {
			text += " as soon as worker " + s.Name + " runs nothing else"
		}
		return text
	},
	SaysNoWorker: func(s Statement, w *Why) string {
		text := fmt.Sprintf("no worker serves %s", s.Stage)
		if s.Hold != nil {
			text += ": " + w.hold(s.Hold)
		}
		return text
	},
	SaysStopping: func(s Statement, _ *Why) string {
		return fmt.Sprintf("the last worker that serves %s is stopping", s.Stage)
	},
	SaysRunning: running,
	SaysLeaseOver: func(s Statement, w *Why) string {
		return fmt.Sprintf("was running %s on %s, whose lease ended at %s; another worker will take over", s.Stage, s.Name, w.moment(*s.Until))
	},
	SaysProgress: func(s Statement, _ *Why) string {
		texts := make([]string, len(s.Progress))
		for i, p := range s.Progress {
			texts[i] = p.text()
		}
		return strings.Join(texts, ", ")
	},

	SaysStartsInTurn: func(Statement, *Why) string {
		return "it starts in its turn; a lower priority number brings it forward"
	},
	SaysStartsFreed: func(s Statement, _ *Why) string {
		return fmt.Sprintf("it starts when a running one ends; more workers for %s, or a higher HOLDFAST_CONCURRENCY, let more run at once", s.Stage)
	},
	SaysLimitFreed: func(Statement, *Why) string {
		return "it starts in its turn when a running one ends; an admin may raise the limit"
	},
	SaysJobsSettle: func(Statement, *Why) string { return "it continues when they have settled" },
	SaysLockFreed:  func(Statement, *Why) string { return "it continues when that item has settled" },
	SaysThaws:      func(Statement, *Why) string { return "it continues when the archive has restored the files" },
	SaysRetried:    func(s Statement, _ *Why) string { return "it is retried automatically" + orNow(s.ItemID) },
	SaysChecked:    func(s Statement, _ *Why) string { return "it is checked again automatically" + orNow(s.ItemID) },
	SaysAdvice:     func(s Statement, _ *Why) string { return s.Text },
	SaysRelease: func(s Statement, _ *Why) string {
		if s.Hold.Scope.Keyless() {
			return "resume the queue"
		}
		return fmt.Sprintf("release the hold on %s %s", s.Hold.Scope, s.Hold.Key)
	},
	SaysRequeue: func(s Statement, _ *Why) string {
		text := "requeue item " + s.Items[0].id()
		if s.Items[0].Step {
			text += ", or abort it to go on without it"
		}
		return text
	},
	SaysSeal: func(s Statement, _ *Why) string { return "seal graph " + s.GraphID },
	SaysStart: func(s Statement, _ *Why) string {
		if name := s.Stage.Function(); name != "" {
			return "start the program that serves " + name
		}
		return fmt.Sprintf("start a worker for %s", s.Stage)
	},
	SaysFreeRoom: func(Statement, *Why) string {
		return "free room on the volume, or let items that have room reserved there complete"
	},
	SaysMoreMemory: func(Statement, *Why) string {
		return "nothing, or raise HOLDFAST_UNPACK_MEMORY of the process workers"
	},
	SaysConfirmAbandon: func(Statement, *Why) string {
		return "another admin confirms the abandonment, or requeues the item to complete the version"
	},
}

// Foreign stands in a text for an item that its reader may not see.
const Foreign = "(of another collection)"

// id names an item, or says that it may not be named.
func (o Obstacle) id() string {
	if o.ID == "" {
		return Foreign
	}
	return o.ID
}

// requires says what an item needs to start.
func requires(s Statement, _ *Why) string {
	parts := make([]string, 0, len(s.Items)+1)
	for _, o := range s.Items {
		text := o.id()
		if o.Step {
			text = "its outside step " + text
		}
		if o.Name != "" {
			text += " (" + o.Name + ")"
		}
		text += fmt.Sprintf(", which is %s", o.State)
		if o.Note != "" {
			text += ": " + o.Note
		}
		parts = append(parts, text)
	}
	if more := s.N - int64(len(s.Items)); more > 0 && len(parts) > 0 {
		parts = append(parts, Count(more, "other item"))
	} else if more > 0 {
		parts = append(parts, Count(more, "item"))
	}
	return "waits for " + strings.Join(parts, ", and for ")
}

// jobsOpen says which jobs a batch needs.
func jobsOpen(s Statement, w *Why) string {
	text := "waits for " + Count(s.N, "item")
	sep := ": "
	for _, o := range s.Items {
		text, sep = text+sep+o.called(w), ", "
	}
	if more := s.N - int64(len(s.Items)); more > 0 && len(s.Items) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// called names an item, with its state.
func (o Obstacle) called(w *Why) string {
	return fmt.Sprintf("%s (%s)", strings.TrimSpace(o.Name+" "+o.id()), StateText(o.State, o.NextTry, w.At.UTC()))
}

func locked(s Statement, w *Why) string {
	if len(s.Items) == 0 {
		return "waits for another item that works on the same object"
	}
	return fmt.Sprintf("waits for item %s, which was submitted earlier or has begun already, and works on the same object (%s)", s.Items[0].called(w), s.Name)
}

func retry(s Statement, w *Why) string {
	note := s.Text
	if s.N > 0 {
		try := fmt.Sprintf("attempt %d", s.N)
		if s.Of > 0 {
			try += fmt.Sprintf(" of %d", s.Of)
		}
		note = strings.TrimSuffix(try+": "+note, ": ")
	}
	text := "retry at " + w.moment(*s.Until)
	if note != "" {
		text += " (" + note + ")"
	}
	return text
}

func place(s Statement, _ *Why) string {
	text := fmt.Sprintf("position %d of %d for %s", s.N, s.Of, s.Stage)
	switch {
	case s.N > MostInLine:
		text = fmt.Sprintf("position beyond %s for %s", CountText(MostInLine), s.Stage)
	case s.Of > MostInLine:
		text = fmt.Sprintf("position %d of more than %s for %s", s.N, CountText(MostInLine), s.Stage)
	}
	if s.Others > 1 {
		text += fmt.Sprintf(", where %d collections take turns", s.Others)
	}
	return text
}

func running(s Statement, w *Why) string {
	text := "running"
	if s.Since != nil {
		text += " " + string(s.Stage)
	}
	if s.Name != "" {
		text += " on " + s.Name
	}
	if s.Since != nil && s.Until != nil {
		text += fmt.Sprintf(" for %s, lease until %s", span(w.At.Sub(*s.Since)), w.moment(*s.Until))
	}
	return text
}

// orNow says that an item can be retried at once, if it can.
func orNow(itemID string) string {
	if itemID == "" {
		return ""
	}
	return ", or at once: retry item " + itemID
}

// hold says what keeps the item, by whom, since when, and why.
func (w *Why) hold(h *Hold) string {
	return fmt.Sprintf("%s by %s since %s (%s)", w.heldWhat(h), h.Actor, h.CreatedAt.UTC().Format(time.RFC3339), h.Reason)
}

// heldWhat says what a hold keeps back, seen from the item.
func (w *Why) heldWhat(h *Hold) string {
	switch h.Scope {
	case HoldAll:
		return "everything is paused"
	case HoldIngest:
		return "queue paused"
	case HoldStage, HoldCollection, HoldVolume, HoldWorker:
		return fmt.Sprintf("%s %s is held", h.Scope, h.Key)
	case HoldBatch:
		if h.Key != w.ItemID {
			return "its batch is held"
		}
	case HoldItem:
	}
	return "held"
}

// moment formats a time for people: only the time of day if it is today.
func (w *Why) moment(t time.Time) string {
	if t.UTC().Format(time.DateOnly) == w.At.UTC().Format(time.DateOnly) {
		return t.UTC().Format(time.TimeOnly) + " UTC"
	}
	return t.UTC().Format(time.DateTime) + " UTC"
}

// span formats a duration for people: 42 s, 4 m, 3 h 20 m.
func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d m", d/time.Minute)
	}
	return fmt.Sprintf("%d h %d m", d/time.Hour, d%time.Hour/time.Minute)
}

// text describes a measure: 48 of 70 files, 1.2 GiB of 3 GiB.
func (p Progress) text() string {
	number, unit := func(n int64) string { return fmt.Sprint(n) }, " "+p.Unit
	if p.Unit == "bytes" {
		number, unit = SizeText, ""
	}
	if p.End < 0 {
		return number(p.Position) + unit
	}
	return number(p.Position) + " of " + number(p.End) + unit
}
