package ocfl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// scan reads an inventory of any size once, and keeps nothing but what it says as a whole. Its
// functions are called for each path of the manifest, and of the state of the newest version; nil
// skips them. They may come in any order.
//
// A scan checks what its readers need: the form, the version's number, and that each digest and
// path can be one. Whoever needs more compares the digest of the inventory with the one that was
// recorded when it was made, or reads it as a whole.
type scan struct {
	version  int    // whose inventory it should be
	key      string // of the inventory, for faults
	manifest func(digest, path string) error
	state    func(digest, path string) error
}

// scanned is what an inventory says as a whole.
type scanned struct {
	Object
	contentDirectory string
	contentDeclared  bool
	fixity, versions span // of these blocks
}

// span is the place of a block's members in the text.
type span struct{ begin, end int64 }

// read reads the inventory. It returns an *InventoryError if the text is not that of a version with
// this number. Another error is that of reading r, or of a function.
func (s scan) read(r io.Reader) (scanned, error) {
	text := &utf8Reader{r: r}
	d := &decoder{
		json: json.NewDecoder(&jsonGuard{r: text}), path: s.key, seen: make(map[string]bool),
		out: &decoded{inv: Inventory{ContentDirectory: defaultContent}, faults: newFaults()},
	}
	var out scanned
	err := s.members(d, &out)
	if err == nil {
		if _, err = d.json.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = fmt.Errorf("%w after the end", errSyntax)
		}
	}
	var failed *visitError
	switch {
	case text.err != nil:
		return out, text.err
	case errors.As(err, &failed):
		return out, failed.err
	case err != nil:
		d.fault("E033", "not a JSON document: %v", err)
	case text.invalid:
		d.fault("E033", "not encoded in UTF-8")
	default:
		s.check(d, &out)
	}
	if faults := onlyErrors(d.out.faults.Kept()); len(faults) > 0 {
		return out, &InventoryError{Key: s.key, Faults: faults}
	}
	return out, nil
}

// visitError is an error of a scan's function.
type visitError struct{ err error }

// Error returns the error's text.
func (e *visitError) Error() string { return e.err.Error() }

// members reads the root object.
func (s scan) members(d *decoder, out *scanned) error {
	isObject := true
	err := d.object(func(key string) error {
		if d.seen[key] {
			return fmt.Errorf("%w: the key %q occurs twice", errSyntax, key)
		}
		d.seen[key] = true
		if known, err := d.rootText(key); known {
			return err
		}
		switch key {
		case "manifest":
			_, err := d.block(func() error { return d.pairs(s.manifest) })
			return err
		case "versions":
			return s.versions(d, out)
		case "fixity":
			var err error
			out.fixity, err = d.block(func() error { return d.members(func(string) error { return d.skip() }) })
			return err
		}
		return fmt.Errorf("%w: the key %q", errSyntax, key)
	}, func() { isObject = false })
	if err == nil && !isObject {
		err = fmt.Errorf("%w: the root is not an object", errSyntax)
	}
	return err
}

// versions reads the blocks of all versions.
func (s scan) versions(d *decoder, out *scanned) error {
	end := int64(0)
	place, err := d.block(func() error {
		return d.members(func(name string) (err error) {
			defer func() { end = d.json.InputOffset() }()
			n, padding, ok := parseVersionName(name)
			if !ok || n > s.version || d.seen["versions/"+name] {
				return fmt.Errorf("%w: the version %q", errSyntax, name)
			}
			d.seen["versions/"+name] = true
			out.padding = padding
			d.out.names = append(d.out.names, name)
			if n != s.version || s.state == nil {
				return d.skip()
			}
			_, err = d.block(func() error {
				return d.members(func(key string) error {
					if key != "state" {
						return d.skip()
					}
					_, err := d.block(func() error { return d.pairs(s.state) })
					return err
				})
			})
			return err
		})
	})
	out.versions = span{place.begin, end}
	return err
}

// block reads an object by content, which begins after its opening brace and ends with its closing
// one. It returns the place between them.
func (d *decoder) block(content func() error) (place span, err error) {
	token, err := d.json.Token()
	if err == nil && token != json.Delim('{') {
		err = fmt.Errorf("%w: %v instead of an object", errSyntax, token)
	}
	if err != nil {
		return place, err
	}
	place.begin = d.json.InputOffset()
	err = content()
	place.end = d.json.InputOffset() - 1
	return place, err
}

// pairs calls found for each digest and path of a block, whose opening brace was read; nil skips
// them.
func (d *decoder) pairs(found func(digest, path string) error) error {
	return d.members(func(digest string) error {
		token, err := d.json.Token()
		if err == nil && token != json.Delim('[') {
			err = fmt.Errorf("%w: %v instead of the paths of %s", errSyntax, token, digest)
		}
		for err == nil && d.json.More() {
			if token, err = d.json.Token(); err != nil {
				return err
			}
			path, ok := token.(string)
			if !ok || path == "" || badElements(path) != "" || path[0] == '/' {
				return fmt.Errorf("%w: %v as a path of %s", errSyntax, token, digest)
			}
			if found == nil {
				continue
			}
			if err := found(digest, path); err != nil {
				return &visitError{err}
			}
		}
		if err != nil {
			return err
		}
		_, err = d.json.Token()
		return err
	})
}

// check checks what can be said at the end only, and completes out.
func (s scan) check(d *decoder, out *scanned) {
	for _, key := range []string{"id", "type", "digestAlgorithm", "head", "manifest", "versions"} {
		if !d.seen[key] {
			d.fault("E036", "key %s is missing", key)
		}
	}
	d.checkType()
	d.checkContentDirectory()
	inv := &d.out.inv
	if inv.ID == "" || !addresses(inv.Algorithm) {
		d.fault("E037", "id %q, digestAlgorithm %q", inv.ID, inv.Algorithm)
	}
	if want := versionName(s.version, out.padding); d.out.head != want || len(d.out.names) != s.version {
		d.fault("E040", "head is %q of %d versions, want %s", d.out.head, len(d.out.names), want)
	}
	out.ID, out.Spec, out.Algorithm, out.Head = inv.ID, inv.Spec, inv.Algorithm, s.version
	out.contentDirectory, out.contentDeclared = inv.ContentDirectory, inv.contentDeclared
}
