// Package evidence keeps what the Registry knows of an object beside the object's bytes, in the
// folder extensions/holdfast-evidence of its OCFL object. So each replica carries its own evidence,
// and a Registry can be made again from the storages alone.
//
// There are two kinds of files, both described in docs/evidence.md and made of package receipt's
// lines:
//   - vN.receipt.jsonl is the receipt of version N, as the depositor gets it
//   - events-FIRST-LAST.jsonl holds events of the object's chain that no receipt holds yet
//
// Each file is created once and never changed. Several files may hold the same event: whoever reads
// takes it from any of them, because the chain has one event of each number.
//
// All functions work with a stream: they keep one line in memory, at most receipt.MaxLine bytes, and
// the names of the object's evidence.
package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// Object is an object's folder in one storage.
type Object struct {
	Store  storage.Store
	Folder string // as ocfl.Object.Key has it
	ID     string // its ARK; "": not known, and that of its first file
}

// In returns the folder of an object in a storage root, whether or not the object exists. id is its ARK.
func In(root *ocfl.Root, id string, in registry.Place) (Object, error) {
	folder, err := root.ObjectKey(in.Stored(id))
	return Object{Store: root.Store(), Folder: folder, ID: id}, err
}

// File names a file of evidence: a receipt, or else a segment of the chain of events.
type File struct {
	Version     int   // of the receipt; 0: it is a segment
	First, Last int64 // numbers of the segment's first and last event
}

// String returns the file's name in the folder of evidence.
func (f File) String() string {
	if f.Version > 0 {
		return fmt.Sprintf("v%d.receipt.jsonl", f.Version)
	}
	return fmt.Sprintf("events-%010d-%010d.jsonl", f.First, f.Last)
}

var names = regexp.MustCompile(`^(?:v(\d+)\.receipt|events-(\d{10,})-(\d{10,}))\.jsonl$`)

// Parse reads the name of a file in the folder of evidence. ok is false for a name that String never
// returns.
func Parse(name string) (f File, ok bool) {
	parts := names.FindStringSubmatch(name)
	if parts == nil {
		return File{}, false
	}
	var errs [3]error
	if parts[1] != "" {
		f.Version, errs[0] = strconv.Atoi(parts[1])
	} else {
		f.First, errs[1] = strconv.ParseInt(parts[2], 10, 64)
		f.Last, errs[2] = strconv.ParseInt(parts[3], 10, 64)
	}
	valid := f.Version > 0 || f.First > 0 && f.First <= f.Last
	if errors.Join(errs[:]...) != nil || !valid || f.String() != name {
		return File{}, false
	}
	return f, true
}

// Known reports whether a path in an object's folder is that of a file of evidence.
func Known(path string) bool {
	name, ok := strings.CutPrefix(path, ocfl.EvidenceFolder+"/")
	if ok {
		_, ok = Parse(name)
	}
	return ok
}

// Within reports whether a path in an object's folder lies in the folder of evidence.
func Within(path string) bool { return strings.HasPrefix(path, ocfl.EvidenceFolder+"/") }

// Key returns the key of a file of evidence in the store.
func (o Object) Key(f File) string { return o.Folder + "/" + ocfl.EvidenceFolder + "/" + f.String() }

// Files are the names of an object's evidence.
type Files struct {
	Receipts []int    // versions that have a receipt, ascending
	Segments []File   // by first event, longer ones first
	Foreign  []string // names in the folder that are no evidence, at most a hundred
}

// List lists the object's evidence. An object without any has none, which is no error.
func (o Object) List(ctx context.Context) (files Files, err error) {
	prefix := o.Folder + "/" + ocfl.EvidenceFolder + "/"
	for info, err := range o.Store.List(ctx, prefix) {
		if err != nil {
			return files, fmt.Errorf("list evidence in %q: %w", o.Folder, err)
		}
		name := strings.TrimPrefix(info.Key, prefix)
		switch f, ok := Parse(name); {
		case ok:
			files.add(f)
		case len(files.Foreign) < mostFaults:
			files.Foreign = append(files.Foreign, name)
		}
	}
	slices.Sort(files.Receipts)
	slices.SortFunc(files.Segments, compare)
	return files, nil
}

// compare orders receipts by version, then segments by their first event, longer ones first.
func compare(a, b File) int {
	if a.Version > 0 && b.Version > 0 {
		return cmp.Compare(a.Version, b.Version)
	}
	return cmp.Or(-cmp.Compare(a.Version, b.Version), cmp.Compare(a.First, b.First), cmp.Compare(b.Last, a.Last))
}

// add adds a file behind the others.
func (f *Files) add(file File) {
	if file.Version > 0 {
		f.Receipts = append(f.Receipts, file.Version)
	} else {
		f.Segments = append(f.Segments, file)
	}
}

// all returns all files of evidence.
func (f Files) all() []File {
	out := make([]File, 0, len(f.Receipts)+len(f.Segments))
	for _, version := range f.Receipts {
		out = append(out, File{Version: version})
	}
	return append(out, f.Segments...)
}
