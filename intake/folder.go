package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/metadata"
	"github.com/holdfast/holdfast/registry"
)

// ErrNoJudge is returned for a folder that is neither a bag nor an OCFL object or storage root, and
// was not declared to be one.
var ErrNoJudge = errors.New("neither a bag nor an OCFL object or storage root")

// Folder checks the folder at the root of fsys: an OCFL object, an OCFL storage root or a bag. For
// a folder on disk, pass safefs.Open's file system, which does not follow links out of the folder.
// t is OCFLObject, OCFLRoot or a payload type. It returns ErrNoJudge for any other folder, unless t
// says otherwise. Other errors come from reading or from ctx.
func Folder(ctx context.Context, fsys fs.FS, t registry.PayloadType, o Options) (Report, error) {
	if t != OCFLObject && t != OCFLRoot {
		var err error
		if t, fsys, err = recogniseFolder(fsys, t); err != nil {
			return Report{}, err
		}
	}
	switch t {
	case OCFLObject:
		return judgeObject(ctx, fsys, o)
	case OCFLRoot:
		return judgeRoot(ctx, fsys, o)
	case registry.BagType:
	default:
		return Report{}, ErrNoJudge
	}
	report, err := bagit.ValidateFS(ctx, fsys, bagit.Options{Profile: o.BagProfile, Form: folderForm(o.BagProfile)})
	if err != nil {
		return Report{}, err
	}
	v := newReport(string(registry.BagType))
	if err := askBag(ctx, v, report, o); err != nil {
		return Report{}, err
	}
	if err := v.describedIn(fsys, ".", bagit.PayloadDir); err != nil {
		return Report{}, err
	}
	return v.bag(report), nil
}

// Files checks the folder at the root of fsys as the container that it will be sent as. files and
// bytes are its totals. The error comes from reading.
func Files(fsys fs.FS, files, bytes int64, o Options) (Report, error) {
	v := newReport(string(registry.ContainerType))
	v.Files, v.Bytes = files, bytes
	if err := v.describedIn(fsys, "."); err != nil {
		return Report{}, err
	}
	list, err := fsys.Open(ListingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return v.settle(), nil
	} else if err != nil {
		return Report{}, err
	}
	defer list.Close() //nolint:errcheck // opened for reading
	listing, err := ReadListing(list)
	if refusal, ok := AsRefusal(err); ok {
		v.addAll(refusal.Report)
		return v.settle(), nil
	} else if err != nil {
		return Report{}, err
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return readFile(fsys, name, func(size int64, r io.Reader) error { return listing.checkFile(name, size, r) })
	})
	if err != nil {
		return Report{}, err
	}
	wrong := listing.Finish()
	v.addFaults(wrong)
	v.countMore(listing.Wrong()-int64(len(wrong)), 0)
	return v.settle(), nil
}

// describedIn checks the metadata files in these folders.
func (v *Report) describedIn(fsys fs.FS, folders ...string) error {
	var d descriptions
	for _, folder := range folders {
		for _, name := range []string{metadata.ERCFile, metadata.DataCiteFile, metadata.DublinCoreFile} {
			name = path.Join(folder, name)
			err := readFile(fsys, name, func(_ int64, r io.Reader) error { return d.add(name, r) })
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		v.addFaults(d.faults[folder])
	}
	return nil
}

// readFile passes a file to fn.
func readFile(fsys fs.FS, name string, fn func(size int64, r io.Reader) error) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return fn(info.Size(), file)
}

// folderForm returns the form of a bag in a folder: a folder, or a tar if the profile requires a
// packed bag, because the folder will be sent as a tar.
func folderForm(p *bagit.Profile) bagit.Form {
	if p != nil && !p.Accepts(bagit.FormFolder) {
		return bagit.FormTar
	}
	return bagit.FormFolder
}

// recogniseFolder recognizes a folder by the names at its top: OCFLObject, OCFLRoot or a bag;
// otherwise it returns t. A bag may also lie in the only folder, as in a container; root is that
// folder.
func recogniseFolder(fsys fs.FS, t registry.PayloadType) (is registry.PayloadType, root fs.FS, err error) {
	top, err := folderSigns(fsys)
	switch {
	case err != nil:
		return t, nil, err
	case t == registry.AutoType && top.object():
		return OCFLObject, fsys, nil
	case t == registry.AutoType && top.rootDeclaration:
		return OCFLRoot, fsys, nil
	case t != registry.AutoType && t != registry.BagType:
		return t, fsys, nil
	case top.bag():
		return registry.BagType, fsys, nil
	case top.only == "":
		return t, fsys, nil
	}
	below, err := fs.Sub(fsys, top.only)
	if err != nil {
		return t, nil, fmt.Errorf("open the folder: %w", err)
	}
	signs, err := folderSigns(below)
	if err != nil || !signs.bag() {
		return t, fsys, err
	}
	return registry.BagType, below, nil
}

// signs are the characteristic names at the top of a folder.
type signs struct {
	bagSigns
	only                            string // the name of the only entry, if it is a folder
	declaration, inventory, version bool   // of an OCFL object
	rootDeclaration                 bool   // of an OCFL storage root
}

// declares records the name of a declaration.
func (s *signs) declares(name string) {
	isObject := strings.HasPrefix(name, "0=ocfl_object_")
	s.declaration = s.declaration || isObject
	s.rootDeclaration = s.rootDeclaration || !isObject && strings.HasPrefix(name, "0=ocfl_")
}

// object reports whether the folder is an OCFL object. An object without its declaration still has
// its inventory and versions.
func (s signs) object() bool { return s.declaration || s.inventory && s.version }

func folderSigns(fsys fs.FS) (s signs, err error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return s, fmt.Errorf("read the folder: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		s.declares(name)
		s.inventory = s.inventory || name == "inventory.json"
		if e.IsDir() {
			s.version = s.version || strings.Trim(name, "0123456789") == "v"
			if len(entries) == 1 {
				s.only = name
			}
			name += "/"
		}
		s.add(name)
	}
	return s, nil
}
