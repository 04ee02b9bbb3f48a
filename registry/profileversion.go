package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// ProfileVersion is a collection's profile as it was from one change to the next. It is never changed, and outlives what was
// submitted under it.
type ProfileVersion struct {
	Collection string    `json:"collection"`
	Version    int       `json:"version"` // from 1 on
	Profile    Profile   `json:"profile"`
	Actor      string    `json:"actor"` // "": of before there were versions
	CreatedAt  time.Time `json:"created_at"`
}

// What a profile may be saved over, beside the number of a version.
const (
	AnyVersion = 0  // whatever there is, or nothing
	NoVersion  = -1 // nothing: the collection must not be there yet
)

// VersionError refuses to save a profile over another version than was meant.
type VersionError struct {
	Mnemonic string `json:"mnemonic"`
	Want     int    `json:"want"` // NoVersion: none
	Have     int    `json:"have"` // 0: there is no such collection
}

// Error says what to do.
func (e *VersionError) Error() string {
	switch {
	case e.Want == NoVersion:
		return fmt.Sprintf("there is a collection %s already, with version %d of its profile; change that one, or give another name", e.Mnemonic, e.Have)
	case e.Have == 0:
		return fmt.Sprintf("there is no collection %s whose profile could be changed; create it", e.Mnemonic)
	}
	return fmt.Sprintf("the profile of collection %s is at version %d, not %d: look at what it is now, and change that", e.Mnemonic, e.Have, e.Want)
}

// Next returns which version p becomes when it is saved over a version of c's profile, or over [AnyVersion] or [NoVersion]; c is
// the zero Collection when there is none. The same profile again is c's own version, also when the answer to an earlier try
// was lost and what it was to be saved over is gone. *VersionError when c is at another version.
func (c Collection) Next(mnemonic string, over int, p Profile) (int, error) {
	switch {
	case c.Version > 0 && over != NoVersion && c.Profile.same(p):
		return c.Version, nil
	case over == AnyVersion, over == NoVersion && c.Version == 0, over > 0 && over == c.Version:
		return c.Version + 1, nil
	}
	return 0, &VersionError{Mnemonic: mnemonic, Want: over, Have: c.Version}
}

// same says whether two profiles ask for the same in the same words.
func (p Profile) same(q Profile) bool {
	if len(p.Collections) == 0 && len(q.Collections) == 0 {
		p.Collections, q.Collections = nil, nil
	}
	one, errOne := json.Marshal(p)
	two, errTwo := json.Marshal(q)
	return errOne == nil && errTwo == nil && bytes.Equal(one, two)
}
