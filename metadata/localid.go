package metadata

import "strings"

// SplitLocalIDs splits a list of local ids in a form, manifest or ERC at ";". It trims white space
// and drops empty ids. "%sc" stands for ";" within an id, and "%pe" for "%".
func SplitLocalIDs(list string) []string {
	var ids []string
	for id := range strings.SplitSeq(list, ";") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, localIDUnescaper().Replace(id))
		}
	}
	return ids
}

// JoinLocalIDs reverses SplitLocalIDs.
func JoinLocalIDs(ids []string) string {
	// Escape a % only if it would read as an escape, so that ordinary ids stay unchanged.
	escaper := strings.NewReplacer(";", "%sc", "%sc", "%pesc", "%pe", "%pepe")
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != "" {
			list = append(list, escaper.Replace(id))
		}
	}
	return strings.Join(list, ";")
}

func localIDUnescaper() *strings.Replacer { return strings.NewReplacer("%sc", ";", "%pe", "%") }

// MergeLocalIDs returns the ids of all lists in order without duplicates.
func MergeLocalIDs(lists ...[]string) []string {
	var merged []string
	seen := make(map[string]bool)
	for _, list := range lists {
		for _, id := range list {
			if id != "" && !seen[id] {
				seen[id] = true
				merged = append(merged, id)
			}
		}
	}
	return merged
}

// IsARK reports whether an identifier has the scheme of an ARK.
func IsARK(id string) bool {
	id = strings.TrimSpace(id)
	return len(id) > 4 && strings.EqualFold(id[:4], "ark:")
}

// splitIDs separates the ARKs and the local ids of a list.
func splitIDs(list string) (arks, local []string) {
	for _, id := range SplitLocalIDs(list) {
		if IsARK(id) {
			arks = append(arks, id)
		} else if _, _, missing := ParseCode(id); !missing {
			local = append(local, id)
		}
	}
	return arks, local
}
