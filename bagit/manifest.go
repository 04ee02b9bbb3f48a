package bagit

import (
	"bytes"
	"encoding/hex"
	"io"
	"iter"
	"strings"
)

// manifestEntry is one line of a payload or tag manifest (sections 2.1.3 and 2.2.1).
type manifestEntry struct {
	Line   int    // from 1
	Digest []byte // overwritten by the next entry
	// Name is the path as in the manifest. It still has percent-escapes, a leading "./" and the "*"
	// of md5sum.
	Name string
	// MD5Sum is set if md5sum escaped the line (a backslash before the digest). Name is unescaped.
	MD5Sum bool
}

func scanManifest(text io.Reader) iter.Seq2[manifestEntry, error] {
	var digest []byte
	return scanLines(text, func(line []byte, n int) (manifestEntry, error) { return parseManifestLine(line, n, &digest) })
}

func parseManifestLine(line []byte, n int, digest *[]byte) (manifestEntry, error) {
	entry := manifestEntry{Line: n}
	rest := line
	if rest[0] == '\\' {
		entry.MD5Sum = true
		rest = rest[1:]
	}
	i := bytes.IndexAny(rest, " \t")
	if i <= 0 {
		return entry, newLineError(n, "not of the form checksum filepath", line)
	}
	sum, name := rest[:i], bytes.TrimLeft(rest[i:], " \t")
	if len(name) == 0 {
		return entry, newLineError(n, "no filepath", line)
	}
	d, err := hex.AppendDecode((*digest)[:0], sum)
	if err != nil {
		return entry, newLineError(n, "checksum is not hexadecimal", line)
	}
	*digest = d
	entry.Digest, entry.Name = d, string(name)
	if entry.MD5Sum {
		entry.Name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(entry.Name)
	}
	return entry, nil
}

// manifestKind is the kind of a manifest.
type manifestKind uint8

const (
	payloadManifest manifestKind = iota + 1
	tagManifest
)

// manifestName parses the name of a manifest; kind is 0 for any other file.
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
