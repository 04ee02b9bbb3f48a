package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode is v as it travels: as JSON, which is not changed any further.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}
