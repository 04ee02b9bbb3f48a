package config

import (
	"fmt"
	"strings"
)

// Saved returns settings as a file of HOLDFAST_CONFIG_FILE, for a backup: those that do not have
// their default. Secrets are named with where they came from, without their values, and so are
// addresses with passwords.
func Saved(settings []Setting) []byte {
	var b strings.Builder
	b.WriteString("# The settings in force when this backup was made. It has no secrets but the keys, which are files of their own.\n")
	for _, s := range settings {
		switch {
		case s.Unknown || s.From == FromDefault:
		case s.Secret, strings.Contains(s.Value, hiddenPassword), strings.ContainsAny(s.Value, "\n\r"):
			fmt.Fprintf(&b, "# %s is secret; it came from: %s\n", s.Name, s.From)
		default:
			fmt.Fprintf(&b, "%s=\"%s\"\n", s.Name, s.Value)
		}
	}
	return []byte(b.String())
}
