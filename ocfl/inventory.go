package ocfl

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Inventory is the content of an inventory.json: all versions of an object up to the head. It is
// immutable; NewVersion makes a new one. Its memory is about the size of its paths plus one copy of
// each digest.
type Inventory struct {
	ID               string
	Spec             string // version of the specification, such as "1.1"
	Algorithm        string // of the digests in Manifest and State
	ContentDirectory string // "content" unless the object declares another
	Versions         []Version

	Manifest []Entry            // sorted by Digest
	Fixity   map[string][]Entry // by algorithm, sorted by Digest

	padding         int  // digits of a zero-padded version number, 0 without padding
	contentDeclared bool // the key contentDirectory is present
}

// Entry is a digest and the content paths (below the object's root, sorted) that have it.
type Entry struct {
	Digest string // hex, as written in the inventory
	Paths  []string
}

// Version is one version of an object.
type Version struct {
	Created time.Time
	Message string
	User    *User       // nil if not given
	State   []StateFile // sorted by Path

	createdText string // the text as read, to be written unchanged
	hasMessage  bool
}

// User is the person or program that made a version.
type User struct {
	Name    string
	Address string // a URI (mailto:, ORCID), or empty
}

// StateFile is a file in the logical state of a version.
type StateFile struct {
	Path   string // logical path
	Digest string // hex, as in the manifest
}

// File is a file of a planned version.
type File struct {
	Path   string // logical path
	Digest string // hex, of the inventory's algorithm
	Extra  []byte // of the caller; [Plan.Added] returns it
}

// New returns the inventory of an object without versions, as the base of NewVersion. The algorithm
// is SHA512 or SHA256.
func New(id, algorithm string) (*Inventory, error) {
	switch {
	case id == "":
		return nil, &PathError{Path: id, Reason: "the object's identifier is empty"}
	case !utf8Text(id):
		return nil, &PathError{Path: id, Reason: "the object's identifier is not UTF-8"}
	case !addresses(algorithm):
		return nil, fmt.Errorf("ocfl: digest algorithm %q: want sha512 or sha256", algorithm)
	}
	return &Inventory{ID: id, Spec: Spec11, Algorithm: algorithm, ContentDirectory: defaultContent}, nil
}

// Head returns the number of the newest version, or 0.
func (inv *Inventory) Head() int { return len(inv.Versions) }

// object describes the object at its head.
func (inv *Inventory) object() Object {
	return Object{ID: inv.ID, Spec: inv.Spec, Algorithm: inv.Algorithm, Head: inv.Head(), padding: inv.padding}
}

// VersionName returns the name of the folder of version n, such as "v3".
func (inv *Inventory) VersionName(n int) string { return versionName(n, inv.padding) }

// State returns the files of version n (0 for the head), sorted by path, or nil if there is no such
// version.
func (inv *Inventory) State(n int) []StateFile {
	if n == 0 {
		n = inv.Head()
	}
	if n < 1 || n > len(inv.Versions) {
		return nil
	}
	return inv.Versions[n-1].State
}

// Lookup returns the file with this logical path in version n (0 for the head).
func (inv *Inventory) Lookup(n int, path string) (StateFile, bool) {
	return lookup(inv.State(n), path)
}

// lookup finds a path in a sorted state.
func lookup(state []StateFile, path string) (StateFile, bool) {
	i, ok := slices.BinarySearchFunc(state, path, func(f StateFile, p string) int { return cmp.Compare(f.Path, p) })
	if !ok {
		return StateFile{}, false
	}
	return state[i], true
}

// ContentPaths returns the paths, below the object's root, of the files with this digest.
func (inv *Inventory) ContentPaths(digest string) []string {
	if i, ok := inv.find(digest); ok {
		return inv.Manifest[i].Paths
	}
	return nil
}

// find returns the index of a digest in the manifest. It also finds a digest in another case, if
// the manifest is consistently in one case.
func (inv *Inventory) find(digest string) (int, bool) {
	for _, form := range []string{digest, strings.ToLower(digest), strings.ToUpper(digest)} {
		if i, ok := findEntry(inv.Manifest, form); ok {
			return i, true
		}
	}
	return 0, false
}

// findEntry returns the index of exactly this digest.
func findEntry(entries []Entry, digest string) (int, bool) {
	return sort.Find(len(entries), func(i int) int { return cmp.Compare(digest, entries[i].Digest) })
}

// ContentFile is a file that a version adds to the object's storage.
type ContentFile struct {
	Path   string // below the object's root, such as v1/content/a.txt
	Digest string // hex
}

// ContentFiles returns the files that the newest version adds, in the order of their paths.
func (inv *Inventory) ContentFiles() []ContentFile {
	prefix := inv.VersionName(inv.Head()) + "/"
	var files []ContentFile
	for _, e := range inv.Manifest {
		for _, path := range e.Paths {
			if strings.HasPrefix(path, prefix) {
				files = append(files, ContentFile{Path: path, Digest: e.Digest})
			}
		}
	}
	slices.SortFunc(files, func(a, b ContentFile) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// declaration returns the conformance declaration of objects by a version of the specification.
func declaration(spec string) (name string, content []byte) {
	return objectPrefix + spec, []byte("ocfl_object_" + spec + "\n")
}

// versionName returns the name of version n, zero-padded to this many digits; 0 means no padding.
func versionName(n, padding int) string {
	if padding == 0 {
		return "v" + strconv.Itoa(n)
	}
	return fmt.Sprintf("v%0*d", padding, n)
}

// versionNameCode returns the code for an invalid version name: without v, or without a positive
// number.
func versionNameCode(name string) string {
	if strings.HasPrefix(name, "v") {
		return "E105"
	}
	return "E104"
}

// parseVersionName returns the number in a version's name and the digits that it is padded to, 0
// for none. A padded number begins with a zero (3.3).
func parseVersionName(name string) (n, padding int, ok bool) {
	digits, found := strings.CutPrefix(name, "v")
	if !found || digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 18 {
		return 0, 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n == 0 {
		return 0, 0, false
	}
	if digits[0] == '0' {
		padding = len(digits)
	}
	return n, padding, true
}
