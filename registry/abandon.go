package registry

import (
	"encoding/json"
	"fmt"
	"time"
)

// ResultAbandon is the durable result of a failed job whose announced version is to be abandoned: an [Abandonment].
const ResultAbandon = "abandon"

// AbandonOneByOne is why a bulk act does not abandon.
const AbandonOneByOne = "a version is abandoned for each job by itself, since who agrees must have seen who asked for it and why"

// Abandonment is who asked, and who agreed, that an announced version is given up of which nobody can see anything. A requeue
// ends it: the version is rolled forward, or made anew when it was abandoned.
type Abandonment struct {
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
	// ApprovedBy is another person than AskedBy; "" while nobody has agreed.
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
	// DoneAt is when the version was abandoned.
	DoneAt *time.Time `json:"done_at,omitempty"`
}

// Abandonment returns what was decided about the item's announced version; ok is false when nobody asked.
func (it WorkItem) Abandonment() (a Abandonment, ok bool) {
	raw, asked := it.Results[ResultAbandon]
	return a, asked && json.Unmarshal(raw, &a) == nil
}

// Waits says whether another person can still agree at a time: an item that failed after it was agreed must be asked for anew, and
// what was asked for expires after [AskingLasts].
func (a Abandonment) Waits(now time.Time) bool {
	return a.ApprovedBy == "" && now.Before(a.AskedAt.Add(AskingLasts))
}

// Request names this asking, apart from every other one for the same item.
func (a Abandonment) Request() string {
	return a.AskedBy + " at " + a.AskedAt.UTC().Format(time.RFC3339Nano)
}

// Text says for people who decided what, and why.
func (a Abandonment) Text() string {
	text := fmt.Sprintf("asked for by %s at %s: %s", a.AskedBy, a.AskedAt.UTC().Format(time.DateTime), a.Reason)
	if a.ApprovedBy != "" {
		text += fmt.Sprintf("; approved by %s at %s", a.ApprovedBy, a.ApprovedAt.UTC().Format(time.DateTime))
	}
	return text
}
