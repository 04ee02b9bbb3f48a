package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrSubscriptionLost says that somebody else forwards the subscription now, or it was changed,
// rewound, paused or removed. The caller must send nothing more of what it had in hand.
var ErrSubscriptionLost = errors.New("subscription lost")

// Subscription has a receiver told of the events of the feed that its filter takes: each at least
// once, in the feed's order.
type Subscription struct {
	ID     string     `json:"id"` // of this one; another one of the same name, later, has another
	Name   string     `json:"name"`
	Target string     `json:"target"` // nsq:TOPIC, https:// or http://
	Filter FeedFilter `json:"filter"`
	// Cursor is the event up to which all were acknowledged by the receiver, or not taken by the
	// filter. Told is how many were acknowledged, repeats included, and ToldAt when the last was.
	Cursor int64      `json:"cursor"`
	Told   int64      `json:"told"`
	ToldAt *time.Time `json:"told_at,omitempty"`
	// Turn is the fencing number of whoever forwards it: it grows when another process takes it,
	// and when it is changed, rewound or paused. Rewinds is how often it was rewound.
	Turn    int64  `json:"turn"`
	Rewinds int64  `json:"rewinds"`
	Owner   string `json:"owner,omitempty"` // the process that forwards it
	// Paused says why nothing is sent; nil: it is not paused.
	Paused *SubscriptionPause `json:"paused,omitempty"`
	// FailingSince is the first of the Tries in a row that failed, Error says why the last did, and
	// NextTry when the next is.
	FailingSince *time.Time `json:"failing_since,omitempty"`
	Tries        int64      `json:"tries"`
	Error        string     `json:"error,omitempty"`
	NextTry      *time.Time `json:"next_try,omitempty"`
	// Behind is how many events of the feed come after the cursor, those that the filter does not
	// take among them, and BehindSince when the first of them happened. Both are worked out when
	// they are asked for.
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

// SubscriptionRequest makes a subscription, or changes the target and filter of the one of the same
// name.
type SubscriptionRequest struct {
	Name   string     `json:"name"`
	Target string     `json:"target"`
	Filter FeedFilter `json:"filter"`
	// From is the cursor that a new one begins after: 0 with the first event, FeedNow with those to
	// come. One that is there goes on where it was.
	From  int64  `json:"from"`
	Actor string `json:"actor"`
	// Credentials are set in the same transaction, so that nothing is sent without them. They are
	// the subscription's own.
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

// Subscribing is how people say who is told of which events.
type Subscribing interface {
	// PutSubscription makes a subscription or changes one; what it is failing with is forgotten
	// then, and it is tried at once. A repeat changes nothing but the credentials. ErrInvalid when
	// [SubscriptionRequest.Check] refuses it, or From is beyond the feed's end.
	PutSubscription(ctx context.Context, r SubscriptionRequest) (Subscription, error)
	// RemoveSubscription ends a subscription, with its credentials. ErrNotFound when there is none.
	RemoveSubscription(ctx context.Context, name, actor string) error
	// RewindSubscription makes a cursor, earlier or later, the one that the subscription goes on
	// after; FeedNow: the newest event's. Whatever is under way by then can no longer move it. What
	// it is failing with is forgotten. ErrNotFound when there is none, ErrInvalid for a cursor
	// beyond the feed's end.
	RewindSubscription(ctx context.Context, name string, cursor int64, reason, actor string) (Subscription, error)
	// PauseSubscription has nothing more sent until ResumeSubscription; a repeat replaces reason
	// and actor. ErrNotFound when there is none.
	PauseSubscription(ctx context.Context, name, reason, actor string) (Subscription, error)
	// ResumeSubscription goes on after a pause, and has one that is failing tried at once.
	// ErrNotFound when there is none.
	ResumeSubscription(ctx context.Context, name, actor string) (Subscription, error)
	// Subscriptions lists all subscriptions by name.
	Subscriptions(ctx context.Context) ([]Subscription, error)
}

// Forwarding is how receivers are told of events. Nothing of it writes an event per delivery: that
// would be told, too.
type Forwarding interface {
	// TakeSubscriptions returns all subscriptions that a process forwards from now on, for the time
	// of a lease: those that it has already, and those that are nobody's or whose lease ran out.
	// Paused ones are nobody's.
	TakeSubscriptions(ctx context.Context, owner string, lease time.Duration) ([]SubscriptionTurn, error)
	// NoteForwarded moves a cursor, and ends what the subscription was failing with. A repeat
	// changes nothing but Told. ErrSubscriptionLost when the turn is not the subscription's.
	NoteForwarded(ctx context.Context, p SubscriptionProgress) error
	// NoteUnforwarded notes a try that failed. ErrSubscriptionLost as for NoteForwarded.
	NoteUnforwarded(ctx context.Context, f SubscriptionFailure) error
	// ReleaseSubscriptions lets others take at once what a process has.
	ReleaseSubscriptions(ctx context.Context, owner string) error
}

// Types of events about subscriptions. Their item_id is SubscriptionOwner of the subscription's
// name.
const (
	EventSubscriptionSet     = "subscription-set"
	EventSubscriptionRemoved = "subscription-removed"
	EventSubscriptionRewound = "subscription-rewound"
	EventSubscriptionPaused  = "subscription-paused"
	EventSubscriptionResumed = "subscription-resumed"
)

// subscriptionOwner tells subscriptions from collections where both own something.
const subscriptionOwner = "subscription:"

// SubscriptionOwner is what stands for a subscription in the place of a collection: as
// [Credential.Collection], and in the item_id of events.
func SubscriptionOwner(name string) string { return subscriptionOwner + name }

// OwningSubscription returns the name of the subscription that an owner of credentials is; ok is
// false for a collection.
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

// Check returns ErrInvalid, with the reason, unless there can be such a subscription. A webhook's
// address is not repeated.
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
		return checkTopic(topic)
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

// checkTopic refuses the topics of wake-ups, whose readers would take events for items. Whatever
// stands before a wake-up's topic may be the prefix of another Holdfast that shares the nsqd.
func checkTopic(topic string) error {
	if err := checkWord("an NSQ topic", topic); err != nil {
		return err
	}
	for _, r := range routes {
		for _, s := range r.Steps {
			if wake := string(r.Action) + "." + string(s.Stage); strings.HasSuffix(topic, wake) {
				return fmt.Errorf("%w: the workers' wake-ups come by the topic %s; take one that does not end so", ErrInvalid, wake)
			}
		}
	}
	return nil
}

// checkWord wants 1 to 64 letters, digits, dots, hyphens and underscores: what can stand in paths,
// topics and origins.
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
