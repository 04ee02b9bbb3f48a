package check

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// The rules of this file read bags and objects by themselves: they share nothing with the code that
// is judged.

// without returns the files whose names have none of these prefixes.
func (f fileset) without(prefixes ...string) fileset {
	out := fileset{}
	for name, data := range f {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			out[name] = data
		}
	}
	return out
}

// under returns the files of a folder.
func (f fileset) under(folder string) fileset {
	out := fileset{}
	for name, data := range f {
		if strings.HasPrefix(name, folder) {
			out[name] = data
		}
	}
	return out
}

// changed returns the names of files that differ.
func changed(before, after fileset) (names []string) {
	all := fileset{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	for _, name := range all.names() {
		was, there := before[name]
		is, still := after[name]
		if there != still || !bytes.Equal(was, is) {
			names = append(names, name)
		}
	}
	return names
}

// proveBag: the payload has the same bytes under the same names, all that the bag says of its files
// is true, and a manifest covers each payload file.
func proveBag(before, after fileset) string {
	if len(changed(before.under("data/"), after.under("data/"))) > 0 {
		return ""
	}
	if err := claims(after); err != nil {
		return ""
	}
	kinds := map[string]bool{}
	for _, name := range changed(before, after) {
		kind := "another tag file"
		for _, k := range []string{"bagit.txt", "bag-info.txt", "manifest-", "tagmanifest-", "fetch.txt"} {
			if strings.HasPrefix(name, k) {
				kind = strings.TrimSuffix(k, "-")
			}
		}
		kinds[kind] = true
	}
	return "the payload is the same, and all that is said of it is true and covers it; other: " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
}

var declared = regexp.MustCompile(`(?is)^BagIt-Version:\s*(\d\.\d+)\s+Tag-File-Character-Encoding:[ \t]*(\S+)\s*`)

// claims reports whether everything that a bag says of its files is true.
func claims(f fileset) error {
	m := declared.FindStringSubmatch(string(f["bagit.txt"]))
	if m == nil {
		return errors.New("no declaration")
	}
	covered := map[string]int{}
	manifests := 0
	for _, name := range f.names() {
		if strings.Contains(name, "/") || !strings.HasSuffix(name, ".txt") {
			continue
		}
		algorithm, payload := strings.CutPrefix(name, "manifest-")
		if !payload {
			var tags bool
			if algorithm, tags = strings.CutPrefix(name, "tagmanifest-"); !tags {
				continue
			}
		}
		entries, err := entriesOf(f[name], m[2])
		if err != nil {
			return err
		}
		if payload {
			manifests++
		}
		for file, digest := range entries {
			data, there := findName(f, file)
			if !there {
				return fmt.Errorf("%s is not there", file)
			}
			if want := digestBy(strings.TrimSuffix(algorithm, ".txt"), f[data]); want == "" || !strings.EqualFold(want, digest) {
				return fmt.Errorf("the digest of %s is wrong", file)
			}
			if payload {
				covered[data]++
			}
		}
	}
	for name := range f.under("data/") {
		if n := covered[name]; n == 0 || n < manifests && m[1] >= "1.0" {
			return fmt.Errorf("%s is not covered", name)
		}
	}
	return oxum(f, m[2])
}

// oxum checks the bag's Payload-Oxum, if any.
func oxum(f fileset, encoding string) error {
	text, err := decoded(f["bag-info.txt"], encoding)
	if err != nil {
		return err
	}
	var total int
	for _, data := range f.under("data/") {
		total += len(data)
	}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		label, value, _ := strings.Cut(line, ":")
		if !isOxum.MatchString(strings.TrimSpace(value)) {
			continue // it says nothing that could be true or false; before 1.0 that is warned of
		}
		if strings.EqualFold(strings.TrimSpace(label), "Payload-Oxum") && strings.TrimSpace(value) != fmt.Sprintf("%d.%d", total, len(f.under("data/"))) {
			return errors.New("the count is wrong")
		}
	}
	return nil
}

var isOxum = regexp.MustCompile(`^\d+\.\d+$`)

