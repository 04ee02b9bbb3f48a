// Package export writes a version of an object for export: as files, or as a BagIt 1.0 bag (RFC
// 8493), in a folder, a tar or a zip.
//
// The inventory and the options alone determine the output, byte for byte. Therefore an interrupted
// export continues at any byte, existing bytes are verified and not fetched again, and the size of
// a tar is known before it is written. Memory holds one page of the inventory and, for a bag, the
// names of Holdfast's system files.
//
// Every file is compared with its recorded digests while it is copied, and read from another
// storage if one has wrong bytes (package replica). The package does not know who may export what.
package export

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
)

// Errors for errors.Is. Like replica.ErrDamaged they name the file.
var (
	// ErrName says that a name cannot be exported: it would lead out of the folder, or a bag cannot
	// contain it.
	ErrName = errors.New("this name cannot be exported")
	// ErrTwice says that two files would have one name.
	ErrTwice = errors.New("two files of the object would have this name")
)

// List returns some files of one version of an object, by path, after a path; none at the end.
type List func(ctx context.Context, after string) ([]registry.File, error)

// Options select the contents and form of a package.
type Options struct {
	Bag    bool      // a bag; otherwise the producer's files under the producer's names
	System bool      // include Holdfast's system files
	At     time.Time // the date of everything generated; use the same one to continue an export
	Agent  string    // of a bag: the program that made it
}

// Package is a version of an object laid out for export. Its methods may be called repeatedly, but
// not concurrently.
type Package struct {
	object  registry.Object
	version int
	list    List
	reader  *replica.Reader
	opts    Options
	bag     *bag // what survey found; nil if it is no bag
}

// New lays out a version of an object, whose files list names and reader reads. For a bag it reads
// the inventory once and returns ErrName if a bag cannot contain a name.
func New(ctx context.Context, o registry.Object, version int, list List, reader *replica.Reader, opts Options) (*Package, error) {
	p := &Package{object: o, version: version, list: list, reader: reader, opts: opts}
	if !opts.Bag {
		return p, nil
	}
	if err := p.survey(ctx); err != nil {
		return nil, fmt.Errorf("lay out bag of %s: %w", o.ID, err)
	}
	return p, nil
}

// Base returns the name of a bag's folder within a tar: the object's ARK, in the form of a file
// name, and the version.
func (p *Package) Base() string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.Replace(p.object.ID, ":/", "-", 1))
	return fmt.Sprintf("%s-v%d", strings.TrimLeft(name, ".-"), p.version)
}

// Entries yields the files in the order in which they are written. After an error it yields nothing
// more. The first file of a bag is bagit.txt.
func (p *Package) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	if p.bag != nil {
		return p.bagEntries(ctx)
	}
	return func(yield func(Entry, error) bool) {
		ours := map[string]bool{}  // the producer's names that system files could also have
		terms := map[string]bool{} // the producer's names that the file of terms could also have
		for f, err := range p.files(ctx) {
			name, payload := payloadName(f.Path)
			switch {
			case err != nil:
			case strings.HasPrefix(f.Path, registry.SystemFolder) && ours[name]:
				err = fmt.Errorf("%s: %w", f.Path, ErrTwice)
			case payload && p.opts.System && strings.HasPrefix(name, registry.SystemFolder):
				ours[name] = true
			case payload && p.opts.System && name+"/" == registry.SystemFolder:
				err = fmt.Errorf("%s: %w: Holdfast's own files need it as a folder", f.Path, ErrTwice)
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if first, _, _ := strings.Cut(strings.ToLower(name), "/"); strings.HasPrefix(first, termsName) {
				terms[first] = true
			}
			if !yield(p.storedEntry(name, f), nil) {
				return
			}
		}
		if tags := termsTags(p.object.Terms); len(tags) > 0 {
			yield(p.termsEntry(tags, terms))
		}
	}
}

// termsName is the name, without its ending, of the file with the terms in force of an export that is no
// bag: what bag-info.txt says of them.
const termsName = "holdfast-terms"

// termsEntry returns the file of terms, under a name that no file of the producer has.
func (p *Package) termsEntry(tags []bagit.Tag, taken map[string]bool) (Entry, error) {
	name := termsName + ".txt"
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d.txt", termsName, n)
	}
	text, err := bagit.FormatInfo(tags)
	if err != nil {
		return Entry{}, err
	}
	return p.textEntry(name, text)
}

// files yields the requested files by path.
func (p *Package) files(ctx context.Context) iter.Seq2[registry.File, error] {
	return func(yield func(registry.File, error) bool) {
		for after := ""; ; {
			page, err := p.list(ctx, after)
			if err != nil {
				yield(registry.File{}, fmt.Errorf("list files of %s: %w", p.object.ID, err))
				return
			}
			for _, f := range page {
				after = f.Path
				wanted, err := p.wanted(f)
				if err == nil && !wanted {
					continue
				}
				if !yield(f, err) || err != nil {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// wanted reports whether a file is requested. It refuses a name that leads out of the folder,
// requested or not.
func (p *Package) wanted(f registry.File) (bool, error) {
	name, payload := payloadName(f.Path)
	if !isLocalName(name) {
		return false, fmt.Errorf("%q: %w: it would lead out of the folder", f.Path, ErrName)
	}
	return !f.Deleted && (payload || p.opts.System), nil
}

// payloadName returns the name of a file of the object's producer, or else of one of Holdfast's, whose path is
// its name. In an adopted object the producer's files may be in any other folder.
func payloadName(path string) (name string, payload bool) {
	if strings.HasPrefix(path, registry.SystemFolder) {
		return path, false
	}
	return strings.TrimPrefix(path, registry.ProducerFolder), true
}

// isLocalName reports whether a name stays below its folder and is in canonical form.
func isLocalName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "../") && path.Clean(name) == name
}
