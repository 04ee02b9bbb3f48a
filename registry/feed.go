package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Feeds lists the events of all items in order.
type Feeds interface {
	// Feed lists events of all items after a cursor, oldest first.
	Feed(ctx context.Context, q FeedQuery) ([]Event, error)
	// FeedEnd returns the cursor of the newest event, or 0.
	FeedEnd(ctx context.Context) (int64, error)
	// AwaitFeed returns nil soon after there is an event after a cursor, or at once if there is
	// one. It returns ctx's error if ctx ends first.
	AwaitFeed(ctx context.Context, after int64) error
	// Audit lists what people did and were refused, and which backups were made, newest first.
	Audit(ctx context.Context, q AuditQuery) (Page[Event], error)
}

// Accessing records who reads what is preserved.
type Accessing interface {
	// NoteAccess adds an entry to the audit log. It is durable when it returns, so callers note an access
	// before they send its first byte. A repeat adds another entry.
	NoteAccess(ctx context.Context, a Access) error
}

// Access is one person's or program's reading of an object's files. Its entry belongs to no collection,
// so only those who may see the audit log learn who read what.
type Access struct {
	Kind       string    `json:"-"` // EventExported, EventFilesRead or EventRestoreFetched
	Actor      string    `json:"-"` // name of the token
	ObjectID   string    `json:"object_id"`
	Collection string    `json:"collection"`
	Version    int       `json:"version"`
	By         AccessWay `json:"by"`
	Form       string    `json:"form,omitempty"`    // of an export: zip, tar, bag in zip, bag in tar
	Export     string    `json:"export,omitempty"`  // id that a command gave its export; one export may have several entries
	File       string    `json:"file,omitempty"`    // of files-read: the first one
	Restore    int       `json:"restore,omitempty"` // of restore-fetched: its number among the object's
	Remote     string    `json:"remote,omitempty"`  // address that the request came from
}

// AccessWay is by which way somebody reads.
type AccessWay string

// The ways.
const (
	ByPage    AccessWay = "page"
	ByCommand AccessWay = "command"
	ByAPI     AccessWay = "API"
)

// BackupNoting records backups of the Registry.
type BackupNoting interface {
	// NoteBackup adds a backup that was made and verified to the audit log. A repeat adds another entry.
	NoteBackup(ctx context.Context, b Backup) error
}

// Backup is a backup that the service made by itself, read back, and found right.
type Backup struct {
	Name     string `json:"name"`
	Place    string `json:"place"`    // folder or bucket, without credentials
	Bytes    int64  `json:"bytes"`    // of the file
	Database bool   `json:"database"` // false: keys and settings only, as of a Registry on PostgreSQL
	Objects  int64  `json:"objects"`  // in its database
	Versions int64  `json:"versions"`
	Program  string `json:"program"` // version of Holdfast
}

// FeedQuery selects events of the feed; empty fields do not restrict.
type FeedQuery struct {
	After  int64    `json:"after"`             // cursor of the last event that was read
	ItemID string   `json:"item_id,omitempty"` // only events of this item
	Types  []string `json:"types"`             // only events of these types
	Within []string `json:"within"`            // only events of items in these collections; nil: all, empty: none
	Limit  int      `json:"limit"`             // 0: 50; at most 500
}

// FeedPage is a page of the feed.
type FeedPage struct {
	Events []Event
	Next   int64 // next cursor; it may be behind events that the query does not select
	End    int64 // cursor of the newest event
}

// ReadFeed reads a page, whose limit must be set, and finds the next cursor.
func ReadFeed(ctx context.Context, r interface {
	Feed(ctx context.Context, q FeedQuery) ([]Event, error)
	FeedEnd(ctx context.Context) (int64, error)
}, q FeedQuery,
) (FeedPage, error) {
	end, err := r.FeedEnd(ctx) // read this first, so that the query below sees all events up to it
	if err != nil {
		return FeedPage{}, err
	}
	events, err := r.Feed(ctx, q)
	if err != nil {
		return FeedPage{}, err
	}
	p := FeedPage{Events: events, End: end, Next: max(q.After, end)}
	if len(events) > 0 {
		last := events[len(events)-1].Seq
		p.End = max(end, last)
		if len(events) >= q.Limit || last > end {
			p.Next = last
		}
	}
	return p, nil
}

// AuditQuery selects entries of the audit log: what people requested and were refused, and backups, not
// what workers and the Registry did to items on their own. A bulk act is one entry. Empty fields do not
// restrict.
type AuditQuery struct {
	Actor string   `json:"actor"` // name of the token
	Types []string `json:"types"` // only entries of these types
	// Since and Until limit the time: from Since on, and before Until. Zero does not.
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	After  string    `json:"after"`            // Next of the previous page
	Before string    `json:"before,omitempty"` // Prev of a page: the page that ends before it; not with After
	Limit  int       `json:"limit"`            // 0: 50; at most 500
}

