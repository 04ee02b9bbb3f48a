package bagit

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ValidateZip judges the bag in a zip of the given size without unpacking it, several files at a
// time. The bag lies in the archive itself or in one top folder. Links, special files and encrypted
// files are refused.
//
// Damage of the archive is a fault of RuleArchive, with the file where it is of one file. The error
// is of reading r, or the cause of ctx; then there is no Report.
func ValidateZip(ctx context.Context, r io.ReaderAt, size int64, opts Options) (*Report, error) {
	opts.FindBase = true
	opts.Form = cmp.Or(opts.Form, FormZip)
	v := NewValidator(opts)
	defer v.Close() //nolint:errcheck // only after a failure it does anything
	g, gctx := newGroup(ctx, opts)
	src := &sourceReaderAt{r: r, stopped: func() error { return context.Cause(gctx) }}
	zr, err := zip.NewReader(src, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked by the Validator
		_ = g.Wait() // nothing was started; it releases the context
		if failed := src.failed.err(); failed != nil {
			return nil, fmt.Errorf("validate zip: %w", failed)
		}
		v.damaged(SeverityError, "", err.Error())
		return v.Finish()
	}
	names := make([]string, 0, len(zr.File))
	for _, f := range zr.File {
		names = append(names, f.Name)
	}
	v.ExpectManifests(names...)
	for _, f := range zr.File {
		if gctx.Err() != nil {
			break
		}
		switch mode := f.Mode(); {
		case strings.HasSuffix(f.Name, "/"):
			v.AddDir(f.Name)
		case !mode.IsRegular():
			v.Refuse(f.Name, fileKind(mode))
		case f.Flags&1 != 0:
			v.damaged(SeverityError, f.Name, "encrypted")
		default:
			g.Go(func() error { return v.addZipped(gctx, f, src) })
		}
	}
	err = g.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("validate zip: %w", err)
	}
	return v.Finish()
}

func (v *Validator) addZipped(ctx context.Context, f *zip.File, src *sourceReaderAt) error {
	content, err := f.Open()
	if err == nil {
		err = v.Add(ctx, f.Name, int64(f.UncompressedSize64), content)
		_ = content.Close() // all errors of reading have come with the last octets
	}
	switch {
	case err == nil:
		return nil
	case src.failed.err() != nil:
		return src.failed.err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	v.damaged(SeverityError, f.Name, err.Error())
	return nil
}
