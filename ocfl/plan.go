package ocfl

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast/holdfast/storage"
)

// Change describes how a version differs from the one before.
type Change struct {
	// Files are added, or replace files with the same logical path. Their digests are of the
	// inventory's algorithm. The sequence is read once; NewVersion returns its error. It may be
	// nil.
	Files iter.Seq2[File, error]
	// Delete lists logical paths to remove. A missing path is an error. A path that Files also has
	// is replaced.
	Delete []string
	// Whole makes Files the complete state: all other files are removed.
	Whole bool

	Message string
	User    *User     // may be nil
	Created time.Time // set by the caller, so that planning again gives the same bytes; written in UTC
}

// Files returns a sequence of the files in a list, for Change.
func Files(list []File) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// maxContentPath leaves room in a storage key for the object's folder and the root's prefix.
const maxContentPath = storage.MaxKey - 320

// longFolder is the folder in a version's content for files whose logical path is too long for a
// key. They are named by their digests.
const longFolder = "__long-names"

// encodedFolder is the folder in a version's content for files whose logical path has characters
// that some storages cannot hold. They are stored under that path with these characters
// percent-encoded.
const encodedFolder = "__encoded-names"

// NewVersion plans the version after prev; for the first version pass New's result. It reads and
// writes nothing and does not change prev. The same arguments give the same inventory, byte for
// byte when encoded.
//
// It also returns the content files to be written, in the order of their logical paths. Content
// that any version of the object already has is not stored again.
//
// It returns a *PathError for a path that is refused, and ErrUnchanged if nothing would change.
func NewVersion(prev *Inventory, change Change) (*Inventory, []ContentFile, error) {
	p := &plan{prev: prev, change: change}
	if prev.padding > 0 && len(strconv.Itoa(prev.Head()+1)) >= prev.padding {
		return nil, nil, fmt.Errorf("ocfl: %s has no room for a version after %s", prev.ID, prev.VersionName(prev.Head()))
	}
	if change.Created.IsZero() {
		return nil, nil, errors.New("ocfl: the version has no time of creation")
	}
	for _, text := range p.texts() {
		if !utf8Text(text) {
			return nil, nil, &PathError{Path: text, Reason: "not UTF-8"}
		}
	}
	if err := p.collect(); err != nil {
		return nil, nil, fmt.Errorf("plan %s of %q: %w", prev.VersionName(prev.Head()+1), prev.ID, err)
	}
	return p.build()
}

// plan is a version being planned.
type plan struct {
	prev   *Inventory
	change Change
	added  []File      // sorted by path, unique
	state  []StateFile // the new state, sorted by path
}

// texts returns the texts that are written into the version block.
func (p *plan) texts() []string {
	texts := []string{p.change.Message}
	if u := p.change.User; u != nil {
		texts = append(texts, u.Name, u.Address)
	}
	return texts
}

// collect checks the change and computes the new state.
func (p *plan) collect() error {
	if err := p.readFiles(); err != nil {
		return err
	}
	var old []StateFile
	if !p.change.Whole {
		var err error
		if old, err = p.keep(); err != nil {
			return err
		}
	}
	p.state = mergeStates(old, p.added)
	if err := checkConflicts(p.state); err != nil {
		return err
	}
	if p.prev.Head() > 0 && sameState(p.prev.State(0), p.state) {
		return ErrUnchanged
	}
	return nil
}

