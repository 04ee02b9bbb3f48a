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
	"github.com/holdfast/holdfast/erc"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// OCFLObject is the type of what is preserved already. It cannot be submitted, only judged.
const OCFLObject registry.PayloadType = "ocfl-object"

// ErrNoJudge says that a folder is neither a bag nor an OCFL object, and was not said to be one.
var ErrNoJudge = errors.New("neither a bag nor an OCFL object")

// Folder judges the folder that is the root of fsys, an OCFL object or a bag; of a folder on a disk, take os.Root.FS,
// which cannot be led out of it. t is OCFLObject or a payload type. ErrNoJudge is returned for any other folder that is
// not to be judged as one of the two; other errors are of reading, or ctx's.
func Folder(ctx context.Context, fsys fs.FS, t registry.PayloadType, o Options) (Report, error) {
	isObject, isBag := t == OCFLObject, t == registry.BagType
	if !isObject {
		var err error
		if isObject, isBag, fsys, err = recogniseFolder(fsys, t); err != nil {
			return Report{}, err
		}
	}
	switch {
	case isObject:
		return judgeObject(ctx, fsys, o)
	case !isBag:
		return Report{}, ErrNoJudge
	}
	report, err := bagit.ValidateFS(ctx, fsys, bagit.Options{Workers: o.Workers, Profile: o.BagProfile, Form: folderForm(o.BagProfile)})
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

// Files judges the folder that is the root of fsys as the container that it would be sent as, once it is known that files
// and bytes are in it and nothing else. The error is of reading.
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
	v.addFaults(listing.Finish())
	return v.settle(), nil
}

// describedIn judges the files that describe an object and lie in these folders.
func (v *Report) describedIn(fsys fs.FS, folders ...string) error {
	var d descriptions
	for _, folder := range folders {
		for _, name := range []string{erc.ERCFile, erc.DataCiteFile, erc.DublinCoreFile} {
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

// folderForm is the form in which a bag in a folder counts: as it is, or as the tar that it would be sent as where a profile
// asks for a packed one.
func folderForm(p *bagit.Profile) bagit.Form {
	if p != nil && !p.Accepts(bagit.FormFolder) {
		return bagit.FormTar
	}
	return bagit.FormFolder
}

// recogniseFolder tells by what lies at its top what a folder is. A bag may lie in the only folder that there is, as in a
// container; root is where it does.
func recogniseFolder(fsys fs.FS, t registry.PayloadType) (object, bag bool, root fs.FS, err error) {
	top, err := folderSigns(fsys)
	switch {
	case err != nil:
		return false, false, nil, err
	case t == registry.AutoType && top.object():
		return true, false, fsys, nil
	case t != registry.AutoType && t != registry.BagType:
		return false, false, fsys, nil
	case top.bag() || top.only == "":
		return false, top.bag() || t == registry.BagType, fsys, nil
	}
	below, err := fs.Sub(fsys, top.only)
	if err != nil {
		return false, false, nil, fmt.Errorf("look into the folder: %w", err)
	}
	signs, err := folderSigns(below)
	if err != nil || !signs.bag() {
		return false, t == registry.BagType, fsys, err
	}
	return false, true, below, nil
}

// signs are what lies at the top of a folder.
type signs struct {
	bagSigns
	only                            string // the folder that is all there is
	declaration, inventory, version bool   // of an OCFL object
}

// object says whether it is an OCFL object. One that has lost its declaration still has its inventory and its versions.
func (s signs) object() bool { return s.declaration || s.inventory && s.version }

func folderSigns(fsys fs.FS) (s signs, err error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return s, fmt.Errorf("read the folder: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		s.declaration = s.declaration || strings.HasPrefix(name, "0=ocfl_object_")
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

// judgeObject judges an OCFL object by its specification, 1.0 or 1.1.
func judgeObject(ctx context.Context, fsys fs.FS, o Options) (Report, error) {
	report, err := ocfl.ValidateFS(ctx, fsys, ocfl.ValidateOptions{Workers: o.Workers})
	if err != nil {
		return Report{}, err
	}
	v := newReport(string(OCFLObject)).atMost(o.MaxFaults)
	v.Version, v.Files, v.Bytes = report.Spec, int64(report.Files), report.Bytes
	for _, f := range report.Faults {
		severity := Warning
		if f.Error() {
			severity = Error
		}
		v.add(Fault{Severity: severity, Rule: f.Code, File: f.Path, Message: f.Message})
	}
	return v.settle(), nil
}
