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
// immutable; NewVersion makes a new one. Its size in memory is about that of the paths and, once,
// the digests in it.
type Inventory struct {
	ID               string
	Spec             string // version of the specification, such as "1.1"
	Algorithm        string // of the digests in Manifest and State
	ContentDirectory string // "content" unless the object says otherwise
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
	User    *User       // nil when not given
	State   []StateFile // sorted by Path

	createdText string // as it was read, so that it is written again without a change
	hasMessage  bool
}

// User says who made a version.
type User struct {
	Name    string
	Address string // a URI (mailto:, ORCID), or empty
}

// StateFile is a file in the logical state of a version.
type StateFile struct {
	Path   string // logical path
	Digest string // hex, as the manifest has it
}

// File is a file that a version is to have.
type File struct {
	Path   string // logical path
	Digest string // hex, of the inventory's algorithm
	Size   int64  // bytes
	Fixity []Digest
}

// Digest is a value of one more algorithm, for the fixity block.
type Digest struct {
	Algorithm string
	Value     string // hex
}

// New returns the inventory of an object that has no version yet, as the base of NewVersion. The
// algorithm is SHA512 (empty means that, too) or SHA256.
func New(id, algorithm string) (*Inventory, error) {
	if algorithm == "" {
		algorithm = SHA512
	}
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

// Head returns the number of the newest version, 0 when there is none.
func (inv *Inventory) Head() int { return len(inv.Versions) }

// VersionName returns the name of the folder of version n, such as "v3".
func (inv *Inventory) VersionName(n int) string { return versionName(n, inv.padding) }

// State returns the files of version n (0 for the head), sorted by path, or nil when there is no
// such version.
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

// ContentPaths returns where, below the object's root, files with this digest are; empty when there
// are none.
func (inv *Inventory) ContentPaths(digest string) []string {
	if i, ok := inv.find(digest); ok {
		return inv.Manifest[i].Paths
	}
	return nil
}

// find returns the place of a digest in the manifest. A digest in another case is found in a
// manifest that is written in one case throughout.
func (inv *Inventory) find(digest string) (int, bool) {
	for _, form := range []string{digest, strings.ToLower(digest), strings.ToUpper(digest)} {
		if i, ok := findEntry(inv.Manifest, form); ok {
			return i, true
		}
	}
	return 0, false
}

// findEntry returns the place of the exact digest.
func findEntry(entries []Entry, digest string) (int, bool) {
	return sort.Find(len(entries), func(i int) int { return cmp.Compare(digest, entries[i].Digest) })
}

// ContentFile is a file that a version adds to the object's storage.
type ContentFile struct {
	Path        string // below the object's root, such as v1/content/a.txt
	LogicalPath string // one of the logical paths that have this content, the first in order
	Digest      string // hex
	Size        int64  // bytes, or -1 when not known
}

// ContentFiles returns the files that the newest version adds, in the order of their logical paths.
// Sizes are not known.
func (inv *Inventory) ContentFiles() []ContentFile {
	prefix := inv.VersionName(inv.Head()) + "/"
	seen := make(map[string]bool)
	var files []ContentFile
	for _, f := range inv.State(0) {
		if seen[f.Digest] {
			continue
		}
		seen[f.Digest] = true
		for _, path := range inv.ContentPaths(f.Digest) {
			if strings.HasPrefix(path, prefix) {
				files = append(files, ContentFile{Path: path, LogicalPath: f.Path, Digest: f.Digest, Size: -1})
			}
		}
	}
	return files
}

// declaration returns the name and content of the object's conformance declaration.
func (inv *Inventory) declaration() (name string, content []byte) { return declaration(inv.Spec) }

// declaration is that of objects by a version of the specification.
func declaration(spec string) (name string, content []byte) {
	return objectPrefix + spec, []byte("ocfl_object_" + spec + "\n")
}

// versionName is the name of version n with a zero-padded number of this many digits, or without
// padding for 0.
func versionName(n, padding int) string {
	if padding == 0 {
		return "v" + strconv.Itoa(n)
	}
	return fmt.Sprintf("v%0*d", padding, n)
}

// versionNameCode is the code for what is no name of a version: it lacks the v, or what follows is
// no number from 1 on.
func versionNameCode(name string) string {
	if strings.HasPrefix(name, "v") {
		return "E105"
	}
	return "E104"
}

// parseVersionName returns the number in a version's name and how many digits it is padded to (0
// for none). The first digit of a padded number is a zero (3.3).
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