// findName finds a file by its name in a manifest.
func findName(f fileset, written string) (string, bool) {
	unescaped := strings.NewReplacer("%0A", "\n", "%0a", "\n", "%0D", "\r", "%0d", "\r", "%25", "%").Replace(written)
	for _, name := range []string{written, unescaped, strings.TrimPrefix(written, "./")} {
		if _, ok := f[name]; ok {
			return name, true
		}
	}
	for _, name := range f.names() { // the case of letters may differ; then the digest, which is compared, tells that it is the file
		if strings.EqualFold(name, strings.TrimPrefix(written, "./")) {
			return name, true
		}
	}
	return "", false
}

// entriesOf reads a manifest as digests by name.
func entriesOf(data []byte, encoding string) (map[string]string, error) {
	text, err := decoded(data, encoding)
	if err != nil {
		return nil, err
	}
	entries := map[string]string{}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.TrimLeft(line, " \t") == "" {
			continue
		}
		digest, name, ok := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		name = strings.TrimPrefix(strings.TrimLeft(name, " "), "*")
		if _, err := hex.DecodeString(digest); !ok || err != nil {
			return nil, fmt.Errorf("line %q", line)
		}
		if other, twice := entries[name]; twice && !strings.EqualFold(other, digest) {
			return nil, fmt.Errorf("%s has two digests", name)
		}
		entries[name] = digest
	}
	return entries, nil
}

func decoded(data []byte, encoding string) (string, error) {
	switch strings.ToUpper(encoding) {
	case "UTF-8":
		return string(data), nil
	case "ISO-8859-1":
		runes := make([]rune, len(data))
		for i, c := range data {
			runes[i] = rune(c)
		}
		return string(runes), nil
	case "UTF-16":
		units := make([]uint16, len(data)/2)
		little := len(data) > 1 && data[0] == 0xff
		for i := range units {
			high, low := data[2*i], data[2*i+1]
			if little {
				high, low = low, high
			}
			units[i] = uint16(high)<<8 | uint16(low)
		}
		return strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff"), nil
	}
	return "", fmt.Errorf("unknown encoding %s", encoding)
}

func digestBy(algorithm string, data []byte) string {
	var h hash.Hash
	switch strings.ToLower(strings.ReplaceAll(algorithm, "-", "")) {
	case "md5":
		h = md5.New()
	case "sha1":
		h = sha1.New()
	case "sha224":
		h = sha256.New224()
	case "sha256":
		h = sha256.New()
	case "sha512":
		h = sha512.New()
	default:
		return ""
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// proveArchive: every reader of the archive gets the same files.
func proveArchive(before, after fileset) string {
	for name := range before {
		was, err := unpacked(name, before[name])
		is, err2 := unpacked(name, after[name])
		if err != nil || err2 != nil {
			return ""
		}
		if len(changed(was, is)) > 0 {
			return proveBag(was, is)
		}
	}
	return "the same files are unpacked from it; other: what nothing in the archive vouches for (times, rights, padding)"
}

func unpacked(name string, data []byte) (fileset, error) {
	files := fileset{}
	add := func(name string, in io.Reader) (err error) {
		if _, twice := files[name]; twice {
			return errors.New("twice")
		}
		files[strings.TrimPrefix(path.Clean(name), "bag/")], err = io.ReadAll(in)
		return err
	}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, err
		}
		for _, f := range z.File {
			in, err := f.Open()
			if err != nil {
				return nil, err
			}
			if err := errors.Join(add(f.Name, in), in.Close()); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for in := tar.NewReader(gz); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			return nil, errors.New("no file")
		}
		if err := add(h.Name, in); err != nil {
			return nil, err
		}
	}
}

// proveObject: the object differs only where the specification allows it: equivalent sidecars and
// inventories. Or a changed inventory agrees with all files: that is another valid object, which
// only the receipt can tell apart.
func proveObject(before, after fileset) string {
	return object(before, after, "another object, which agrees with itself: its receipt has another inventory")
}

// proveReceiptedObject is proveObject with the newest version's receipt, which must tell any other
// inventory apart.
func proveReceiptedObject(before, after fileset) string { return object(before, after, "") }