// Types of events that are not acts on items.
const (
	EventTokenCreated = "token-created"
	EventTokenRevoked = "token-revoked"
	EventRefused      = "refused"
	// Events about credentials contain collection, origin, kind and name, and no secret.
	EventCredentialSet     = "credential-set"
	EventCredentialRemoved = "credential-removed"

	// Events about accesses, see Access. Reads of single files are one entry for each person, object,
	// version, way and day.
	EventExported       = "exported"
	EventFilesRead      = "files-read"
	EventRestoreFetched = "restore-fetched"

	EventBackupMade = "backup-made" // see Backup

	EventCollection = "collection" // a profile was stored
	EventDuplicate  = "duplicate"  // the same content was submitted before
	EventCorrected  = "corrected"  // another batch corrects this one

	EventIdentified        = "identifier-assignment"
	EventIdentifierRefused = "identifier-refused"
	EventIntend            = "intend"
	EventRecorded          = "recorded"
)

// Types of events that steps tell, with their settlement.
const (
	EventManifestRefused     = "manifest-refused"
	EventManifestWarnings    = "manifest-warnings"
	EventRowsRepeated        = "rows-repeated"
	EventBagRefused          = "bag-refused"
	EventContainerRefused    = "container-refused"
	EventStored              = "stored"
	EventValidation          = "validation"
	EventIdentifierPublished = "identifier-published"
	EventIdentifierWithdrawn = "identifier-withdrawn"
)

// FeedFilter selects events of the feed. Empty fields do not restrict, so an empty filter selects
// all events, including those about tokens, holds and refusals.
type FeedFilter struct {
	Types       []string `json:"types,omitempty"`       // only events of these types
	Collections []string `json:"collections,omitempty"` // only events of items in these collections
	// Actions and States select only transitions: of items of these actions, and to these states.
	Actions []Action `json:"actions,omitempty"`
	States  []State  `json:"states,omitempty"`
}

// Check returns ErrInvalid, with the reason, for a filter that can select nothing. It cannot know
// all types, since workers have their own, and collections may come later.
func (f FeedFilter) Check() error {
	if len(f.Types)+len(f.Collections) > mostFilterWords {
		field := "filter.types"
		if len(f.Collections) > len(f.Types) {
			field = "filter.collections"
		}
		return InField(field, fmt.Errorf("%w: a filter has at most %d types and collections", ErrInvalid, mostFilterWords))
	}
	for _, t := range f.Types {
		if err := InField("filter.types", checkWord("an event's type", t)); err != nil {
			return err
		}
		// Not every type is known, but none has the name of a state.
		if slices.ContainsFunc(States(), func(s State) bool { return s.Equal(t) }) && t != string(ActPrepare) {
			return InField("filter.types", fmt.Errorf("%w: %q is a state, not a type of event; ask for it as a state", ErrInvalid, t))
		}
	}
	for _, c := range f.Collections {
		if c == "" || len(c) > mostTarget {
			return InField("filter.collections", fmt.Errorf("%w: a collection's name is empty or too long", ErrInvalid))
		}
	}
	for _, a := range f.Actions {
		if _, ok := RouteOf(a); !ok {
			return InField("filter.actions", fmt.Errorf("%w: unknown action %q", ErrInvalid, a))
		}
	}
	for _, s := range f.States {
		if !slices.ContainsFunc(States(), func(known State) bool { return known.Equal(string(s)) }) {
			return InField("filter.states", fmt.Errorf("%w: unknown state %q", ErrInvalid, s))
		}
		switch {
		case StateHeld.Equal(string(s)):
			return InField("filter.states", fmt.Errorf("%w: the state Held has no events; use the types hold and release-hold", ErrInvalid))
		case StateUpdateReport.Equal(string(s)):
			return InField("filter.states", fmt.Errorf("%w: no event shows that a report is an update; use the state %s or the type %s", ErrInvalid, StateReporting, ActUpdateReport))
		}
	}
	return f.checkTransitions()
}

// checkTransitions refuses types, actions and states that cannot occur together.
func (f FeedFilter) checkTransitions() error {
	if len(f.Actions)+len(f.States) == 0 {
		return nil
	}
	if len(f.Types) > 0 && !slices.ContainsFunc(f.Types, func(t string) bool { return slices.Contains(acts, Act(t)) }) {
		return fmt.Errorf("%w: actions and states take transitions only, and none of the types (%s) is one; leave out the types, or actions and states",
			ErrInvalid, strings.Join(f.Types, ", "))
	}
	if !slices.ContainsFunc(outcomes, func(o outcome) bool { return f.takesTransition(string(o.act), o.action, o.state) }) {
		return fmt.Errorf("%w: no transition is one of such a type (%s), of an item of such an action (%s), and leads to such a state (%s)",
			ErrInvalid, wordsOf(f.Types), wordsOf(f.Actions), wordsOf(f.States))
	}
	return nil
}

