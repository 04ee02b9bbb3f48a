package page

import (
	"bytes"
	"fmt"

	"golang.org/x/net/html"
)

// shownOrder returns a page with a mark in place of each control of its texts that embeds or overrides a
// direction (U+202A to U+202E): of a title "\u202egpj.exe" a browser shows "exe.jpg". Attributes and what
// people typed stay as they are.
func shownOrder(text []byte) []byte {
	if !reorders(text) {
		return text
	}
	var out bytes.Buffer
	typed := false
	for z := html.NewTokenizer(bytes.NewReader(text)); ; {
		kind := z.Next()
		raw := z.Raw()
		switch kind {
		case html.ErrorToken:
			out.Write(raw)
			return out.Bytes()
		case html.TextToken:
			if !typed {
				raw = marked(raw)
			}
			out.Write(raw)
		default:
			out.Write(raw) // before its name is read, which changes it
			if name, _ := z.TagName(); string(name) == "textarea" {
				typed = kind == html.StartTagToken
			}
		}
	}
}

// reorders reports whether a text has a control that embeds or overrides a direction.
func reorders(text []byte) bool {
	for rest := text; ; rest = rest[3:] {
		i := bytes.Index(rest, []byte("\xe2\x80"))
		if i < 0 || i+3 > len(rest) {
			return false
		}
		if rest = rest[i:]; rest[2] >= 0xaa && rest[2] <= 0xae {
			return true
		}
	}
}

// marked returns a text with marks in place of such controls.
func marked(text []byte) []byte {
	if !reorders(text) {
		return text
	}
	for r := '\u202a'; r <= '\u202e'; r++ {
		text = bytes.ReplaceAll(text, []byte(string(r)), fmt.Appendf(nil, "⟨U+%04X⟩", r))
	}
	return text
}