func object(before, after fileset, other string) string {
	reasons := map[string]bool{}
	for _, name := range changed(before, after) {
		was, there := before[name]
		is, still := after[name]
		switch base := path.Base(name); {
		case strings.HasPrefix(name, "logs/"):
			reasons["logs, which the specification leaves to others"] = true
		case !strings.Contains(strings.TrimPrefix(name, "v"), "/content/") && there && still && strings.HasPrefix(base, "inventory.json."):
			if !sameSidecar(string(was), string(is)) && !sidecarOf(after, name) {
				return ""
			}
			reasons["a sidecar that says the same"] = true
		case base == "inventory.json" && there && still && sameInventory(was, is):
			reasons["an inventory that says the same"] = true
		case base == "inventory.json" && there && still && other != "":
			reasons[other] = true
		case base == "inventory.json" && there && still && bytes.Equal(before["inventory.json"], after["inventory.json"]) && sameStates(was, is):
			reasons["what an older version's own inventory says of its versions besides their files: the receipt of that version has its digest"] = true
		default:
			return ""
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
}

// sidecarOf reports whether a sidecar matches its inventory.
func sidecarOf(f fileset, name string) bool {
	inventory, algorithm, _ := strings.Cut(name, ".json.")
	fields := strings.Fields(string(f[name]))
	return len(fields) == 2 && strings.EqualFold(fields[0], digestBy(algorithm, f[inventory+".json"])) && fields[1] == "inventory.json"
}

// sameSidecar reports whether two sidecars have the same digest. Case, space and line end may
// differ.
func sameSidecar(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return len(x) == 2 && len(y) == 2 && strings.EqualFold(x[0], y[0]) && x[1] == y[1] && !strings.ContainsAny(b, "\v\f\u0085\u00a0")
}

// sameInventory reports whether two inventories are equivalent. Order, space, the case of digests
// and time zones may differ.
func sameInventory(a, b []byte) bool {
	x, err := canonical(a)
	y, err2 := canonical(b)
	return err == nil && err2 == nil && x == y
}

func canonical(text []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	value, err := canonicalValue(d)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	out, err2 := json.Marshal(value)
	return string(out), errors.Join(err, err2)
}

// sameStates reports whether two inventories have the same files in the same versions.
func sameStates(a, b []byte) bool {
	type files struct {
		ID, Head, DigestAlgorithm string
		Manifest                  map[string][]string
		Versions                  map[string]struct{ State map[string][]string }
	}
	var x, y files
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

var isDigest = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)

func canonicalText(s string) string {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at.UTC().Format(time.RFC3339Nano)
	}
	if isDigest.MatchString(s) {
		return strings.ToLower(s)
	}
	return s
}

// canonicalValue parses a value. A repeated name is an error, because readers differ in which one
// they take.
func canonicalValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		out := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := canonicalText(key.(string))
			if _, twice := out[name]; twice {
				return nil, fmt.Errorf("%s twice", name)
			}
			if out[name], err = canonicalValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return out, err
	case json.Delim('['):
		out := []string{}
		for d.More() {
			value, err := canonicalValue(d)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			out = append(out, string(text))
		}
		slices.Sort(out)
		_, err := d.Token()
		return out, err
	}
	if s, ok := token.(string); ok {
		return canonicalText(s), nil
	}
	return token, nil
}

// proveBeside is the rule of receipts and of the files compared with them: every byte counts. Only
// files beside them do not.
func proveBeside(before, after fileset) string {
	if len(before.under("bag/system/")) > 0 && len(after.under("bag/system/")) == 0 && len(changed(before.without("bag/system/"), after)) == 0 {
		return "all of Holdfast's own files are left out, as an export does; the verdict says how many"
	}
	if slices.ContainsFunc(changed(before, after), func(name string) bool { return name == "receipt.jsonl" || strings.HasPrefix(name, "bag/") }) {
		return ""
	}
	return "a file beside the receipt, which nobody asked about"
}

// proveTags: a receipt does not cover a bag's tag files.
func proveTags(before, after fileset) string {
	if len(changed(before.under("bag/data/"), after.under("bag/data/"))) > 0 || !bytes.Equal(before["receipt.jsonl"], after["receipt.jsonl"]) {
		return ""
	}
	return "the bag's own tag files, which the receipt does not have"
}
