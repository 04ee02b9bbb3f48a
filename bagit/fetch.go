package bagit

import (
	"bytes"
	"io"
	"iter"
	"net/url"
	"strconv"
)

// FetchEntry is one line of fetch.txt (section 2.2.3): the address of a payload file that the bag
// leaves out.
type FetchEntry struct {
	URL    string `json:"url"`
	Length int64  `json:"length"` // in octets as claimed, -1 for none; never trust it
	// File is the path in the bag. In a Report it is checked and unescaped: relative, below data/,
	// without "..".
	File string `json:"file"`
	// Present says that the bag already has the file.
	Present bool `json:"present"`

	line int
}

func (e FetchEntry) decode(enc textEncoding) (FetchEntry, error) {
	name, ok := enc.decode(e.File)
	link, okURL := enc.decode(e.URL)
	if !ok || !okURL {
		return e, newLineError(e.line, "not "+enc.name, []byte(printable(e.URL+" "+e.File)))
	}
	e.File, e.URL = name, link
	return e, nil
}

func scanFetch(text io.Reader) iter.Seq2[FetchEntry, error] { return scanLines(text, parseFetchLine) }

func parseFetchLine(line []byte, n int) (FetchEntry, error) {
	link, rest := cutField(line)
	length, name := cutField(rest)
	if len(link) == 0 || len(length) == 0 || len(name) == 0 {
		return FetchEntry{}, newLineError(n, "not of the form url length filepath", line)
	}
	entry := FetchEntry{URL: string(link), Length: -1, File: string(name), line: n}
	if string(length) != "-" {
		octets, err := strconv.ParseInt(string(length), 10, 64)
		if err != nil || !allDigits(string(length)) {
			return entry, newLineError(n, "length is neither a number nor -", line)
		}
		entry.Length = octets
	}
	if u, err := url.Parse(entry.URL); err != nil || u.Scheme == "" {
		return entry, newLineError(n, "not an absolute URI", line)
	}
	return entry, nil
}

// cutField cuts the first field and the whitespace after it off a line.
func cutField(line []byte) (field, rest []byte) {
	i := bytes.IndexAny(line, " \t")
	if i < 0 {
		return line, nil
	}
	return line[:i], bytes.TrimLeft(line[i:], " \t")
}
