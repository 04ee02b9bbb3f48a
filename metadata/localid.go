package metadata

import "strings"

// SplitLocalIDs takes apart a list of local ids as it stands in forms, manifests and ERCs: at ";",
// white space around each dropped, empty ones left out. "%sc" stands for a ";" within an id and
// "%pe" for a "%".
func SplitLocalIDs(list string) []string {
	var ids []string
	for id := range strings.SplitSeq(list, ";") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, localIDUnescaper().Replace(id))
		}
	}
	return ids
}

// JoinLocalIDs is the reverse of SplitLocalIDs: the ids with ";" between them.
func JoinLocalIDs(ids []string) string {
	// Only a % that would read as an escape is written as one, so that ordinary ids stay as they
	// are.
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

// MergeLocalIDs returns the ids of all lists in order, each string once. Ids are compared as whole
// strings: loc1 and loc10 are two.
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

// IsARK reports whether an identifier is an ARK, by its scheme alone.
func IsARK(id string) bool {
	id = strings.TrimSpace(id)
	return len(id) > 4 && strings.EqualFold(id[:4], "ark:")
}

// splitIDs sorts the identifiers of one list.
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
