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

// Change says how a version differs from the one before.
type Change struct {
	// Files are added, or replace the files with the same logical path. Their digests are of the
	// inventory's algorithm. They are read once; an error in the sequence is NewVersion's error.
	// nil means none.
	Files iter.Seq2[File, error]
	// Delete names logical paths that go. One that is not there is an error, one that Files adds
	// again is replaced.
	Delete []string
	// Whole makes Files the whole state: what they do not name goes.
	Whole bool
	// AllowUnchanged permits a version with the same state as the one before.
	AllowUnchanged bool

	Message string
	User    *User     // nil leaves it out
	Created time.Time // given by the caller, so that planning again gives the same bytes; written in UTC
}

// Files makes a sequence of a list, for Change.
func Files(list []File) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// maxContentPath leaves room, in a key of the storage, for the object's own folder and the root's
// prefix.
const maxContentPath = storage.MaxKey - 320

// longFolder holds, in a version's content, the files whose logical path is too long for a key,
// under their digests.
const longFolder = "__long-names"

// encodedFolder holds, in a version's content, the files whose logical path has characters that not
// every storage can carry in a name, under that path with these percent-encoded.
const encodedFolder = "__encoded-names"

// NewVersion plans the version after prev (New's result for the first one). It reads and writes
// nothing, prev stays as it is, and the same arguments give the same inventory, byte for byte when
// encoded. It also returns the content files that must be written, in the order of their logical
// paths: content that the object has already, in any version, is not stored again.
//
// A *PathError says which path is refused; ErrUnchanged, that nothing would change.
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

// plan is a version in the making.
type plan struct {
	prev   *Inventory
	change Change
	added  []File      // sorted by path, unique
	state  []StateFile // the new state, sorted by path
}

// texts returns what goes into the version block as it is.
func (p *plan) texts() []string {
	texts := []string{p.change.Message}
	if u := p.change.User; u != nil {
		texts = append(texts, u.Name, u.Address)
	}
	return texts
}

// collect checks the change and makes the new state.
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
	if !p.change.AllowUnchanged && p.prev.Head() > 0 && sameState(p.prev.State(0), p.state) {
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
			return fmt.Errorf("file %q: %q is no %s digest", f.Path, f.Digest, p.prev.Algorithm)
		}
		for _, d := range f.Fixity {
			if !isDigest(d.Algorithm, d.Value) {
				return fmt.Errorf("file %q: %q is no %s digest", f.Path, d.Value, d.Algorithm)
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

// keep returns the state of the version before without what is deleted.
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
	exact := make(map[string]int, len(prev.Manifest)) // lower-case digest -> place in manifest
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
		// The state's digests are exactly those of the manifest (3.5.3.1), and share their memory.
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

// given returns the fixity values of added files, for the content that the manifest has for them.
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

// mergeStates returns old with the files of added, which win; both are sorted by path.
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

// sameState says whether two states have the same files.
func sameState(a, b []StateFile) bool {
	return slices.EqualFunc(a, b, func(x, y StateFile) bool {
		return x.Path == y.Path && strings.EqualFold(x.Digest, y.Digest)
	})
}

// contentPath is where a file is stored: under its logical path; with control characters encoded
// where it has any, since S3's listings, and so other programs that read the storage root, cannot
// carry them; or under its digest when that is no storage key, or could be mistaken for such a
// place.
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

// uncarried says that not every storage carries a character in a name: control characters, DEL, and
// what XML cannot express.
func uncarried(r rune) bool { return unicode.IsControl(r) || r == 0xfffe || r == 0xffff }

// encodePath percent-encodes what is uncarried, and the percent sign, so that two paths never
// become one.
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
