package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrSubscriptionLost says that another process forwards the subscription, or it was changed,
// rewound, paused or removed. The caller must send nothing more for it.
var ErrSubscriptionLost = errors.New("subscription lost")

// Subscription forwards the events that its filter selects to a receiver: each at least once, in
// the feed's order.
type Subscription struct {
	ID     string     `json:"id"` // a later subscription of the same name has another id
	Name   string     `json:"name"`
	Target string     `json:"target"` // nsq:TOPIC, https:// or http://
	Filter FeedFilter `json:"filter"`
	// Cursor is the last event up to which the receiver acknowledged all selected events. Told
	// counts the acknowledged ones with repeats; ToldAt is the time of the last.
	Cursor int64      `json:"cursor"`
	Told   int64      `json:"told"`
	ToldAt *time.Time `json:"told_at,omitempty"`
	// Turn is the fencing number of the process that forwards it. It grows when another process
	// takes it, and when it is changed, rewound or paused. Rewinds counts its rewinds.
	Turn    int64  `json:"turn"`
	Rewinds int64  `json:"rewinds"`
	Owner   string `json:"owner,omitempty"` // process that forwards it
	// Paused says why nothing is sent; nil: not paused.
	Paused *SubscriptionPause `json:"paused,omitempty"`
	// FailingSince is the time of the first of Tries consecutive failures. Error is the last
	// failure, and NextTry the time of the next try.
	FailingSince *time.Time `json:"failing_since,omitempty"`
	Tries        int64      `json:"tries"`
	Error        string     `json:"error,omitempty"`
	NextTry      *time.Time `json:"next_try,omitempty"`
	// Behind is how many events come after the cursor, selected or not. BehindSince is the time of
	// the first. Both are computed when they are read.
	Behind      int64      `json:"behind"`
	BehindSince *time.Time `json:"behind_since,omitempty"`
	CreatedBy   string     `json:"created_by"`
	CreatedAt   time.Time  `json:"created_at"`
}

// SubscriptionPause says who paused a subscription, when and why.
type SubscriptionPause struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// SubscriptionRequest creates a subscription, or changes target and filter of the one with the same
// name.
type SubscriptionRequest struct {
	Name   string     `json:"name"`
	Target string     `json:"target"`
	Filter FeedFilter `json:"filter"`
	// From is the cursor of a new subscription: 0 for all events, FeedNow for future ones. An
	// existing one keeps its cursor.
	From  int64  `json:"from"`
	Actor string `json:"actor"`
	// Credentials are set in the same transaction, so that nothing is sent without them. They
	// belong to the subscription.
	Credentials []Credential `json:"-"`
}

// FeedNow is the cursor of the newest event.
const FeedNow int64 = -1

// SubscriptionTurn is a subscription that a process forwards.
type SubscriptionTurn struct {
	Subscription

	Wait   time.Duration `json:"wait"`   // time until the next try
	Source string        `json:"source"` // permanent URI of this Registry
}

// SubscriptionProgress reports acknowledged events.
type SubscriptionProgress struct {
	ID     string `json:"id"`
	Turn   int64  `json:"turn"`
	Cursor int64  `json:"cursor"` // new cursor
	Told   int64  `json:"told"`   // number of events acknowledged since the last progress
}

// SubscriptionFailure is a try that the receiver did not acknowledge.
type SubscriptionFailure struct {
	ID    string        `json:"id"`
	Turn  int64         `json:"turn"`
	Error string        `json:"error"`
	Wait  time.Duration `json:"wait"` // time until the next try
}

// Subscribing manages subscriptions.
type Subscribing interface {
	// PutSubscription creates or changes a subscription, and retries a failing one at once. A
	// repeat changes only the credentials. ErrInvalid: [SubscriptionRequest.Check] refuses it, or
	// From is after the feed's end.
	PutSubscription(ctx context.Context, r SubscriptionRequest) (Subscription, error)
	// RemoveSubscription deletes a subscription and its credentials. ErrNotFound: there is none.
	RemoveSubscription(ctx context.Context, name, actor string) error
	// RewindSubscription sets a subscription's cursor, forwards or backwards; FeedNow sets it to
	// the newest event. Deliveries in progress can no longer move it. A failing subscription is
	// retried at once. ErrNotFound: there is none. ErrInvalid: the cursor is after the feed's end.
	RewindSubscription(ctx context.Context, name string, cursor int64, reason, actor string) (Subscription, error)
	// PauseSubscription stops forwarding until ResumeSubscription. A repeat replaces reason and
	// actor. ErrNotFound: there is none.
	PauseSubscription(ctx context.Context, name, reason, actor string) (Subscription, error)
	// ResumeSubscription ends a pause, and retries a failing subscription at once. ErrNotFound:
	// there is none.
	ResumeSubscription(ctx context.Context, name, actor string) (Subscription, error)
	// Subscriptions lists all subscriptions by name.
	Subscriptions(ctx context.Context) ([]Subscription, error)
}