// wordsOf lists words of a filter for people.
func wordsOf[T ~string](words []T) string {
	if len(words) == 0 {
		return "any"
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// takesTransition reports whether the filter selects a transition, for any collection.
func (f FeedFilter) takesTransition(kind string, a Action, to State) bool {
	return (len(f.Types) == 0 || slices.Contains(f.Types, kind)) && (len(f.Actions) == 0 || slices.Contains(f.Actions, a)) &&
		(len(f.States) == 0 || slices.ContainsFunc(f.States, func(s State) bool { return s.Equal(string(to)) }))
}

// Query returns the query for the feed. Its events must also pass Takes.
func (f FeedFilter) Query(after int64, limit int) FeedQuery {
	q := FeedQuery{After: after, Types: f.Types, Limit: limit}
	if len(f.Collections) > 0 {
		q.Within = f.Collections
	}
	return q
}

// Takes reports whether the filter selects an event.
func (f FeedFilter) Takes(e Event) bool {
	if len(f.Collections) > 0 && !slices.Contains(f.Collections, e.Collection) {
		return false
	}
	if len(f.Actions)+len(f.States) == 0 {
		return len(f.Types) == 0 || slices.Contains(f.Types, e.Type)
	}
	p, ok := e.Position()
	return ok && f.takesTransition(e.Type, p.Action, StateOf(p))
}

// Position returns the item's position after the transition that the event records. Holds and the
// number of reports are unknown; a waiting batch is assumed to have open jobs. ok is false if the
// event is not a transition.
func (e Event) Position() (p Position, ok bool) {
	var to struct {
		Stage  Stage  `json:"stage"`
		Status Status `json:"status"`
	}
	if !slices.Contains(acts, Act(e.Type)) || json.Unmarshal(e.Data, &to) != nil || !slices.Contains(Statuses(), to.Status) {
		return p, false
	}
	action, ok := ActionOf(to.Stage)
	if !ok {
		return p, false
	}
	return positionAfter(Act(e.Type), action, to.Stage, to.Status), true
}

// positionAfter returns the position that an act alone implies.
func positionAfter(act Act, action Action, stage Stage, status Status) Position {
	p := Position{Action: action, Stage: stage, Status: status, Attempt: 1}
	if act == ActSubmit || act == ActSeal {
		p.Attempt = 0
	}
	if stage == Report {
		p.Open = 1
	}
	return p
}

// acts are the acts that change an item's position. Events of other acts may record an unchanged
// one.
var acts = func() (all []Act) {
	for _, t := range transitions {
		if t.To != "" && t.To != t.From && !slices.Contains(all, t.Act) {
			all = append(all, t.Act)
		}
	}
	return all
}()

// outcome is a possible result of an act on an item, as its event records it.
type outcome struct {
	act    Act
	action Action
	state  State
}

// outcomes are all outcomes of the state machine.
var outcomes = func() (all []outcome) {
	for _, t := range transitions {
		if t.To == "" || !slices.Contains(acts, t.Act) {
			continue
		}
		for _, r := range routes {
			if t.Actions != nil && !slices.Contains(t.Actions, r.Action) {
				continue
			}
			for _, stage := range t.leadsTo(r) {
				o := outcome{t.Act, r.Action, StateOf(positionAfter(t.Act, r.Action, stage, t.To))}
				if !slices.Contains(all, o) {
					all = append(all, o)
				}
			}
		}
	}
	return all
}()

// leadsTo returns the stages of a route in which an item may be after the transition.
func (t Transition) leadsTo(r Route) (out []Stage) {
	for i, step := range r.Steps {
		switch {
		case t.Stages != nil && !slices.Contains(t.Stages, step.Stage):
		case t.From == "" || t.From == Prepare: // no act has moved it yet
			if i == 0 {
				out = append(out, step.Stage)
			}
		case t.Move == Next:
			for _, later := range r.Steps[i+1:] {
				out = append(out, later.Stage)
			}
		case t.Move == Back:
			out = append(out, r.UpTo(step.Stage)...)
		default:
			out = append(out, step.Stage)
		}
	}
	return out
}

// Details returns an event's data for people, as "name: value", sorted by name. Data that are no
// object are one text, as they are.
func (e Event) Details() []string {
	if len(e.Data) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Data, &fields) != nil {
		return []string{string(e.Data)}
	}
	all := make([]string, 0, len(fields))
	for name, value := range fields {
		text := string(value)
		if s := ""; json.Unmarshal(value, &s) == nil {
			text = s
		} else if list := []string(nil); json.Unmarshal(value, &list) == nil {
			text = strings.Join(list, "; ")
		}
		if asked := askedText(value); name == "spec" && asked != "" {
			name, text = "requested", asked
		}
		if text != "" {
			all = append(all, strings.ReplaceAll(name, "_", " ")+": "+text)
		}
	}
	slices.Sort(all)
	return all
}

// askedText returns the act that made an item, from the item's spec; "" if raw is no such spec.
func askedText(raw json.RawMessage) string {
	if object, ok := ObjectSpecIn(raw); ok {
		return object.Text()
	}
	if bulk, ok := BulkSpecIn(raw); ok {
		return bulk.Text()
	}
	return ""
}
