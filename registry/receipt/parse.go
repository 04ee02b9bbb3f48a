package receipt

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// errForm: the JSON is readable, but not written in the one allowed form.
var errForm = errors.New("it does not have the form of a receipt's line")

// decode decodes a line. The caller must encode the result again and compare: that rules out
// repeated names and hidden content.
func decode(text []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("it cannot be decoded: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errForm
	}
	return nil
}

// ParseHeader decodes a signed line. It does not verify the signature.
func ParseHeader(head string) (Header, error) { return parseHeader([]byte(head)) }

func parseHeader(text []byte) (h Header, err error) {
	if !bytes.HasPrefix(text, []byte(Magic)) {
		return h, fmt.Errorf("this is no receipt: a receipt begins with %q", Magic)
	}
	var in struct {
		Format int `json:"holdfast_receipt"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return h, fmt.Errorf("it cannot be decoded: %w", err)
	}
	if in.Format < 1 || in.Format > Format {
		return h, fmt.Errorf("its format is %d, but this program knows only formats 1 to %d; use a newer holdfast", in.Format, Format)
	}
	var whole struct {
		Format int `json:"holdfast_receipt"`
		Header
	}
	if err := decode(text, &whole); err != nil {
		return h, err
	}
	h = whole.Header
	h.Format = in.Format
	var w line
	w.header(h)
	if !bytes.Equal(w.b, text) || !fourDigitYear(h.Created, h.Recorded, h.Named) {
		return h, errForm
	}
	unsigned := h.Format >= 3 && h.Key == "" && h.PublicKey == ""
	return h, check(map[string]bool{
		"version":        h.Version >= 1,
		"files":          h.Files >= 0,
		"bytes":          h.Bytes >= 0,
		"events.first":   h.Events.First >= 1,
		"events.count":   h.Events.Count >= 0,
		"events.before":  isHash(h.Events.Before),
		"events.after":   isHash(h.Events.After),
		"manifest":       isHash(strings.TrimPrefix(h.Manifest, "sha256:")) && strings.HasPrefix(h.Manifest, "sha256:"),
		"key":            unsigned || isHash(h.Key),
		"public_key":     unsigned || isHash(h.PublicKey), // same length
		"object (empty)": h.Object != "",
	})
}

// check returns an error that names the invalid values.
func check(values map[string]bool) error {
	var bad []string
	for name, ok := range values {
		if !ok {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return fmt.Errorf("invalid value of %s", strings.Join(bad, ", "))
}

// fourDigitYear says whether the times have a year of four digits, which the form requires.
func fourDigitYear(times ...time.Time) bool {
	return !slices.ContainsFunc(times, func(t time.Time) bool { y := t.UTC().Year(); return y < 0 || y > 9999 })
}

func isHash(s string) bool { return isHex(s) && len(s) == len(Zero) }

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && s != "" && strings.ToLower(s) == s
}

func parseSignature(text []byte) ([]byte, error) {
	var in struct {
		Signature string `json:"signature"`
	}
	if err := decode(text, &in); err != nil {
		return nil, err
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(in.Signature)
	if err != nil || !bytes.Equal(Head("", signature), text) {
		return nil, errForm
	}
	return signature, nil
}

// parseFile decodes a file's line of a format.
func parseFile(text []byte, format int) (f File, err error) {
	var in struct {
		File     string            `json:"file"`
		Size     int64             `json:"size"`
		Digests  map[string]string `json:"digests"`
		Modified time.Time         `json:"modified"`
		MIMEType string            `json:"mime"`
		Format   *FileFormat       `json:"format"`
		Since    int               `json:"since"`
		Content  string            `json:"content"`
	}
	if err := decode(text, &in); err != nil {
		return f, err
	}
	f.Size, f.Digests, f.Modified = in.Size, in.Digests, in.Modified
	f.MIMEType, f.Format, f.Since = in.MIMEType, in.Format, in.Since
	var path, content bool
	f.Path, path = UnescapePath(in.File)
	f.Content, content = UnescapePath(in.Content)
	if !path || !content || !bytes.Equal(f.Line(), text) || format < 2 && !f.Modified.IsZero() ||
		format < 3 && (f.MIMEType != "" || f.Format != nil || f.Since != 0) {
		return f, errForm
	}
	digests := len(f.Digests) > 0
	for _, d := range f.Digests {
		digests = digests && isHex(d)
	}
	return f, check(map[string]bool{"file": f.Path != "", "size": f.Size >= 0, "digests": digests, "since": f.Since >= 0})
}

func parseEvent(text []byte) (e Event, hash string, err error) {
	var in struct {
		Event Event  `json:"event"`
		Hash  string `json:"hash"`
	}
	if err := decode(text, &in); err != nil {
		return e, "", err
	}
	if !fourDigitYear(in.Event.At) || !bytes.Equal(in.Event.Line(in.Hash), text) {
		return e, "", errForm
	}
	return in.Event, in.Hash, check(map[string]bool{"hash": isHash(in.Hash)})
}
