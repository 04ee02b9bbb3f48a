package ocfl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/faults"
)

// decoded is an inventory as it was read, with its faults. Parts that could not be parsed are
// missing.
type decoded struct {
	inv    Inventory
	head   string // as written
	typeID string // as written
	names  []string
	faults *faults.List[Fault]

	held int64 // bytes in memory, estimated

	fixityIsNoObject bool
	hasFixity        bool
}

// decoder reads an inventory token by token. So its text is never in memory as a whole, and equal
// strings are kept only once.
type decoder struct {
	json  *json.Decoder
	path  string // of the inventory, for faults
	out   *decoded
	seen  map[string]bool // keys of the root object
	known interner
	slots int64 // bytes held beside the strings of known
	limit int64 // of all bytes held; 0 for no limit
}

// decodeInventory reads an inventory. Faults of the text go into the result. An error comes from
// reading r.
func decodeInventory(r io.Reader, path string) (*decoded, error) {
	return decodeLike(r, path, nil, 0)
}

// decodeLike is decodeInventory for an object of which another inventory, like, is known; like may
// be nil. It returns errLarge if it would hold more than limit bytes; 0 means no limit.
func decodeLike(r io.Reader, path string, like *shared, limit int64) (*decoded, error) {
	text := &utf8Reader{r: r}
	d := &decoder{
		json: json.NewDecoder(&jsonGuard{r: text}), path: path, seen: make(map[string]bool),
		out:   &decoded{inv: Inventory{ContentDirectory: defaultContent}, faults: newFaults()},
		known: interner{like: like, own: make(map[string]string)}, limit: limit,
	}
	d.json.UseNumber()
	err := d.inventory()
	var tail json.Token
	if err == nil {
		if tail, err = d.json.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = fmt.Errorf("%w: %v after the end", errSyntax, tail)
		}
	}
	d.out.held = d.held()
	d.known = interner{}
	switch {
	case errors.Is(err, errLarge):
		return nil, err
	case text.err != nil:
		return nil, text.err
	case err != nil:
		d.fault("E033", "not a JSON document: %v", err)
		return d.out, nil // further faults would only be consequences
	case text.invalid:
		d.fault("E033", "not encoded in UTF-8")
	}
	d.check()
	return d.out, nil
}

// errSyntax is returned for JSON that cannot be parsed as an inventory.
var errSyntax = errors.New("unexpected value")

func (d *decoder) fault(code, format string, args ...any) {
	d.out.faults.Add(Fault{Code: code, Path: d.path, Message: faults.Cut(fmt.Sprintf(format, args...))})
}

// inventory reads the root object.
func (d *decoder) inventory() error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return fmt.Errorf("%w: the root is not an object", errSyntax)
	}
	return d.members(func(key string) error {
		if d.seen[key] {
			d.fault("E033", "key %q occurs twice", key)
		}
		if len(d.seen) < faults.Most { // an inventory has eight
			d.seen[key] = true
		}
		if known, err := d.rootText(key); known {
			return err
		}
		switch key {
		case "manifest":
			return d.manifest()
		case "versions":
			return d.versions()
		case "fixity":
			return d.fixity()
		}
		d.fault("E102", "unknown key %q", key)
		if strings.EqualFold(key, "fixity") {
			d.fault("E055", "the block %q must be named fixity", key)
		}
		return d.skip()
	})
}

// rootText reads the value of a key of the root object that should be a text. known is false, and
// nothing is read, for any other key.
func (d *decoder) rootText(key string) (known bool, err error) {
	inv := &d.out.inv
	switch key {
	case "id":
		return true, d.stringInto(&inv.ID, "E037", key)
	case "type":
		return true, d.stringInto(&d.out.typeID, "E038", key)
	case "digestAlgorithm":
		return true, d.stringInto(&inv.Algorithm, "E025", key)
	case "head":
		return true, d.stringInto(&d.out.head, "E040", key)
	case "contentDirectory":
		inv.contentDeclared = true
		return true, d.stringInto(&inv.ContentDirectory, "E017", key)
	}
	return false, nil
}

