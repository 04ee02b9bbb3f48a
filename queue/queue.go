// Package queue sends and receives messages over NSQ: from the Registry's relay to the workers, and
// to the topics of subscriptions.
//
// A wake-up is a topic and the id of an item: "there is work at this stage, perhaps this item". It
// is a hint. It may be lost, repeated, late or out of order, and does not prove that the item still
// exists (I1). The package promises:
//
//   - A [Producer.Publish] that returned nil has reached one nsqd.
//   - A [Consumer] never hands out more wake-ups than it has slots for.
//   - Only [Delivery.Finish] finishes a wake-up. Any other is delivered again, here or elsewhere,
//     unless Touch keeps it alive.
//   - A handler never slows down others: there is no backoff (R21).
//   - Broken connections are made again.
//
// Both sides use go-nsq. They speak to nsqd in production, and to the broker of package broker in
// the embedded default and in tests. Package queuetest is the conformance suite for both servers.
// The package does not know what items and stages mean, and keeps nothing on disk.
package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nsqio/go-nsq"
)

// Channel is the NSQ channel that all workers of a stage share.
const Channel = "workers"

// MaxItemID is the longest id of an item in a message, in bytes.
const MaxItemID = 256

var (
	// ErrBadTopic means that NSQ does not allow a topic's name: 1 to 64 of [.a-zA-Z0-9_-].
	ErrBadTopic = errors.New("invalid topic name")
	// ErrBadItemID means that an id is empty, longer than MaxItemID bytes, or not printable UTF-8.
	ErrBadItemID = errors.New("invalid item id")
	// ErrRefused means that nsqd understood a message and refused it; another try would fail as
	// well.
	ErrRefused = errors.New("refused by nsqd")
	// ErrUnavailable means that no nsqd could be reached; a later try may succeed.
	ErrUnavailable = errors.New("no nsqd can be reached")
	// ErrClosed means that the Producer was closed.
	ErrClosed = errors.New("producer is closed")
)

// Publisher sends wake-ups. Producer implements it.
type Publisher interface {
	// Publish sends one message per id to the topic and returns nil when a server has them all.
	// After an error any part of them may have been sent, some twice: that costs a claim, never an
	// item. Without ids it does nothing. It may be called concurrently.
	Publish(ctx context.Context, topic string, ids ...string) error
}

// Topic returns the topic of a stage: prefix, then "<action>.<stage>". The prefix separates
// clusters that share an nsqd and may be empty. It returns ErrBadTopic if the parts do not make a
// valid name.
func Topic(prefix, action, stage string) (string, error) {
	name := prefix + action + "." + stage
	if action == "" || stage == "" {
		return "", fmt.Errorf("name topic %q: %w", name, ErrBadTopic)
	}
	return name, checkTopic(name)
}

func checkTopic(name string) error {
	if !nsq.IsValidTopicName(name) || strings.Contains(name, "#") {
		return fmt.Errorf("name topic %q: %w", name, ErrBadTopic)
	}
	return nil
}

func checkItemID(id string) error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if id == "" || len(id) > MaxItemID || !utf8.ValidString(id) || strings.ContainsFunc(id, unprintable) {
		return fmt.Errorf("%w: %.64q", ErrBadItemID, id)
	}
	return nil
}
