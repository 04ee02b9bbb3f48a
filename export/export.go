// Package export writes a version of an object for export: as files, or as a BagIt 1.0 bag (RFC
// 8493), in a folder or in a tar.
//
// The inventory and the options alone determine the output, byte for byte. So an interrupted export
// continues at any byte, existing bytes are verified and not fetched again, and the size of a tar
// is known before it begins. Memory holds one page of the inventory and, for a bag, the names of
// Holdfast's own files.
//
// Every file is compared with its recorded digests while it is copied, and read from another
// storage where one has wrong bytes (package replica).
package export

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
)

// Errors that are told apart by errors.Is. They come with the file that they are about, as
// replica.ErrDamaged does.
var (
	// ErrName says that a name cannot be in a parcel: it would lead out of it, or a bag cannot hold
	// it.
	ErrName = errors.New("the name cannot be used")
	// ErrTwice says that two files would have one name.
	ErrTwice = errors.New("two files of the object would have this name")
)

// List lists the files of one version of an object by path, some of those after a path; none at the
// end.
type List func(ctx context.Context, after string) ([]registry.File, error)

// Options say what a parcel is.
type Options struct {
	Bag    bool      // a bag; else the producer's files under the producer's names
	System bool      // Holdfast's own files, too
	At     time.Time // the date of everything in it; the same when a parcel is continued
	Agent  string    // of a bag: what made it
	// Algorithms of a bag's manifests; none are sha256 and sha512, as far as they are recorded of
	// every file.
	Algorithms []string
}

// Parcel is a version of an object on its way out. Its methods may be called again and again, one
// at a time.
type Parcel struct {
	object  registry.Object
	version int
	list    List
	reader  *replica.Reader
	opts    Options
	bag     *bag // what was found by looking at all files once; nil for what is no bag
}

// New lays out version of an object, whose files list names and reader reads. For a bag the
// inventory is read once, which refuses what a bag cannot hold: ErrName.
func New(ctx context.Context, o registry.Object, version int, list List, reader *replica.Reader, opts Options) (*Parcel, error) {
	p := &Parcel{object: o, version: version, list: list, reader: reader, opts: opts}
	if !opts.Bag {
		return p, nil
	}
	if err := p.survey(ctx); err != nil {
		return nil, fmt.Errorf("lay out bag of %s: %w", o.ID, err)
	}
	return p, nil
}

// Base is the name of a bag's folder within a tar: the object's ARK, as it can be a file's name,
// and the version.
func (p *Parcel) Base() string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.Replace(p.object.ID, ":/", "-", 1))
	return fmt.Sprintf("%s-v%d", strings.TrimLeft(name, ".-"), p.version)
}

// Entries yields the files in the order in which they are written; after an error nothing more. Of
// a bag bagit.txt is the first.
func (p *Parcel) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	if p.bag != nil {
		return p.bagEntries(ctx)
	}
	return func(yield func(Entry, error) bool) {
		ours := map[string]bool{} // the producer's names that Holdfast's own files could have, too
		for f, err := range p.files(ctx) {
			name := strings.TrimPrefix(f.Path, registry.ProducerFolder)
			switch {
			case err != nil:
			case strings.HasPrefix(f.Path, registry.SystemFolder) && ours[name]:
				err = fmt.Errorf("%s: %w", f.Path, ErrTwice)
			case p.opts.System && strings.HasPrefix(name, registry.SystemFolder):
				ours[name] = true
			case p.opts.System && name+"/" == registry.SystemFolder:
				err = fmt.Errorf("%s: %w: Holdfast's own files need it as a folder", f.Path, ErrTwice)
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(p.stored(name, f), nil) {
				return
			}
		}
	}
}

// files yields the files that were asked for, by path.
func (p *Parcel) files(ctx context.Context) iter.Seq2[registry.File, error] {
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

// wanted says whether a file is asked for. A name that leads out of a folder is refused whatever is
// asked for.
func (p *Parcel) wanted(f registry.File) (bool, error) {
	name, producers := strings.CutPrefix(f.Path, registry.ProducerFolder)
	if !producers && !strings.HasPrefix(f.Path, registry.SystemFolder) || !fsValid(name) {
		return false, fmt.Errorf("%q: %w: it would lead out of the folder", f.Path, ErrName)
	}
	return !f.Deleted && (producers || p.opts.System), nil
}

// fsValid says that a name stays below the folder that it is used in, and is spelt in the one way.
func fsValid(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "../") && path.Clean(name) == name
}
