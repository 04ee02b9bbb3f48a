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

// ErrNoJudge says that a folder is neither a bag nor an OCFL object or storage root, and was not
// said to be one.
var ErrNoJudge = errors.New("neither a bag nor an OCFL object or storage root")

// Folder judges the folder that is the root of fsys, an OCFL object, an OCFL storage root or a bag;
// of a folder on a disk, take rootfs.Open's, which cannot be led out of it. t is OCFLObject,
// OCFLRoot or a payload type. ErrNoJudge is returned for any other folder that is not to be judged
// as one of these; other errors are of reading, or ctx's.
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
	v := newReport(string(registry.BagType)).atMost(o.MaxFaults)
	if err := askBag(ctx, v, report, o); err != nil {
		return Report{}, err
	}
	if err := v.describedIn(fsys, ".", bagit.PayloadDir); err != nil {
		return Report{}, err
	}
	return v.bag(report), nil
}

// Files judges the folder that is the root of fsys as the container that it would be sent as, once
// it is known that files and bytes are in it and nothing else. The error is of reading.
func Files(fsys fs.FS, files, bytes int64, o Options) (Report, error) {
	v := newReport(string(registry.ContainerType)).atMost(o.MaxFaults)
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
	defer list.Close() //nolint:errcheck // only read from
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
		return readFile(fsys, name, func(size int64, r io.Reader) error { return listing.meet(name, size, r) })
	})
	if err != nil {
		return Report{}, err
	}
	wrong := listing.Finish()
	v.addFaults(wrong)
	v.countMore(listing.Wrong()-int64(len(wrong)), 0)
	return v.settle(), nil
}

// describedIn judges the files that describe an object and lie in these folders.
func (v *Report) describedIn(fsys fs.FS, folders ...string) error {
	var d descriptions
	for _, folder := range folders {
		for _, name := range []string{metadata.ERCFile, metadata.DataCiteFile, metadata.DublinCoreFile} {
			name = path.Join(folder, name)
			err := readFile(fsys, name, func(_ int64, r io.Reader) error { return d.meet(name, r) })
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		v.addFaults(d.faults[folder])
	}
	return nil
}

// readFile hands a file to fn.
func readFile(fsys fs.FS, name string, fn func(size int64, r io.Reader) error) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return fn(info.Size(), file)
}

// folderForm is the form in which a bag in a folder counts: as it is, or as the tar that it would
// be sent as where a profile asks for a packed one.
func folderForm(p *bagit.Profile) bagit.Form {
	if p != nil && !p.Accepts(bagit.FormFolder) {
		return bagit.FormTar
	}
	return bagit.FormFolder
}

// recogniseFolder tells by what lies at its top what a folder is: OCFLObject, OCFLRoot, a bag, or
// t, which is none of them. A bag may lie in the only folder that there is, as in a container; root
// is where it does.
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
		return t, nil, fmt.Errorf("look into the folder: %w", err)
	}
	signs, err := folderSigns(below)
	if err != nil || !signs.bag() {
		return t, fsys, err
	}
	return registry.BagType, below, nil
}

// signs are what lies at the top of a folder.
type signs struct {
	bagSigns
	only                            string // the folder that is all there is
	declaration, inventory, version bool   // of an OCFL object
	rootDeclaration                 bool   // of an OCFL storage root
}

// declares notes a file that declares what the folder is.
func (s *signs) declares(name string) {
	isObject := strings.HasPrefix(name, "0=ocfl_object_")
	s.declaration = s.declaration || isObject
	s.rootDeclaration = s.rootDeclaration || !isObject && strings.HasPrefix(name, "0=ocfl_")
}

// object says whether it is an OCFL object. One that has lost its declaration still has its
// inventory and its versions.
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
		s.meet(name)
	}
	return s, nil
}
