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

// Types of preserved data. They can be checked, not submitted.
const (
	OCFLObject registry.PayloadType = "ocfl-object"
	OCFLRoot   registry.PayloadType = "ocfl-root" // a storage root, with all its objects
)

// Preserved checks the OCFL object or storage root that fills a store. t is OCFLObject, OCFLRoot,
// or any other type to recognize it. It returns ErrNoJudge if the store is neither. Other errors
// come from reading or from ctx.
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

// judgeObject checks an OCFL object against its specification, 1.0 or 1.1.
func judgeObject(ctx context.Context, fsys fs.FS, o Options) (Report, error) {
	return objectVerdict(o)(ocfl.ValidateFS(ctx, fsys, o.ocfl()))
}

// judgeRoot checks an OCFL storage root and every object in it.
func judgeRoot(ctx context.Context, fsys fs.FS, o Options) (Report, error) {
	return rootVerdict(o)(ocfl.ValidateRootFS(ctx, fsys, o.ocfl(), o.object))
}

// inventoryMemory bounds the memory for names and digests of an OCFL object, in bytes.
const inventoryMemory = 64 << 20

// ocfl returns the options for checking OCFL objects.
func (o Options) ocfl() ocfl.ValidateOptions {
	if o.Large {
		return ocfl.ValidateOptions{}
	}
	return ocfl.ValidateOptions{Memory: inventoryMemory}
}

// object calls Object for an object of a storage root.
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

// objectVerdict converts the report on an object.
func objectVerdict(o Options) func(*ocfl.Report, error) (Report, error) {
	return func(r *ocfl.Report, err error) (Report, error) {
		if err != nil {
			return Report{}, absent(err)
		}
		v := newReport(string(OCFLObject))
		v.Version, v.Files, v.Bytes = r.Spec, int64(r.Files), r.Bytes
		v.addOCFL(r.Faults, r.Count)
		return v.settle(), nil
	}
}

// rootVerdict converts the report on a storage root.
func rootVerdict(o Options) func(*ocfl.RootReport, error) (Report, error) {
	return func(r *ocfl.RootReport, err error) (Report, error) {
		if err != nil {
			return Report{}, absent(err)
		}
		v := newReport(string(OCFLRoot))
		v.Version, v.Objects, v.Files, v.Bytes = r.Spec, int64(r.Objects), int64(r.Files), r.Bytes
		if r.Invalid > 0 {
			v.add(Fault{Severity: Error, Rule: "objects", Message: fmt.Sprintf("%d of %d objects are not valid", r.Invalid, r.Objects)})
		}
		v.addOCFL(r.Faults, r.Count)
		return v.settle(), nil
	}
}

// absent wraps ocfl.ErrNotFound as fs.ErrNotExist.
func absent(err error) error {
	if errors.Is(err, ocfl.ErrNotFound) {
		return fmt.Errorf("nothing is there: %w", fs.ErrNotExist)
	}
	return err
}

// addOCFL adds the listed faults of a validation and counts the others.
func (v *Report) addOCFL(faults []ocfl.Fault, count int64) {
	for _, f := range faults {
		severity := Warning
		if f.Error() {
			severity = Error
		}
		fix := ""
		if f.Code == ocfl.CodeLarge {
			fix = "use holdfast check --large, which takes as much memory as it needs"
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
