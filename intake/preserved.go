package intake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// Types of what is preserved already. It cannot be submitted, only judged.
const (
	OCFLObject registry.PayloadType = "ocfl-object"
	OCFLRoot   registry.PayloadType = "ocfl-root" // a storage root, with all its objects
)

// Preserved judges the OCFL object, or the storage root, that is all of a store. t is OCFLObject,
// OCFLRoot, or anything else to tell by what lies there; ErrNoJudge is returned when that is
// neither. Other errors are of reading, or ctx's.
func Preserved(ctx context.Context, s storage.Store, t registry.PayloadType, o Options) (Report, error) {
	if t != OCFLObject && t != OCFLRoot {
		var top signs
		// Declarations are found by their names, without listing everything.
		for info, err := range s.List(ctx, "0=ocfl_") {
			if err != nil {
				return Report{}, fmt.Errorf("look for a declaration: %w", err)
			}
			if !strings.Contains(info.Key, "/") {
				top.declares(info.Key)
			}
		}
		switch {
		case top.declaration:
			t = OCFLObject
		case top.rootDeclaration:
			t = OCFLRoot
		default:
			return Report{}, ErrNoJudge
		}
	}
	options := o.ocfl()
	if t == OCFLObject {
		return objectVerdict(o)(ocfl.Validate(ctx, s, "", options))
	}
	return rootVerdict(o)(ocfl.ValidateRoot(ctx, s, "", options, o.object))
}

// judgeObject judges an OCFL object by its specification, 1.0 or 1.1.
func judgeObject(ctx context.Context, fsys fs.FS, o Options) (Report, error) {
	return objectVerdict(o)(ocfl.ValidateFS(ctx, fsys, o.ocfl()))
}

// judgeRoot judges an OCFL storage root, and every object in it.
func judgeRoot(ctx context.Context, fsys fs.FS, o Options) (Report, error) {
	return rootVerdict(o)(ocfl.ValidateRootFS(ctx, fsys, o.ocfl(), o.object))
}

// inventoryMemory is what names and digests of an OCFL object may take.
const inventoryMemory = 64 << 20

// ocfl is how OCFL objects are judged.
func (o Options) ocfl() ocfl.ValidateOptions {
	if o.Large {
		return ocfl.ValidateOptions{}
	}
	return ocfl.ValidateOptions{Memory: inventoryMemory}
}

// object tells Object of an object of a storage root.
func (o Options) object(folder string, r *ocfl.Report) error {
	if o.Object == nil {
		return nil
	}
	v, err := objectVerdict(o)(r, nil)
	if err != nil {
		return err
	}
	return o.Object(folder, v)
}

// objectVerdict makes a Report of a validation.
func objectVerdict(o Options) func(*ocfl.Report, error) (Report, error) {
	return func(r *ocfl.Report, err error) (Report, error) {
		if err != nil {
			return Report{}, absent(err)
		}
		v := newReport(string(OCFLObject)).atMost(o.MaxFaults)
		v.Version, v.Files, v.Bytes = r.Spec, int64(r.Files), r.Bytes
		v.addOCFL(r.Faults, r.Count)
		return v.settle(), nil
	}
}

// rootVerdict makes a Report of the validation of a storage root.
func rootVerdict(o Options) func(*ocfl.RootReport, error) (Report, error) {
	return func(r *ocfl.RootReport, err error) (Report, error) {
		if err != nil {
			return Report{}, absent(err)
		}
		v := newReport(string(OCFLRoot)).atMost(o.MaxFaults)
		v.Version, v.Objects, v.Files, v.Bytes = r.Spec, int64(r.Objects), int64(r.Files), r.Bytes
		if r.Invalid > 0 {
			v.add(Fault{Severity: Error, Rule: "objects", Message: fmt.Sprintf("%d of %d objects are not valid", r.Invalid, r.Objects)})
		}
		v.addOCFL(r.Faults, r.Count)
		return v.settle(), nil
	}
}

// absent makes what is not there at all an error that is fs.ErrNotExist.
func absent(err error) error {
	if errors.Is(err, ocfl.ErrNotFound) {
		return fmt.Errorf("nothing is there: %w", fs.ErrNotExist)
	}
	return err
}

// addOCFL adds what a validation found: the faults that it lists, and those that it counts only.
func (v *Report) addOCFL(faults []ocfl.Fault, count int64) {
	for _, f := range faults {
		severity := Warning
		if f.Error() {
			severity = Error
		}
		fix := ""
		if f.Code == ocfl.CodeLarge {
			fix = "judge it with holdfast check --large, which takes as much memory as it needs"
		}
		v.add(Fault{Severity: severity, Rule: f.Code, File: f.Path, Message: f.Message, Fix: fix})
	}
	more := count - int64(len(faults))
	if slices.ContainsFunc(faults, func(f ocfl.Fault) bool { return !f.Error() }) { // then all errors are listed
		v.countMore(0, more)
	} else {
		v.countMore(more, 0)
	}
}
