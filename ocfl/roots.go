package ocfl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownRoot says that there is no storage root of that name here.
var ErrUnknownRoot = errors.New("ocfl: unknown storage root")

// Named is a storage root under the name that people and records know it by.
type Named struct {
	*Root
	Name    string
	Address string // where it is, for people: without options and credentials
}

// Roots are storage roots that hold replicas of the same objects, under different names. It is not
// changed once it is shared.
type Roots []Named

// Of returns the root of a name. ErrUnknownRoot names those that there are.
func (rs Roots) Of(name string) (Named, error) {
	i := slices.IndexFunc(rs, func(n Named) bool { return n.Name == name })
	if i < 0 {
		return Named{}, fmt.Errorf("%w: %q; there are %s", ErrUnknownRoot, name, strings.Join(rs.Names(), ", "))
	}
	return rs[i], nil
}

// Names are the roots' names in their order.
func (rs Roots) Names() []string {
	names := make([]string, len(rs))
	for i, n := range rs {
		names[i] = n.Name
	}
	return names
}
