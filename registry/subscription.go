package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrSubscriptionLost says that somebody else forwards the subscription now, or it was changed, rewound, paused or removed. The caller
// must send nothing more of what it had in hand.
var ErrSubscriptionLost = errors.New("subscription lost")

// Subscription has a receiver told of the events of the feed that its filter takes: each at least once, in the feed's order.
type Subscription struct {
	ID     string     `json:"id"` // of this one; another one of the same name, later, has another
	Name   string     `json:"name"`
	Target string     `json:"target"` // nsq:TOPIC, https:// or http://
	Filter FeedFilter `json:"filter"`
	// Cursor is the event up to which all were acknowledged by the receiver, or not taken by the filter. Told is how many
	// were acknowledged, repeats included, and ToldAt when the last was.
	Cursor int64      `json:"cursor"`
	Told   int64      `json:"told"`
	ToldAt *time.Time `json:"told_at,omitempty"`
	// Turn is the fencing number of whoever forwards it: it grows when another process takes it, and when it is changed,
	// rewound or paused. Rewinds is how often it was rewound.
	Turn    int64  `json:"turn"`
	Rewinds int64  `json:"rewinds"`
	Owner   string `json:"owner,omitempty"` // the process that forwards it
	// Paused says why nothing is sent; nil: it is not paused.
	Paused *SubscriptionPause `json:"paused,omitempty"`
	// FailingSince is the first of the Tries in a row that failed, Error says why the last did, and NextTry when the next is.
	FailingSince *time.Time `json:"failing_since,omitempty"`
	Tries        int64      `json:"tries"`
	Error        string     `json:"error,omitempty"`
	NextTry      *time.Time `json:"next_try,omitempty"`
	// Behind is how many events of the feed come after the cursor, those that the filter does not take among them, and
	// BehindSince when the first of them happened. Both are worked out when they are asked for.
	Behind      int64      `json:"behind"`
	BehindSince *time.Time `json:"behind_since,omitempty"`
	CreatedBy   string     `json:"created_by"`
	CreatedAt   time.Time  `json:"created_at"`
}

// SubscriptionPause is who wanted nothing sent, since when and why.
type SubscriptionPause struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// SubscriptionRequest makes a subscription, or changes the target and filter of the one of the same name.
type SubscriptionRequest struct {
	Name   string     `json:"name"`
	Target string     `json:"target"`
	Filter FeedFilter `json:"filter"`
	// From is the cursor that a new one begins after: 0 with the first event, FeedNow with those to come. One that is there
	// goes on where it was.
	From  int64  `json:"from"`
	Actor string `json:"actor"`
	// Credentials are set in the same transaction, so that nothing is sent without them. They are the subscription's own.
	Credentials []Credential `json:"-"`
}

// FeedNow stands for the cursor of the newest event.
const FeedNow int64 = -1

// SubscriptionTurn is a subscription in the hands of a process that forwards it.
type SubscriptionTurn struct {
	Subscription

	Wait   time.Duration `json:"wait"`   // until the next try
	Source string        `json:"source"` // a URI of this Registry, which it keeps for ever
}

// SubscriptionProgress is how far a turn has come.
type SubscriptionProgress struct {
	ID     string `json:"id"`
	Turn   int64  `json:"turn"`
	Cursor int64  `json:"cursor"` // what it is now
	Told   int64  `json:"told"`   // how many events the receiver has acknowledged since the last progress
}

// SubscriptionFailure is a try that the receiver did not acknowledge.
type SubscriptionFailure struct {
	ID    string        `json:"id"`
	Turn  int64         `json:"turn"`
	Error string        `json:"error"`
	Wait  time.Duration `json:"wait"` // until the next
}

