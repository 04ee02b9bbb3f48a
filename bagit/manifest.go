package bagit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// ManifestEntry is one line of a payload or tag manifest (sections 2.1.3 and 2.2.1).
type ManifestEntry struct {
	Line   int    // from 1
	Digest []byte // overwritten by the next entry
	// Name is the path as it stands in the manifest: percent-escapes, a leading "./" and the "*" of
	// md5sum are still there.
	Name string
	// MD5Sum is true when the line was escaped by md5sum, with a backslash before the digest; Name
	// is unescaped.
	MD5Sum bool
}

// ParseManifest reads a manifest as a stream. encoding is what bagit.txt names; with "" names stay
// the octets they are (but UTF-16 is recognized). A line that does not conform is yielded as a
// *LineError and reading goes on; any other error (reading failed, unknown encoding) ends it. Each
// call of the result reads on from r.
func ParseManifest(r io.Reader, encoding string) iter.Seq2[ManifestEntry, error] {
	return func(yield func(ManifestEntry, error) bool) {
		enc, err := encodingArgument(encoding)
		if err != nil {
			yield(ManifestEntry{}, fmt.Errorf("read manifest: %w", err))
			return
		}
		text, form, err := openText(r)
		if err != nil {
			yield(ManifestEntry{}, fmt.Errorf("read manifest: %w", err))
			return
		}
		for entry, err := range scanManifest(text) {
			if err == nil && form == formPlain && encoding != "" {
				name, ok := enc.decode(entry.Name)
				if !ok {
					err = lineError(entry.Line, "not "+enc.name, []byte(printable(entry.Name)))
				}
				entry.Name = name
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// ErrEncoding is returned by the parsers for an encoding that is not supported.
var ErrEncoding = errors.New("encoding is not supported")

func encodingArgument(name string) (textEncoding, error) {
	if name == "" {
		return textEncoding{}, nil
	}
	enc, ok := lookupEncoding(name)
	if !ok {
		return enc, fmt.Errorf("encoding %q: %w", name, ErrEncoding)
	}
	return enc, nil
}

func scanManifest(text io.Reader) iter.Seq2[ManifestEntry, error] {
	return func(yield func(ManifestEntry, error) bool) {
		lines := newLineScanner(text)
		var digest []byte
		for line, ok := lines.next(); ok; line, ok = lines.next() {
			if isBlank(line) {
				continue
			}
			entry, err := parseManifestLine(line, lines.n, &digest)
			if err != nil {
				if !yield(ManifestEntry{}, err) {
					return
				}
				continue
			}
			if !yield(entry, nil) {
				return
			}
		}
		if err := lines.err(); err != nil {
			yield(ManifestEntry{}, err)
		}
	}
}

func parseManifestLine(line []byte, n int, digest *[]byte) (ManifestEntry, error) {
	entry := ManifestEntry{Line: n}
	rest := line
	if rest[0] == '\\' {
		entry.MD5Sum = true
		rest = rest[1:]
	}
	i := bytes.IndexAny(rest, " \t")
	if i <= 0 {
		return entry, lineError(n, "not of the form checksum filepath", line)
	}
	sum, name := rest[:i], bytes.TrimLeft(rest[i:], " \t")
	if len(name) == 0 {
		return entry, lineError(n, "no filepath", line)
	}
	d, err := hex.AppendDecode((*digest)[:0], sum)
	if err != nil {
		return entry, lineError(n, "checksum is not hexadecimal", line)
	}
	*digest = d
	entry.Digest, entry.Name = d, string(name)
	if entry.MD5Sum {
		entry.Name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(entry.Name)
	}
	return entry, nil
}

// manifestKind tells the two kinds of manifest apart.
type manifestKind uint8

const (
	payloadManifest manifestKind = iota + 1
	tagManifest
)

// manifestName takes the name of a manifest apart; kind is 0 for any other file.
func manifestName(name string) (kind manifestKind, alg string) {
	stem, ok := strings.CutSuffix(name, ".txt")
	if !ok {
		return 0, ""
	}
	if alg, ok := strings.CutPrefix(stem, "tagmanifest-"); ok && alg != "" {
		return tagManifest, alg
	}
	if alg, ok := strings.CutPrefix(stem, "manifest-"); ok && alg != "" {
		return payloadManifest, alg
	}
	return 0, ""
}
