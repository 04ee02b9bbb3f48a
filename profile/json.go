package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of lists.
const maxDepth = 100

// jsonReader converts the tokens of a document to nodes.
type jsonReader struct {
	text []byte
	*json.Decoder

	seen int64 // bytes before at
	at   Place
}

func fromJSON(text []byte) (*node, Faults) {
	r := &jsonReader{text: text, Decoder: json.NewDecoder(bytes.NewReader(text)), at: Place{1, 1}}
	r.UseNumber()
	if !utf8.Valid(text) {
		return nil, Faults{{Place{1, 1}, "it is not UTF-8"}}
	}
	n, err := r.value(0)
	if err == nil {
		if _, end := r.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more text follows the profile; a document contains one profile")
		}
	}
	if err == nil {
		return n, nil
	}
	at := r.next()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) && syntax.Offset > r.InputOffset() {
		at = r.place(syntax.Offset - 1) // inside a token
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = r.place(int64(len(text))), errors.New("the document ends too early")
	}
	return nil, Faults{{at, "not valid JSON: " + err.Error()}}
}

// place returns the place of a byte. Offsets must not decrease from call to call.
func (r *jsonReader) place(offset int64) Place {
	for ; r.seen < min(offset, int64(len(r.text))); r.seen++ {
		switch b := r.text[r.seen]; {
		case b == '\n':
			r.at = Place{r.at.Line + 1, 1}
		case utf8.RuneStart(b):
			r.at.Column++
		}
	}
	return r.at
}

// next returns where the next token begins.
func (r *jsonReader) next() Place {
	at := r.InputOffset()
	for at < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return r.place(at)
}

func (r *jsonReader) value(depth int) (*node, error) {
	n := &node{Place: r.next()}
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("lists are nested too deep")
	}
	switch v := token.(type) {
	case json.Delim:
		return n, r.below(n, v, depth)
	case string:
		n.kind, n.scalar = written, v
	case json.Number:
		n.kind, n.scalar = number, v.String()
	case bool:
		n.kind, n.scalar = truth, "false"
		if v {
			n.scalar = "true"
		}
	default:
		n.kind, n.scalar = nothing, "null"
	}
	return n, nil
}

// below reads the content of a node that begins with a delimiter, and its end.
func (r *jsonReader) below(n *node, begin json.Delim, depth int) error {
	n.kind = list
	if begin == '{' {
		n.kind = mapping
	}
	for r.More() {
		if n.kind == list {
			item, err := r.value(depth + 1)
			if err != nil {
				return err
			}
			n.items = append(n.items, item)
			continue
		}
		f := field{Place: r.next()}
		name, err := r.Token()
		if err != nil {
			return err
		}
		f.name, _ = name.(string) // the decoder accepts only strings here
		if f.value, err = r.value(depth + 1); err != nil {
			return err
		}
		n.fields = append(n.fields, f)
	}
	_, err := r.Token()
	return err
}