// Forwarding is how receivers are told of what happens. Nothing of it writes an event per delivery: that would be told, too.
type Forwarding interface {
	// PutSubscription makes a subscription or changes one; what it is failing with is forgotten then, and it is tried at once.
	// A repeat changes nothing but the credentials. ErrInvalid when [SubscriptionRequest.Check] refuses it, or From is beyond the feed's end.
	PutSubscription(ctx context.Context, r SubscriptionRequest) (Subscription, error)
	// RemoveSubscription ends a subscription, with its credentials. ErrNotFound when there is none.
	RemoveSubscription(ctx context.Context, name, actor string) error
	// RewindSubscription makes a cursor, earlier or later, the one that the subscription goes on after; FeedNow: the newest
	// event's. Whatever is under way by then can no longer move it. What it is failing with is forgotten. ErrNotFound when
	// there is none, ErrInvalid for a cursor beyond the feed's end.
	RewindSubscription(ctx context.Context, name string, cursor int64, reason, actor string) (Subscription, error)
	// PauseSubscription has nothing more sent until ResumeSubscription; a repeat replaces reason and actor. ErrNotFound when
	// there is none.
	PauseSubscription(ctx context.Context, name, reason, actor string) (Subscription, error)
	// ResumeSubscription goes on after a pause, and has one that is failing tried at once. ErrNotFound when there is none.
	ResumeSubscription(ctx context.Context, name, actor string) (Subscription, error)
	// Subscriptions lists all subscriptions by name.
	Subscriptions(ctx context.Context) ([]Subscription, error)

	// TakeSubscriptions returns all subscriptions that a process forwards from now on, for the time of a lease: those that it
	// has already, and those that are nobody's or whose lease ran out. Paused ones are nobody's.
	TakeSubscriptions(ctx context.Context, owner string, lease time.Duration) ([]SubscriptionTurn, error)
	// NoteForwarded moves a cursor, and ends what the subscription was failing with. A repeat changes nothing but Told.
	// ErrSubscriptionLost when the turn is not the subscription's.
	NoteForwarded(ctx context.Context, p SubscriptionProgress) error
	// NoteUnforwarded notes a try that failed. ErrSubscriptionLost as for NoteForwarded.
	NoteUnforwarded(ctx context.Context, f SubscriptionFailure) error
	// ReleaseSubscriptions lets others take at once what a process has.
	ReleaseSubscriptions(ctx context.Context, owner string) error
}

// Types of events about subscriptions. Their item_id is CredentialOwner of the subscription's name.
const (
	EventSubscriptionSet     = "subscription-set"
	EventSubscriptionRemoved = "subscription-removed"
	EventSubscriptionRewound = "subscription-rewound"
	EventSubscriptionPaused  = "subscription-paused"
	EventSubscriptionResumed = "subscription-resumed"
)

// subscriptionOwner tells subscriptions from collections where both own something.
const subscriptionOwner = "subscription:"

// SubscriptionOwner is what stands for a subscription in the place of a collection: as [Credential.Collection], and in the
// item_id of events.
func SubscriptionOwner(name string) string { return subscriptionOwner + name }

// OwningSubscription returns the name of the subscription that an owner of credentials is; ok is false for a collection.
func OwningSubscription(owner string) (name string, ok bool) {
	return strings.CutPrefix(owner, subscriptionOwner)
}

// topicTarget is what targets begin with that are NSQ topics.
const topicTarget = "nsq:"

// Topic returns the NSQ topic that a target is; ok is false for a webhook.
func (s Subscription) Topic() (topic string, ok bool) {
	return strings.CutPrefix(s.Target, topicTarget)
}

// Receiver names the target for people: a webhook's path may be a secret.
func (s Subscription) Receiver() string {
	if u, err := url.Parse(s.Target); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return s.Target
}

// Bounds of a subscription.
const (
	mostTarget      = 2000
	mostFilterWords = 500
)

// Check returns ErrInvalid, with the reason, unless there can be such a subscription. A webhook's address is not repeated.
func (r SubscriptionRequest) Check() error {
	if err := checkWord("a subscription's name", r.Name); err != nil {
		return err
	}
	if r.From < FeedNow {
		return fmt.Errorf("%w: no event has the number %d", ErrInvalid, r.From)
	}
	if err := checkTarget(r.Target); err != nil {
		return err
	}
	for _, c := range r.Credentials {
		if c.Collection != SubscriptionOwner(r.Name) {
			return fmt.Errorf("%w: a credential is another owner's", ErrInvalid)
		}
		if err := c.Check(); err != nil {
			return err
		}
	}
	return r.Filter.Check()
}

func checkTarget(target string) error {
	if topic, ok := (Subscription{Target: target}).Topic(); ok {
		return checkWord("an NSQ topic", topic)
	}
	u, err := url.Parse(target)
	switch {
	case len(target) > mostTarget:
		return fmt.Errorf("%w: a webhook's address has %d bytes at most", ErrInvalid, mostTarget)
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%w: a target is nsq:TOPIC, or an address of https or http", ErrInvalid)
	case u.User != nil || strings.ContainsAny(target, "?#"):
		return fmt.Errorf("%w: a webhook's address has no user, password, query or fragment; what its receiver asks for is set as a credential", ErrInvalid)
	}
	return nil
}

