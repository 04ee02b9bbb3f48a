package ocfl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast/holdfast/spill"
	"github.com/holdfast/holdfast/storage"
)

// Change describes how a version differs from the one before.
type Change struct {
	// Files are added, or replace files with the same logical path. Their digests are of the
	// inventory's algorithm. The sequence is read once, and its error returned. It may be nil.
	Files iter.Seq2[File, error]
	// Delete lists logical paths to remove. A missing path is an error. A path that Files also has
	// is replaced.
	Delete []string
	// Drop reports whether to remove a file of the version before. It may be nil.
	Drop func(path string) bool
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

// Prior is the version before a planned one, of an object of any number of files. Its inventory is
// read where it is stored.
type Prior struct {
	object Object // its head is the version; 0: there is none yet
	digest string // of the inventory, lower-case hex
	key    string // of the inventory, for errors
	open   func(ctx context.Context) (io.ReadCloser, error)
}

// NoPrior stands for the version before the first one of an object. The algorithm is SHA512 or
// SHA256, spec the version of the specification that the object declares.
func NoPrior(id, algorithm, spec string) (Prior, error) {
	inv, err := New(id, algorithm)
	if err != nil {
		return Prior{}, err
	}
	return Prior{object: Object{ID: inv.ID, Spec: spec, Algorithm: inv.Algorithm}}, nil
}

// Prior returns version n of the object id (0 for the head), as the base of a plan. It returns
// ErrNotFound if there is no such object or version.
func (r *Root) Prior(ctx context.Context, id string, n int) (Prior, error) {
	object, err := r.Head(ctx, id)
	if err != nil {
		return Prior{}, err
	}
	if n == 0 {
		n = object.Head
	}
	if n < 1 || n > object.Head {
		return Prior{}, fmt.Errorf("%w: %q has no version %d", ErrNotFound, id, n)
	}
	folder := object.Key + "/" + versionName(n, object.padding)
	if _, err := r.store.Stat(ctx, folder+"/"+inventoryName); errors.Is(err, storage.ErrNotFound) && n == object.Head {
		folder = object.Key // the same inventory
	} else if err != nil {
		return Prior{}, wrapNotFound(err)
	}
	p := Prior{object: object, key: folder + "/" + inventoryName}
	p.object.Head = n
	if p.digest, p.object.Algorithm, err = r.sealOf(ctx, folder); err != nil {
		return Prior{}, err
	}
	p.open = func(ctx context.Context) (io.ReadCloser, error) { return r.store.Open(ctx, p.key, 0, -1) }
	return p, nil
}

// Algorithm returns the digest algorithm of the object's inventories.
func (p Prior) Algorithm() string { return p.object.Algorithm }

// scan scans the inventory, which must have its digest and be the object's.
func (p Prior) scan(ctx context.Context, s scan) (scanned, error) {
	if p.object.Head == 0 {
		return scanned{Object: p.object, contentDirectory: defaultContent}, nil
	}
	s.version, s.key = p.object.Head, p.key
	out, err := scanProven(ctx, p.open, s, p.object.Algorithm, p.digest)
	var wrong *DigestError
	if errors.As(err, &wrong) {
		wrong.Existing = true
	}
	if err == nil && (out.ID != p.object.ID || out.Algorithm != p.object.Algorithm) {
		err = fmt.Errorf("%q: inventory is that of %q by %s", p.key, out.ID, out.Algorithm)
	}
	return out, err
}

// copyPart writes a part of the inventory to w. It returns a *DigestError if the inventory changed.
func (p Prior) copyPart(ctx context.Context, w io.Writer, part span) error {
	h := newHash(p.object.Algorithm)
	in, err := p.open(ctx)
	if err != nil {
		return wrapNotFound(err)
	}
	defer in.Close()
	text := io.TeeReader(storage.Interruptible(ctx, in), h)
	_, err = io.CopyN(io.Discard, text, part.begin)
	if err == nil {
		_, err = io.CopyN(w, text, part.end-part.begin)
	}
	if _, rest := io.Copy(io.Discard, text); rest != nil || err != nil {
		return fmt.Errorf("read %q: %w", p.key, errors.Join(err, rest))
	}
	if got := hexSum(h); got != p.digest {
		return &DigestError{Key: p.key, Algorithm: p.object.Algorithm, Want: p.digest, Got: got, Existing: true}
	}
	return nil
}

// Plan is a version of any number of files that is planned. It keeps them in a Space, and may be
// used until that is closed. It is not safe for concurrent use.
type Plan struct {
	prior   Prior
	before  scanned
	change  Change
	space   *spill.Space
	version string // name of the planned version
	digits  int    // hex digits of a digest

	manifest *spill.Sorter // of the version before: lower-case digest and content path -> digest
	state    *spill.Sorter // of the version: digest and path -> 1 and Extra of an added file, 0 of another
	added    *spill.Sorter // path -> whether its content is new, content path and Extra
	files    int           // in the state
}

// NewPlan plans the version after prior. It does not change anything. The same arguments give the
// same inventory, byte for byte when encoded. Content that any version of the object already has is
// not stored again.
//
// It returns a *PathError for a path that is refused, and ErrUnchanged if nothing would change.
func NewPlan(ctx context.Context, prior Prior, change Change, space *spill.Space) (*Plan, error) {
	n := prior.object.Head + 1
	padding := prior.object.padding
	if padding > 0 && len(strconv.Itoa(n)) >= padding {
		return nil, fmt.Errorf("ocfl: %s has no room for a version after %s", prior.object.ID, versionName(n-1, padding))
	}
	if change.Created.IsZero() {
		return nil, errors.New("ocfl: the version has no time of creation")
	}
	p := &Plan{prior: prior, change: change, space: space, version: versionName(n, padding), digits: 2 * newHash(prior.object.Algorithm).Size()}
	for _, text := range p.texts() {
		if !utf8Text(text) {
			return nil, &PathError{Path: text, Reason: "not UTF-8"}
		}
	}
	if err := p.make(ctx); err != nil {
		return nil, fmt.Errorf("plan %s of %q: %w", p.version, prior.object.ID, err)
	}
	return p, nil
}

// texts returns the texts that are written into the version block.
func (p *Plan) texts() []string {
	texts := []string{p.change.Message}
	if u := p.change.User; u != nil {
		texts = append(texts, u.Name, u.Address)
	}
	return texts
}

// make checks the change and computes the new version.
func (p *Plan) make(ctx context.Context) error {
	added, old := p.space.NewSorter(comparePaths[[]byte]), p.space.NewSorter(comparePaths[[]byte])
	if err := p.readFiles(added); err != nil {
		return err
	}
	p.manifest = p.space.NewSorter(nil)
	keep := func(s *spill.Sorter, key, value string) error {
		if !s.Add([]byte(key), []byte(value)) {
			return p.space.Err()
		}
		return nil
	}
	checked := func(found func(digest, path string) error) func(digest, path string) error {
		return func(digest, path string) error {
			if len(digest) != p.digits {
				return fmt.Errorf("%q has the digest %q", p.prior.key, digest)
			}
			return found(digest, path)
		}
	}
	var err error
	p.before, err = p.prior.scan(ctx, scan{
		manifest: checked(func(digest, path string) error { return keep(p.manifest, strings.ToLower(digest)+path, digest) }),
		state:    checked(func(digest, path string) error { return keep(old, path, strings.ToLower(digest)) }),
	})
	if err != nil {
		return err
	}
	if err := p.merge(old, added); err != nil {
		return err
	}
	return p.place()
}

// readFiles reads and checks Files.
func (p *Plan) readFiles(added *spill.Sorter) error {
	if p.change.Files == nil {
		return nil
	}
	var value []byte
	for f, err := range p.change.Files {
		if err != nil {
			return err
		}
		if err := checkLogicalPath(f.Path); err != nil {
			return err
		}
		if !isDigest(p.prior.object.Algorithm, f.Digest) {
			return fmt.Errorf("file %q: %q is not a %s digest", f.Path, f.Digest, p.prior.object.Algorithm)
		}
		value = append(append(value[:0], strings.ToLower(f.Digest)...), f.Extra...)
		if !added.Add([]byte(f.Path), value) {
			return p.space.Err()
		}
	}
	return nil
}

// merge computes the state of the version from that of the version before and the added files. Both
// come in an order in which a path is directly followed by everything below it.
func (p *Plan) merge(old, added *spill.Sorter) error {
	p.state = p.space.NewSorter(nil)
	was, is := pull(old), pull(added)
	defer was.stop()
	defer is.stop()
	missing := make(map[string]bool, len(p.change.Delete))
	for _, path := range p.change.Delete {
		missing[path] = !p.change.Whole
	}
	changed := p.prior.object.Head == 0
	last := ""
	for was.more || is.more {
		order := -1 // of the next old file beside the next added one
		switch {
		case !was.more:
			order = 1
		case is.more:
			order = comparePaths(was.key, is.key)
		}
		if order <= 0 {
			path := string(was.key)
			_, deleted := missing[path]
			missing[path] = false
			gone := p.change.Whole || deleted || p.change.Drop != nil && p.change.Drop(path)
			if order == 0 {
				changed = changed || !bytes.Equal(was.value, is.value[:p.digits])
			} else if changed = changed || gone; !gone {
				if err := p.keep(&last, path, was.value, []byte{0}); err != nil {
					return err
				}
			}
			was.step()
		}
		if order >= 0 {
			changed = changed || order > 0
			if err := p.keep(&last, string(is.key), is.value[:p.digits], append([]byte{1}, is.value[p.digits:]...)); err != nil {
				return err
			}
			is.step()
		}
	}
	for _, path := range p.change.Delete {
		if missing[path] {
			return fmt.Errorf("delete: %w", &PathError{Path: path, Reason: "not in the object"})
		}
	}
	if err := p.space.Err(); err != nil {
		return err
	}
	if !changed {
		return ErrUnchanged
	}
	return nil
}

// keep adds a file to the state, unless its path is that of the last one, or below it.
func (p *Plan) keep(last *string, path string, digest, value []byte) error {
	switch {
	case p.files > 0 && path == *last:
		return &PathError{Path: path, Reason: "given twice"}
	case p.files > 0 && strings.HasPrefix(path, *last) && path[len(*last)] == '/':
		return &PathError{Path: path, Reason: "conflicts with the file " + *last}
	}
	*last = path
	p.files++
	if !p.state.Add(append(digest[:p.digits:p.digits], path...), value) {
		return p.space.Err()
	}
	return nil
}

// place finds where the content of the added files is.
func (p *Plan) place() error {
	p.added = p.space.NewSorter(nil)
	content, isNew, stored := "", byte(0), true
	var value []byte
	var lacks error
	err := p.walk(func(_ string, paths []string, added bool) {
		content, isNew, stored = paths[0], 0, !added
		if added {
			isNew = 1
		}
	}, func(_, path string, mark []byte) bool {
		if mark[0] == 0 {
			if !stored {
				lacks = &InventoryError{Key: p.prior.key, Faults: []Fault{faultOf("E050", p.prior.key, "the content of %q is not in the manifest", path)}}
			}
			return lacks == nil
		}
		value = append(value[:0], isNew)
		value = binary.AppendUvarint(value, uint64(len(content)))
		value = append(append(value, content...), mark[1:]...)
		isNew = 0 // others have the same bytes
		return p.added.Add([]byte(path), value)
	})
	return cmp.Or(lacks, err)
}

// walk calls entry for each digest of the manifest, and then file for each file of the state that
// has it. Both are in order. added says that the version adds the content. file returns false if
// the Space has failed.
func (p *Plan) walk(entry func(digest string, paths []string, added bool), file func(digest, path string, mark []byte) bool) error {
	manifest, state := pull(p.manifest), pull(p.state)
	defer manifest.stop()
	defer state.stop()
	for manifest.more || state.more {
		var digest []byte
		if manifest.more {
			digest = bytes.Clone(manifest.key[:p.digits])
		}
		if state.more && (!manifest.more || bytes.Compare(state.key[:p.digits], digest) < 0) {
			digest = bytes.Clone(state.key[:p.digits])
		}
		exact := string(digest) // as the manifest has it (3.5.3.1)
		var paths []string
		for manifest.more && bytes.Equal(manifest.key[:p.digits], digest) {
			exact = string(manifest.value)
			paths = append(paths, string(manifest.key[p.digits:]))
			manifest.step()
		}
		added := len(paths) == 0
		if added {
			paths = []string{contentPath(p.version, p.before.contentDirectory, string(state.key[p.digits:]), exact)}
		}
		entry(exact, paths, added)
		for state.more && bytes.Equal(state.key[:p.digits], digest) {
			if !file(exact, string(state.key[p.digits:]), state.value) {
				return p.space.Err()
			}
			state.step()
		}
	}
	return p.space.Err()
}

// pulled is a sorted sequence that is read step by step.
type pulled struct {
	key, value []byte
	more       bool
	next       func() (key, value []byte, more bool)
	stop       func()
}

func pull(s *spill.Sorter) *pulled {
	p := &pulled{}
	p.next, p.stop = iter.Pull2(s.Sorted())
	p.step()
	return p
}

func (p *pulled) step() { p.key, p.value, p.more = p.next() }

// Files returns the number of files in the version's state.
func (p *Plan) Files() int { return p.files }

// AddedFile is a file that a version adds or replaces.
type AddedFile struct {
	Path    string // logical path
	Content string // content path below the object's root
	New     bool   // its bytes are stored there by this version; of equal files it is true for one
	Extra   []byte // as given; valid until the next file
}

// Added yields the files of the change by path.
func (p *Plan) Added() iter.Seq2[AddedFile, error] {
	return func(yield func(AddedFile, error) bool) {
		for path, value := range p.added.Sorted() {
			size, n := binary.Uvarint(value[1:])
			rest := value[1+n:]
			if !yield(AddedFile{
				Path: string(path), Content: string(rest[:size]), New: value[0] == 1, Extra: rest[size:],
			}, nil) {
				return
			}
		}
		if err := p.space.Err(); err != nil {
			yield(AddedFile{}, err)
		}
	}
}

// Encode writes the inventory as JSON, as [Inventory.Encode] does. Earlier versions keep their
// bytes. It returns a *DigestError if the inventory of the version before has changed.
func (p *Plan) Encode(ctx context.Context, w io.Writer) error {
	e := newEncoder(w)
	defer e.close()
	object := p.before.Object
	object.Head++
	e.head(object, p.before.contentDeclared, p.before.contentDirectory)
	if part := p.before.fixity; part.end > part.begin {
		e.raw(",\n \"fixity\": {")
		if err := p.prior.copyPart(ctx, e.w, part); err != nil {
			return err
		}
		e.raw("}")
	}
	e.raw(",\n \"manifest\": {")
	i := 0
	err := p.walk(func(digest string, paths []string, _ bool) {
		e.entry(i, digest, paths)
		i++
	}, func(string, string, []byte) bool { return true })
	if err != nil {
		return err
	}
	e.raw("\n },\n \"versions\": {")
	if object.Head > 1 {
		if err := p.prior.copyPart(ctx, e.w, p.before.versions); err != nil {
			return err
		}
	}
	v := &Version{Created: p.change.Created.UTC(), Message: p.change.Message, hasMessage: true, User: p.change.User}
	err = e.separate(object.Head-1, "\n  ").text(p.version).raw(": ").version(v, func(file func(digest, path string)) error {
		return p.walk(func(string, []string, bool) {}, func(digest, path string, _ []byte) bool {
			file(digest, path)
			return true
		})
	})
	if err != nil {
		return err
	}
	e.raw("\n }\n}\n")
	return e.w.Flush()
}

// InMemory returns the text of the inventory and what the version adds. Neither needs the Space any
// more, so this is for versions of few files.
func (p *Plan) InMemory(ctx context.Context) (text []byte, a *Addition, err error) {
	var out bytes.Buffer
	h := newHash(p.prior.object.Algorithm)
	if err := p.Encode(ctx, io.MultiWriter(&out, h)); err != nil {
		return nil, nil, err
	}
	var files []ContentFile
	err = p.walk(func(digest string, paths []string, added bool) {
		if added {
			files = append(files, ContentFile{Path: paths[0], Digest: digest})
		}
	}, func(string, string, []byte) bool { return true })
	object := p.before.Object
	object.Head++
	return out.Bytes(), additionOf(object, hexSum(h), files, out.Bytes()), err
}

// NewVersion is NewPlan for an object in memory. It also returns the content files to be written, in
// the order of their paths.
func NewVersion(prev *Inventory, change Change) (*Inventory, []ContentFile, error) {
	ctx := context.Background()
	var text bytes.Buffer
	h := newHash(prev.Algorithm)
	if err := prev.Encode(io.MultiWriter(&text, h)); err != nil {
		return nil, nil, err
	}
	prior := Prior{object: prev.object(), digest: hexSum(h), key: inventoryName, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text.Bytes())), nil
	}}
	space := spill.NewSpace("", math.MaxInt64)
	defer space.Close() //nolint:errcheck // nothing depends on a temporary file
	p, err := NewPlan(ctx, prior, change, space)
	if err != nil {
		return nil, nil, err
	}
	out, _, err := p.InMemory(ctx)
	if err != nil {
		return nil, nil, err
	}
	inv, err := ReadInventory(bytes.NewReader(out), inventoryName)
	if err != nil {
		return nil, nil, err
	}
	return inv, inv.ContentFiles(), nil
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
