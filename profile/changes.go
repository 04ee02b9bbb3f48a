package profile

import (
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Changes describes how a profile differs from an earlier one, one line per change. It returns none
// if they are equal.
func Changes(before, after registry.Profile) ([]string, error) {
	old, err := nodeOf(before)
	if err != nil {
		return nil, err
	}
	now, err := nodeOf(after)
	if err != nil {
		return nil, err
	}
	was, names := parts(old)
	is, more := parts(now)
	for _, name := range more {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	var changes []string
	for _, name := range names {
		a, had := was[name]
		b, has := is[name]
		switch {
		case a == b && had == has:
		case strings.HasPrefix(name, "bag_profile") && had && has: // too long to show
			changes = append(changes, name+": replaced by another document")
		case strings.HasPrefix(name, "bag_profile") && has:
			changes = append(changes, name+": added a document")
		case !had:
			changes = append(changes, fmt.Sprintf("%s: %s; it was not set", name, b))
		case !has && strings.HasPrefix(name, "bag_profile"):
			changes = append(changes, name+": removed")
		case !has:
			changes = append(changes, fmt.Sprintf("%s: removed; it was %s", name, a))
		default:
			changes = append(changes, fmt.Sprintf("%s: %s; it was %s", name, b, a))
		}
	}
	return changes, nil
}

// parts returns the values of a profile by name, and the names in order. Callback and mail rules
// are split into their fields.
func parts(root *node) (values map[string]string, names []string) {
	values = map[string]string{}
	add := func(name string, n *node) {
		values[name] = string(n.json())
		if n.kind == written {
			values[name] = n.scalar
		}
		names = append(names, name)
	}
	for _, f := range root.fields {
		if f.value.kind != mapping || f.name == "bag_profile" || len(f.value.fields) == 0 {
			add(f.name, f.value)
			continue
		}
		for _, below := range f.value.fields {
			add(f.name+"."+below.name, below.value)
		}
	}
	return values, names
}
