package page

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// void has the elements without an end (HTML 13.1.2) that a page could have.
var void = map[atom.Atom]bool{atom.Br: true, atom.Col: true, atom.Embed: true, atom.Hr: true, atom.Img: true, atom.Input: true, atom.Source: true, atom.Wbr: true}

// liveParts returns the live parts of a page, in order. A live part within another one belongs to
// that.
func liveParts(text []byte) (parts []part) {
	z := html.NewTokenizer(bytes.NewReader(text))
	var (
		at      *part        // the part that is being read
		element []byte       // its name
		depth   int          // of elements of that name
		raw     bytes.Buffer // its text
		timing  bool         // inside a time element
		sum     = sha256.New()
	)
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return parts
		}
		token := z.Raw()
		begins := kind == html.StartTagToken || kind == html.SelfClosingTagToken
		var name []byte
		id, isLive := "", false
		if begins || kind == html.EndTagToken {
			token = slices.Clone(token) // reading the tag changes it
			var more bool
			for name, more = z.TagName(); more; {
				var attribute, value []byte
				attribute, value, more = z.TagAttr()
				switch string(attribute) {
				case "id":
					id = string(value)
				case "data-live":
					isLive = true
				}
			}
		}
		if at == nil && begins && isLive && id != "" {
			at, element, depth = &part{id: id}, slices.Clone(name), 0
			raw.Reset()
			sum.Reset()
		}
		if at == nil {
			continue
		}
		raw.Write(token)
		if string(name) == "time" {
			timing = kind == html.StartTagToken
		}
		if !timing || kind != html.TextToken {
			sum.Write(token)
		}
		if bytes.Equal(name, element) {
			switch kind {
			case html.StartTagToken:
				if !void[atom.Lookup(name)] {
					depth++
				}
			case html.EndTagToken:
				depth--
			}
		}
		if depth == 0 {
			at.text = raw.String()
			sum.Sum(at.key[:0])
			parts = append(parts, *at)
			at = nil
		}
	}
}
