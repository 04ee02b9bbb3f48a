package bagit

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
)

// FetchEntry is one line of fetch.txt (section 2.2.3): a payload file that was left out and where
// to have it.
type FetchEntry struct {
	URL    string `json:"url"`
	Length int64  `json:"length"` // octets as claimed, -1 when not said; never to be trusted
	// File is the path in the bag. In a Report it is checked and unescaped: relative, below data/,
	// free of "..". From ParseFetch it is as it stands in the file.
	File string `json:"file"`
	// Present is set in a Report when the bag has the file already.
	Present bool `json:"present"`

	line int
}

// ParseFetch reads fetch.txt as a stream. encoding and the errors are as with ParseManifest.
func ParseFetch(r io.Reader, encoding string) iter.Seq2[FetchEntry, error] {
	return func(yield func(FetchEntry, error) bool) {
		enc, err := encodingArgument(encoding)
		if err != nil {
			yield(FetchEntry{}, fmt.Errorf("read fetch: %w", err))
			return
		}
		text, form, err := openText(r)
		if err != nil {
			yield(FetchEntry{}, fmt.Errorf("read fetch: %w", err))
			return
		}
		for entry, err := range scanFetch(text) {
			if err == nil && form == formPlain && encoding != "" {
				entry, err = entry.decode(enc)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

func (e FetchEntry) decode(enc textEncoding) (FetchEntry, error) {
	name, ok := enc.decode(e.File)
	link, okURL := enc.decode(e.URL)
	if !ok || !okURL {
		return e, lineError(e.line, "not "+enc.name, []byte(printable(e.URL+" "+e.File)))
	}
	e.File, e.URL = name, link
	return e, nil
}

func scanFetch(text io.Reader) iter.Seq2[FetchEntry, error] {
	return func(yield func(FetchEntry, error) bool) {
		lines := newLineScanner(text)
		for line, ok := lines.next(); ok; line, ok = lines.next() {
			if isBlank(line) {
				continue
			}
			entry, err := parseFetchLine(line, lines.n)
			if err != nil {
				if !yield(FetchEntry{}, err) {
					return
				}
				continue
			}
			if !yield(entry, nil) {
				return
			}
		}
		if err := lines.err(); err != nil {
			yield(FetchEntry{}, err)
		}
	}
}

func parseFetchLine(line []byte, n int) (FetchEntry, error) {
	link, rest := cutField(line)
	length, name := cutField(rest)
	if len(link) == 0 || len(length) == 0 || len(name) == 0 {
		return FetchEntry{}, lineError(n, "not of the form url length filepath", line)
	}
	entry := FetchEntry{URL: string(link), Length: -1, File: string(name), line: n}
	if string(length) != "-" {
		octets, err := strconv.ParseInt(string(length), 10, 64)
		if err != nil || !allDigits(string(length)) {
			return entry, lineError(n, "length is neither a number nor -", line)
		}
		entry.Length = octets
	}
	if u, err := url.Parse(entry.URL); err != nil || u.Scheme == "" {
		return entry, lineError(n, "not an absolute URI", line)
	}
	return entry, nil
}

// cutField takes the first field off a line, and the whitespace after it.
func cutField(line []byte) (field, rest []byte) {
	i := bytes.IndexAny(line, " \t")
	if i < 0 {
		return line, nil
	}
	return line[:i], bytes.TrimLeft(line[i:], " \t")
}