// checkWord wants 1 to 64 letters, digits, dots, hyphens and underscores: what can stand in paths, topics and origins.
func checkWord(what, word string) error {
	const most = 64
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	if word == "" || len(word) > most || strings.ContainsFunc(word, bad) {
		return fmt.Errorf("%w: %s has 1 to %d letters, digits, dots, hyphens and underscores", ErrInvalid, what, most)
	}
	return nil
}

// FeedFilter takes events of the feed. Empty fields do not restrict: an empty filter takes all, those about tokens, holds and
// refusals among them.
type FeedFilter struct {
	Types       []string `json:"types,omitempty"`       // only events of these types
	Collections []string `json:"collections,omitempty"` // only events of items in these collections
	// Actions and States take transitions only, of items of these actions, and to these states.
	Actions []Action `json:"actions,omitempty"`
	States  []State  `json:"states,omitempty"`
}

// Check returns ErrInvalid, with the reason, for a filter that can take nothing.
func (f FeedFilter) Check() error {
	if len(f.Types)+len(f.Collections) > mostFilterWords {
		return fmt.Errorf("%w: a filter has at most %d types and collections", ErrInvalid, mostFilterWords)
	}
	for _, t := range f.Types {
		if err := checkWord("an event's type", t); err != nil {
			return err
		}
		// What workers tell has types of their own, so that not every name can be known; but no event is called like a state.
		if slices.ContainsFunc(States(), func(s State) bool { return s.Equal(t) }) && t != string(ActPrepare) {
			return fmt.Errorf("%w: %q is a state, not a type of event; ask for it as a state", ErrInvalid, t)
		}
	}
	for _, c := range f.Collections {
		if c == "" || len(c) > mostTarget {
			return fmt.Errorf("%w: no collection is called so", ErrInvalid)
		}
	}
	for _, a := range f.Actions {
		if _, ok := RouteOf(a); !ok {
			return fmt.Errorf("%w: there is no action %q", ErrInvalid, a)
		}
	}
	for _, s := range f.States {
		if !slices.ContainsFunc(States(), func(known State) bool { return known.Equal(string(s)) }) {
			return fmt.Errorf("%w: there is no state %q", ErrInvalid, s)
		}
		if StateHeld.Equal(string(s)) {
			return fmt.Errorf("%w: no event tells that an item is held; take the types hold and release-hold", ErrInvalid)
		}
	}
	return nil
}

// Query is what the feed is asked for; what it lists has to be shown to Takes, too.
func (f FeedFilter) Query(after int64, limit int) FeedQuery {
	q := FeedQuery{After: after, Types: f.Types, Limit: limit}
	if len(f.Collections) > 0 {
		q.Within = f.Collections
	}
	return q
}

// Takes says whether the filter takes an event.
func (f FeedFilter) Takes(e Event) bool {
	if len(f.Types) > 0 && !slices.Contains(f.Types, e.Type) || len(f.Collections) > 0 && !slices.Contains(f.Collections, e.Collection) {
		return false
	}
	if len(f.Actions)+len(f.States) == 0 {
		return true
	}
	p, ok := e.Position()
	return ok && (len(f.Actions) == 0 || slices.Contains(f.Actions, p.Action)) &&
		(len(f.States) == 0 || slices.ContainsFunc(f.States, func(s State) bool { return s.Equal(string(StateOf(p))) }))
}

// Position is where an item came to by the transition that the event is, as far as that tells: nothing of holds, of how often
// a batch was reported, or of a batch's open jobs, which are taken to be some while it waits. ok is false for an event that
// is no transition.
func (e Event) Position() (p Position, ok bool) {
	var to struct {
		Stage  Stage  `json:"stage"`
		Status Status `json:"status"`
	}
	if !slices.Contains(acts, Act(e.Type)) || json.Unmarshal(e.Data, &to) != nil || !slices.Contains(Statuses(), to.Status) {
		return p, false
	}
	p = Position{Stage: to.Stage, Status: to.Status, Attempt: 1}
	if p.Action, ok = ActionOf(to.Stage); !ok {
		return p, false
	}
	if slices.Contains([]Act{ActSubmit, ActSeal}, Act(e.Type)) {
		p.Attempt = 0
	}
	if p.Stage == Report {
		p.Open = 1
	}
	return p, true
}

// acts are those that change an item's position. The events of others may tell where it stays.
var acts = func() (all []Act) {
	for _, t := range transitions {
		if t.To != "" && t.To != t.From && !slices.Contains(all, t.Act) {
			all = append(all, t.Act)
		}
	}
	return all
}()
