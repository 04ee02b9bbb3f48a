package registry

import (
	"encoding/json"
	"fmt"
	"time"
)

// Durable results of a job that say whom it tells that it completed, where that is not what its spec says.
const (
	// ResultCallback is the [Callback] that a requeue has aimed the job at: the one that its collection had then.
	ResultCallback = "callback"
	// ResultUntold says that an admin has given the delivery up, an [Untold].
	ResultUntold = "untold"
)

// Untold is who ended the tries to tell a job's receiver, and why.
type Untold struct {
	Target string    `json:"target"` // the receiver, for people
	Actor  string    `json:"actor"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Text says so for people.
func (u Untold) Text() string {
	text := fmt.Sprintf("%s was not told: given up by %s at %s", u.Target, u.Actor, u.At.UTC().Format(time.DateTime))
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	return text
}

// Receiver is whom a job tells that it completed: the callback that it was submitted under, or the one that a requeue has aimed it
// at. It is nil when there is none, or the delivery was given up.
func (it WorkItem) Receiver() (*Callback, error) {
	if _, given := it.Results[ResultUntold]; given {
		return nil, nil
	}
	var spec struct {
		Profile struct {
			Callback *Callback `json:"callback"`
		} `json:"profile"`
	}
	var err error
	if raw, aimed := it.Results[ResultCallback]; aimed {
		err = json.Unmarshal(raw, &spec.Profile.Callback)
	} else if len(it.Spec) > 0 {
		err = json.Unmarshal(it.Spec, &spec)
	}
	if err != nil {
		return nil, fmt.Errorf("read whom item %s tells: %w", it.ID, err)
	}
	return spec.Profile.Callback, nil
}

// Untold says who has given up to tell the job's receiver; ok is false when nobody has.
func (it WorkItem) Untold() (u Untold, ok bool) {
	raw, given := it.Results[ResultUntold]
	return u, given && json.Unmarshal(raw, &u) == nil
}

// tells says whether the item's next or present step has a receiver to tell.
func (it WorkItem) tells() bool {
	if it.Action != Ingest || it.Stage != Notify || it.Status == Completed {
		return false
	}
	to, err := it.Receiver()
	return err == nil && to != nil
}

// OutcomeText says of a job in a few words what its state does not: that its object is preserved although the job did not complete,
// or that it completed and its receiver was not told. It is "" when there is nothing to add.
func (it WorkItem) OutcomeText() string {
	stopped := it.Status == Failed || it.Status == Deleted
	switch _, given := it.Untold(); {
	case given && it.Status == Completed:
		return "preserved; callback given up"
	case it.Commitment != Preserved || !stopped:
		return ""
	case it.tells() || it.Stage == Notify && given:
		return "preserved; callback not delivered"
	}
	return "preserved; the job did not complete"
}
