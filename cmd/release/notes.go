package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// heading is the heading of a version in CHANGELOG.md: "## v0.9.0 (2026-11-28)".
var heading = regexp.MustCompile(`(?m)^## (\S+)(?: \((\d{4}-\d{2}-\d{2})\))?$`)

// unreleased heads what no release has yet.
const unreleased = "Unreleased"

// notesOf cuts a version's section out of the changes. The section must come first, with its date and
// text; above it there may be an empty "Unreleased" only, because everything that is in the commit is
// in the release.
func notesOf(changes, version string) (string, error) {
	found := heading.FindAllStringSubmatchIndex(changes, -1)
	for i, at := range found {
		end := len(changes)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		text := strings.TrimSpace(changes[at[1]:end])
		switch name := changes[at[2]:at[3]]; {
		case name == unreleased && i == 0 && text == "":
		case name == unreleased && i == 0:
			return "", fmt.Errorf("changes stand under %q; name their section %q", unreleased, "## "+version+" (DATE)")
		case name != version:
			return "", fmt.Errorf("the first section is %q, not %q", name, version)
		case at[4] < 0:
			return "", fmt.Errorf("the section %s has no date, such as %q", version, "## "+version+" (2026-11-28)")
		case text == "":
			return "", fmt.Errorf("the section %s is empty", version)
		default:
			return fmt.Sprintf("# Holdfast %s (%s)\n\n%s\n", version, changes[at[4]:at[5]], text), nil
		}
	}
	return "", errors.New("no section has the version " + version)
}