// members reads the rest of an object after its opening brace.
func (d *decoder) members(member func(key string) error) error {
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return fmt.Errorf("%w: %v as a key", errSyntax, token)
		}
		if err := member(key); err != nil {
			return err
		}
	}
	_, err := d.json.Token()
	return err
}

// object reads a value that should be an object. It skips any other value and calls other.
func (d *decoder) object(member func(key string) error, other func()) error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	if token == json.Delim('{') {
		return d.members(member)
	}
	other()
	return d.rest(token)
}

// stringInto reads a value that should be a string.
func (d *decoder) stringInto(into *string, code, what string) error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	s, ok := token.(string)
	if !ok {
		d.fault(code, "%s is not a string", what)
		return d.rest(token)
	}
	*into = s
	return d.hold(len(s))
}

// skip reads a value of any kind.
func (d *decoder) skip() error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	return d.rest(token)
}

// rest reads to the end of the value that begins with token.
func (d *decoder) rest(token json.Token) error {
	depth := 0
	for {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		if token, err = d.json.Token(); err != nil {
			return err
		}
	}
}

// codes are the fault codes of a block of digests, which depend on its place.
type codes struct {
	block    string // its name in messages
	notArray string
	repeated string
}

// digests reads an object of digests with arrays of paths, after its opening brace. It calls found
// for each digest.
func (d *decoder) digests(c codes, path func(string) string, found func(digest string, paths []string)) error {
	var keys []string
	transient := 0
	err := d.members(func(digest string) error {
		keys = append(keys, strings.ToLower(digest))
		transient += len(digest)
		if err := d.hold(len(digest) + perDigest); err != nil {
			return err
		}
		token, err := d.json.Token()
		if err != nil {
			return err
		}
		if token != json.Delim('[') {
			d.fault(c.notArray, "%s of %s is not an array", c.block, digest)
			return d.rest(token)
		}
		var paths []string
		for d.json.More() {
			if token, err = d.json.Token(); err != nil {
				return err
			}
			text, ok := token.(string)
			if !ok {
				d.fault(c.notArray, "%s of %s has an element that is not a string", c.block, digest)
				if err := d.rest(token); err != nil {
					return err
				}
				continue
			}
			paths = append(paths, path(text))
			if err := d.hold(perPath); err != nil {
				return err
			}
		}
		if _, err := d.json.Token(); err != nil {
			return err
		}
		found(digest, slices.Clip(paths))
		return nil
	})
	d.slots -= int64(transient)
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			d.fault(c.repeated, "%s has the digest %s twice", c.block, keys[i])
		}
	}
	return err
}

// entries reads a manifest, or the fixity block of one algorithm.
func (d *decoder) entries(c codes, digest func(string) string, other func()) ([]Entry, error) {
	token, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	if token != json.Delim('{') {
		other()
		return nil, d.rest(token)
	}
	entries := []Entry{}
	err = d.digests(c, d.known.contentPath, func(key string, paths []string) {
		slices.Sort(paths)
		entries = append(entries, Entry{Digest: digest(key), Paths: paths})
	})
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Digest, b.Digest) })
	return entries, err
}

func (d *decoder) manifest() (err error) {
	d.out.inv.Manifest, err = d.entries(codes{block: "manifest", notArray: "E092", repeated: "E096"}, d.known.digest, func() {
		d.fault("E106", "manifest is not an object")
		d.fault("E041", "manifest is not an object")
	})
	return err
}

func (d *decoder) fixity() error {
	d.out.hasFixity = true
	d.out.inv.Fixity = make(map[string][]Entry)
	return d.object(func(algorithm string) error {
		if err := d.hold(len(algorithm) + perVersion); err != nil {
			return err
		}
		digest := func(s string) string { return d.known.fixityDigest(algorithm, s) }
		entries, err := d.entries(codes{block: "fixity " + algorithm, notArray: "E057", repeated: "E097"}, digest, func() {
			d.fault("E057", "fixity of %s is not an object", algorithm)
		})
		d.out.inv.Fixity[algorithm] = entries
		return err
	}, func() { d.out.fixityIsNoObject = true })
}