// readFiles reads and checks Files.
func (p *plan) readFiles() error {
	if p.change.Files == nil {
		return nil
	}
	for f, err := range p.change.Files {
		if err != nil {
			return err
		}
		if err := checkLogicalPath(f.Path); err != nil {
			return err
		}
		if !isDigest(p.prev.Algorithm, f.Digest) {
			return fmt.Errorf("file %q: %q is not a %s digest", f.Path, f.Digest, p.prev.Algorithm)
		}
		for _, d := range f.Fixity {
			if !isDigest(d.Algorithm, d.Value) {
				return fmt.Errorf("file %q: %q is not a %s digest", f.Path, d.Value, d.Algorithm)
			}
		}
		f.Digest = strings.ToLower(f.Digest)
		p.added = append(p.added, f)
	}
	slices.SortFunc(p.added, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for i := 1; i < len(p.added); i++ {
		if p.added[i].Path == p.added[i-1].Path {
			return &PathError{Path: p.added[i].Path, Reason: "given twice"}
		}
	}
	return nil
}

// keep returns the state of the version before, without the deleted files.
func (p *plan) keep() ([]StateFile, error) {
	gone := make(map[string]bool, len(p.change.Delete))
	for _, path := range p.change.Delete {
		if _, ok := p.prev.Lookup(0, path); !ok {
			return nil, fmt.Errorf("delete: %w", &PathError{Path: path, Reason: "not in the object"})
		}
		gone[path] = true
	}
	var kept []StateFile
	for _, f := range p.prev.State(0) {
		if !gone[f.Path] {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// build makes the inventory and the list of content files.
func (p *plan) build() (*Inventory, []ContentFile, error) {
	prev := p.prev
	inv := &Inventory{
		ID: prev.ID, Spec: prev.Spec, Algorithm: prev.Algorithm, ContentDirectory: prev.ContentDirectory,
		padding: prev.padding, contentDeclared: prev.contentDeclared,
	}
	version := inv.VersionName(prev.Head() + 1)
	exact := make(map[string]int, len(prev.Manifest)) // lower-case digest -> index in manifest
	manifest := slices.Clone(prev.Manifest)
	for i, e := range manifest {
		exact[strings.ToLower(e.Digest)] = i
	}
	var files []ContentFile
	for i := range p.state {
		f := &p.state[i]
		place, known := exact[strings.ToLower(f.Digest)]
		if !known {
			place = len(manifest)
			exact[f.Digest] = place
			path := contentPath(version, inv.ContentDirectory, f.Path, f.Digest)
			manifest = append(manifest, Entry{Digest: f.Digest, Paths: []string{path}})
			files = append(files, ContentFile{Path: path, LogicalPath: f.Path, Digest: f.Digest, Size: p.size(f.Path)})
		}
		// The state's digests equal those of the manifest exactly (3.5.3.1), and share their
		// memory.
		f.Digest = manifest[place].Digest
	}
	var err error
	if inv.Fixity, err = newFixity(p.prev.Fixity, p.given(manifest, exact)); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(manifest, func(a, b Entry) int { return cmp.Compare(a.Digest, b.Digest) })
	inv.Manifest = manifest
	inv.Versions = append(slices.Clip(slices.Clone(prev.Versions)), Version{
		Created: p.change.Created.UTC(), Message: p.change.Message, hasMessage: true, User: p.change.User, State: p.state,
	})
	return inv, files, nil
}

// size returns the size of an added file.
func (p *plan) size(path string) int64 {
	i, _ := slices.BinarySearchFunc(p.added, path, func(f File, path string) int { return cmp.Compare(f.Path, path) })
	return p.added[i].Size
}

// given returns the fixity values of added files, for their content paths in the manifest.
func (p *plan) given(manifest []Entry, place map[string]int) []fixityValue {
	var values []fixityValue
	for _, f := range p.added {
		for _, d := range f.Fixity {
			path := manifest[place[strings.ToLower(f.Digest)]].Paths[0]
			values = append(values, fixityValue{algorithm: d.Algorithm, digest: strings.ToLower(d.Value), path: path})
		}
	}
	return values
}

// mergeStates returns old with the files of added, which take precedence. Both are sorted by path.
func mergeStates(old []StateFile, added []File) []StateFile {
	state := make([]StateFile, 0, len(old)+len(added))
	for len(old) > 0 || len(added) > 0 {
		switch {
		case len(added) == 0 || len(old) > 0 && old[0].Path < added[0].Path:
			state, old = append(state, old[0]), old[1:]
		case len(old) > 0 && old[0].Path == added[0].Path:
			old = old[1:]
		default:
			state, added = append(state, StateFile{Path: added[0].Path, Digest: added[0].Digest}), added[1:]
		}
	}
	return state
}

// sameState reports whether two states have the same files.
func sameState(a, b []StateFile) bool {
	return slices.EqualFunc(a, b, func(x, y StateFile) bool {
		return x.Path == y.Path && strings.EqualFold(x.Digest, y.Digest)
	})
}

// contentPath returns the path at which a file is stored. This is its logical path, with two
// exceptions. A path with control characters is percent-encoded, because S3 listings, and so other
// readers of the storage root, cannot hold them. A path that is not a valid storage key, or that
// begins with one of the special folders, is replaced by the digest.
func contentPath(version, folder, logical, digest string) string {
	content := version + "/" + folder + "/"
	path := content + logical
	if strings.ContainsFunc(logical, uncarried) {
		path = content + encodedFolder + "/" + encodePath(logical)
	}
	first, _, _ := strings.Cut(logical, "/")
	if len(path) > maxContentPath || first == longFolder || first == encodedFolder || storage.CheckKey(path) != nil {
		return content + longFolder + "/" + digest
	}
	return path
}

// uncarried reports whether some storages cannot hold a character in a name: control characters,
// DEL, and those that XML cannot express.
func uncarried(r rune) bool { return unicode.IsControl(r) || r == 0xfffe || r == 0xffff }

// encodePath percent-encodes uncarried characters and the percent sign, so that different paths
// stay different.
func encodePath(path string) string {
	var b strings.Builder
	for _, r := range path {
		if r != '%' && !uncarried(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