// Forwarding leases subscriptions to processes and records progress. It writes no events about
// deliveries, because those would be forwarded, too.
type Forwarding interface {
	// TakeSubscriptions leases subscriptions to a process: those that it has, and those without an
	// owner or with an expired lease, except paused ones. It returns all that the process has then.
	TakeSubscriptions(ctx context.Context, owner string, lease time.Duration) ([]SubscriptionTurn, error)
	// NoteForwarded moves a cursor and ends a failure. A repeat changes only Told.
	// ErrSubscriptionLost: the turn is not the subscription's.
	NoteForwarded(ctx context.Context, p SubscriptionProgress) error
	// NoteUnforwarded records a failed try. ErrSubscriptionLost as for NoteForwarded.
	NoteUnforwarded(ctx context.Context, f SubscriptionFailure) error
	// ReleaseSubscriptions ends a process's leases, so that others can take its subscriptions at
	// once.
	ReleaseSubscriptions(ctx context.Context, owner string) error
}

// Types of events about subscriptions. Their item_id is the SubscriptionOwner of the name.
const (
	EventSubscriptionSet     = "subscription-set"
	EventSubscriptionRemoved = "subscription-removed"
	EventSubscriptionRewound = "subscription-rewound"
	EventSubscriptionPaused  = "subscription-paused"
	EventSubscriptionResumed = "subscription-resumed"
)

// subscriptionOwner distinguishes subscriptions from collections where both own something.
const subscriptionOwner = "subscription:"

// SubscriptionOwner returns what represents a subscription in place of a collection: in
// [Credential.Collection], and in the item_id of events.
func SubscriptionOwner(name string) string { return subscriptionOwner + name }

// OwningSubscription returns the name of the subscription that an owner represents; ok is false for
// a collection.
func OwningSubscription(owner string) (name string, ok bool) {
	return strings.CutPrefix(owner, subscriptionOwner)
}

// topicTarget begins targets that are NSQ topics.
const topicTarget = "nsq:"

// Topic returns the NSQ topic of the target; ok is false for a webhook.
func (s Subscription) Topic() (topic string, ok bool) {
	return strings.CutPrefix(s.Target, topicTarget)
}

// Receiver returns the target for people, without a webhook's path, which may be a secret.
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

// Check returns ErrInvalid, with the reason, for an impossible subscription. The error does not
// repeat a webhook's URL.
func (r SubscriptionRequest) Check() error {
	if err := InField("name", checkWord("a subscription's name", r.Name)); err != nil {
		return err
	}
	if r.From < FeedNow {
		return fmt.Errorf("%w: no event has the number %d", ErrInvalid, r.From)
	}
	if err := InField("target", checkTarget(r.Target)); err != nil {
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
		return checkTopic(topic)
	}
	u, err := url.Parse(target)
	switch {
	case len(target) > mostTarget:
		return fmt.Errorf("%w: a webhook's address has %d bytes at most", ErrInvalid, mostTarget)
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%w: a target is nsq:TOPIC, or an address of https or http", ErrInvalid)
	case u.User != nil || strings.ContainsAny(target, "?#"):
		return fmt.Errorf("%w: a webhook's address has no user, password, query or fragment; set its credential separately", ErrInvalid)
	}
	return nil
}

// checkTopic refuses the topics of wake-ups, whose readers would take events for items. What stands
// before such a topic may be the prefix of another Holdfast on the same nsqd.
func checkTopic(topic string) error {
	if err := checkWord("an NSQ topic", topic); err != nil {
		return err
	}
	for _, r := range routes {
		for _, s := range r.Steps {
			if wake := string(r.Action) + "." + string(s.Stage); strings.HasSuffix(topic, wake) {
				return fmt.Errorf("%w: topics ending in %s are reserved for the workers' messages; choose another one", ErrInvalid, wake)
			}
		}
	}
	return nil
}

// checkWord requires 1 to 64 letters, digits, dots, hyphens and underscores, which can stand in
// paths, topics and origins.
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
