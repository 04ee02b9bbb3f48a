package config

import (
	"os"
	"slices"
	"strings"
)

// Unknown is a variable that is set, begins with HOLDFAST_ and is no setting of this version. It has
// no effect. It is not refused: in a rolling upgrade, and after going back, processes of two versions
// have the same variables, and one that refused those of the other would not start. So that a
// misspelt limit or secret is not passed over, whoever loads the configuration shows all of them.
type Unknown struct {
	Name string
	From string // as in Fault
	// Close is the most similar setting; "" if none is similar.
	Close string
	// CloseSet says that Close is set, too.
	CloseSet bool
}

// Misspelt reports whether the name is rather a misspelling than a setting of another version.
func (u Unknown) Misspelt() bool { return u.Close != "" && !u.CloseSet }

// String returns the name, what it comes to and the remedy, without the value.
func (u Unknown) String() string {
	name, resembles := place(u.Name, u.From), ""
	switch {
	case u.Misspelt():
		return name + ": unknown, so it has no effect, and " + u.Close + " is not set; did you mean " + u.Close + "?"
	case u.CloseSet:
		resembles = " (" + u.Close + ", which it resembles, is set)"
	}
	return name + ": unknown to this version, so it has no effect" + resembles + "; remove it, unless another version needs it (docs/configuration.md lists the names)"
}

// unknown returns the variables with our prefix that are not in known, sorted.
func unknown(known []string, from origins) (all []Unknown) {
	environ := os.Environ()
	slices.Sort(environ)
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if value == "" || !strings.HasPrefix(name, Prefix+"_") || slices.Contains(known, name) {
			continue
		}
		u := Unknown{Name: name, From: from[name], Close: closest(name, known)}
		u.CloseSet = u.Close != "" && os.Getenv(u.Close) != ""
		all = append(all, u)
	}
	return all
}
