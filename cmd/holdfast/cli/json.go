package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// JSONValue reads the value of a flag: JSON, @FILE, or - for standard input. It returns nil for "",
// and a usage error for a value that is not JSON.
func JSONValue(a *App, flag, value string) (json.RawMessage, error) {
	raw, err := []byte(value), error(nil)
	if value == "-" {
		raw, err = io.ReadAll(a.In)
	} else if name, ok := strings.CutPrefix(value, "@"); ok {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", value, exit.Cause(err))
	}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !json.Valid(raw) {
		return nil, exit.Usagef("%s is not JSON; text stands in double quotes: %s '\"text\"'", flag, flag)
	}
	return raw, nil
}
