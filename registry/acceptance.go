package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Acceptance is a decision of two people: the record of events is right although it is older than
// signed checkpoints, as after restoring a backup.
type Acceptance struct {
	// Of names the checkpoints: each by storage, name, signed part and the digest of what is lost.
	// So the consent ends when more is missing.
	Of      []string  `json:"of"`
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
	// Replaces names the person whose waiting request this one replaced; "" for none.
	Replaces string `json:"replaces,omitempty"`
	// ApprovedBy is a different person from AskedBy; "" until somebody approves.
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
}

// Covers reports whether the acceptance includes these checkpoints. It may include others, which
// are settled by now.
func (a Acceptance) Covers(of []string) bool {
	return len(of) > 0 && !slices.ContainsFunc(of, func(c string) bool { return !slices.Contains(a.Of, c) })
}

// Waits reports whether another person can still approve at a time. A request expires after
// [AskingLasts].
func (a Acceptance) Waits(now time.Time) bool {
	return a.ApprovedBy == "" && now.Before(a.AskedAt.Add(AskingLasts))
}

// Request identifies the request as it was shown to the approver. Another request has another
// value.
func (a Acceptance) Request() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", a.Of, a.Reason, a.AskedBy, a.AskedAt.UnixMicro()))
	return hex.EncodeToString(sum[:16])
}

// Text describes for people who requested the acceptance, and why.
func (a Acceptance) Text() string {
	return fmt.Sprintf("%s: asked for by %s at %s: %s", strings.Join(a.Of, ", "), a.AskedBy, a.AskedAt.UTC().Format(time.DateTime), a.Reason)
}

// ErrNoAcceptance says that there is no request to accept the present record, or it has expired.
var ErrNoAcceptance = errors.New("nobody has asked to accept the record as it is now: one person asks with a reason, another approves")
