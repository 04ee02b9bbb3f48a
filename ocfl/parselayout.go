package ocfl

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ParseLayout returns the layout that a setting names: the number or the full name of an extension,
// then its parameters as NAME=VALUE after commas, such as "0004" or "0006,delimiter=/". Missing
// parameters have the extension's defaults. It returns ErrLayout for invalid text.
func ParseLayout(text string) (Layout, error) {
	name, rest, more := strings.Cut(text, ",")
	for _, known := range layouts {
		if number, _, _ := strings.Cut(known, "-"); name == number {
			name = known
		}
	}
	config := map[string]any{}
	for parameter := range strings.SplitSeq(rest, ",") {
		if !more {
			break
		}
		key, value, ok := strings.Cut(parameter, "=")
		if _, again := config[key]; !ok || again || key == "extensionName" {
			return nil, fmt.Errorf("%w: parameter %q: want NAME=VALUE, each once", ErrLayout, parameter)
		}
		switch key {
		case "tupleSize", "numberOfTuples", "shortObjectRoot", "reverseObjectRoot":
			config[key] = json.RawMessage(value) // a number, or true or false
		default:
			config[key] = value
		}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("%w: parameters of %s: a value is neither a number nor true or false", ErrLayout, name)
	}
	return decodeLayout(name, data, true)
}
