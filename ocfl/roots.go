package ocfl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownRoot says that no storage root has this name.
var ErrUnknownRoot = errors.New("ocfl: unknown storage root")

// Named is a storage root with the name by which people and records refer to it.
type Named struct {
	*Root
	Name    string
	Address string // for people, without options and credentials
}

// Roots are storage roots that hold replicas of the same objects under different names. Do not
// change it once it is shared.
type Roots []Named

// Of returns the root with a name. The error is ErrUnknownRoot and lists the known names.
func (rs Roots) Of(name string) (Named, error) {
	i := slices.IndexFunc(rs, func(n Named) bool { return n.Name == name })
	if i < 0 {
		return Named{}, fmt.Errorf("%w: %q; there are %s", ErrUnknownRoot, name, strings.Join(rs.Names(), ", "))
	}
	return rs[i], nil
}

// Names returns the names of the roots in their order.
func (rs Roots) Names() []string {
	names := make([]string, len(rs))
	for i, n := range rs {
		names[i] = n.Name
	}
	return names
}

// Spec returns the version of the specification that a new object may declare in all roots of these names:
// the earliest of theirs. A name that is not known has no say.
func (rs Roots) Spec(names []string) string {
	spec := Spec11
	for _, n := range rs {
		if slices.Contains(names, n.Name) {
			spec = min(spec, n.spec)
		}
	}
	return spec
}
