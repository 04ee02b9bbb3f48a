package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// decodeDigests reads digests by algorithm as their columns have them.
func decodeDigests(text string) (map[string]string, error) {
	if digests, ok := plainDigests(text); ok {
		return digests, nil
	}
	var digests map[string]string
	if err := json.Unmarshal([]byte(text), &digests); err != nil {
		return nil, fmt.Errorf("decode digests: %w", err)
	}
	return digests, nil
}

// plainDigests recognises what nearly all columns hold, an object without spaces and escapes, in a
// fourth of the time.
func plainDigests(text string) (map[string]string, bool) {
	rest, ok := strings.CutPrefix(text, `{"`)
	if !ok {
		return nil, false
	}
	digests := make(map[string]string, 2)
	for {
		var algorithm, hex string
		var named bool
		algorithm, rest, named = strings.Cut(rest, `":"`)
		hex, rest, ok = strings.Cut(rest, `"`)
		if !named || !ok || !bare(algorithm) || !bare(hex) {
			return nil, false
		}
		digests[algorithm] = hex
		if rest == "}" {
			return digests, true
		}
		if rest, ok = strings.CutPrefix(rest, `,"`); !ok {
			return nil, false
		}
	}
}

// bare says that a text stands in JSON as it is.
func bare(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
