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

// Acceptance is who asked, and who agreed, that the record of events is right although it is older
// than signed checkpoints, as after a backup was restored.
type Acceptance struct {
	// Of names the checkpoints, each by its storage, its name, what was signed of it, and the
	// digest of what is lost. So a consent ends when anything more is missing.
	Of      []string  `json:"of"`
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
	// Replaces is whose asking, which still waited, this one took the place of; "" when none did.
	Replaces string `json:"replaces,omitempty"`
	// ApprovedBy is another person than AskedBy; "" while nobody has agreed.
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
}

// Covers says whether it is about these checkpoints, and perhaps about others that are settled by
// now.
func (a Acceptance) Covers(of []string) bool {
	return len(of) > 0 && !slices.ContainsFunc(of, func(c string) bool { return !slices.Contains(a.Of, c) })
}

// Waits says whether another person can still agree at a time: what was asked for expires after
// [AskingLasts].
func (a Acceptance) Waits(now time.Time) bool {
	return a.ApprovedBy == "" && now.Before(a.AskedAt.Add(AskingLasts))
}

// Request names what was asked for, as who agrees was shown it: another asking has another one.
func (a Acceptance) Request() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", a.Of, a.Reason, a.AskedBy, a.AskedAt.UnixMicro()))
	return hex.EncodeToString(sum[:16])
}

// Text says for people who asked for it, and why.
func (a Acceptance) Text() string {
	return fmt.Sprintf("%s: asked for by %s at %s: %s", strings.Join(a.Of, ", "), a.AskedBy, a.AskedAt.UTC().Format(time.DateTime), a.Reason)
}

// ErrNoAcceptance says that nobody asks to accept the record as it is now, or did too long ago.
var ErrNoAcceptance = errors.New("nobody has asked to accept the record as it is now: one person asks with a reason, another approves")
