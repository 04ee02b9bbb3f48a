package bagit

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

// ValidateTar checks the bag in a tar, which may be gzipped, in one pass and without unpacking. The
// bag lies in the archive itself or in one top folder. Several small files are hashed at the same
// time, and the algorithms of a large file too. Links and special files are refused.
//
// A damaged or truncated archive is a fault of RuleArchive; the Report covers what could be read.
// The error comes from reading r or is the cause of ctx; there is no Report then. The decompressed
// size is not limited: give ctx a deadline.
func ValidateTar(ctx context.Context, r io.Reader, opts Options) (*Report, error) {
	opts.FindBase = true
	v := NewValidator(opts)
	defer v.Close() //nolint:errcheck // does something only after a failure
	g, gctx := newGroup(ctx)
	src := &sourceReader{r: r, stopped: func() error { return context.Cause(gctx) }}
	t := &tarPass{v: v, g: g, src: src}
	err := t.run(gctx)
	if werr := g.Wait(); werr != nil {
		err = werr // the error of reading is only a consequence
	}
	if err == nil {
		err = src.failed.err()
	}
	if err != nil {
		return nil, fmt.Errorf("validate tar: %w", err)
	}
	return v.Finish()
}

// tarPass is one reading of a tar.
type tarPass struct {
	v   *Validator
	g   *errgroup.Group
	src *sourceReader
}

// run reads the archive to its end. If the archive is damaged it reports a fault and returns nil.
func (t *tarPass) run(ctx context.Context) error {
	br := bufio.NewReaderSize(t.src, 1<<18)
	if !isGzip(br) {
		t.v.opts.Form = cmp.Or(t.v.opts.Form, FormTar)
		_, err := t.entries(ctx, br)
		return err
	}
	t.v.opts.Form = cmp.Or(t.v.opts.Form, FormTarGzip)
	gz, err := newGunzip(br)
	if err != nil {
		t.v.damaged(SeverityError, "", err.Error())
		return t.src.failed.err()
	}
	if whole, err := t.entries(ctx, gz); err != nil || !whole {
		return err
	}
	// The checksum of gzip stands after the end of the tar.
	if _, err := io.Copy(io.Discard, gz); err != nil {
		t.v.damaged(SeverityError, "", err.Error())
	} else if gz.padded {
		t.v.damaged(SeverityWarning, "", "octets after the end of the archive")
	}
	return nil
}

// entries adds all entries. whole says that the end of the tar was reached.
func (t *tarPass) entries(ctx context.Context, text io.Reader) (whole bool, err error) {
	tr := tar.NewReader(text)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // names are checked by the Validator
			t.v.damaged(SeverityError, "", err.Error())
			return false, t.src.failed.err()
		}
		if damage, err := t.entry(ctx, tr, hdr); err != nil {
			return false, err
		} else if damage != nil {
			t.v.damaged(SeverityError, hdr.Name, damage.Error())
			return false, nil
		}
	}
}

// entry adds one entry. damage is a fault of the archive, err one of the system.
func (t *tarPass) entry(ctx context.Context, tr *tar.Reader, hdr *tar.Header) (damage, err error) {
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir:
		t.v.AddDir(hdr.Name)
		return nil, nil
	case tar.TypeXGlobalHeader:
		return nil, nil
	default:
		t.v.Refuse(hdr.Name, tarKind(hdr.Typeflag))
		return nil, nil
	}
	if hdr.Size > chunkSize || t.v.NeedsContent(hdr.Name) {
		return t.blame(ctx, t.v.Add(ctx, hdr.Name, hdr.Size, tr))
	}
	buf := borrow(&t.v.bufs)
	content := (*buf)[:hdr.Size]
	if _, err := io.ReadFull(tr, content); err != nil {
		t.v.bufs.Put(buf)
		return t.blame(ctx, err)
	}
	clean, ok := t.v.accept(hdr.Name)
	if !ok {
		t.v.bufs.Put(buf)
		return nil, nil
	}
	// Decide here which digests to take: in the goroutine, manifests that come later would count by
	// chance.
	set := t.v.wantedNow(clean)
	t.g.Go(func() error {
		defer t.v.bufs.Put(buf)
		return t.v.addDigesting(ctx, hdr.Name, hdr.Size, bytes.NewReader(content), set)
	})
	return nil, nil
}

// blame separates errors of the source from damage of the archive.
func (t *tarPass) blame(ctx context.Context, err error) (damage, system error) {
	if err == nil {
		return nil, nil
	}
	if failed := t.src.failed.err(); failed != nil {
		return nil, failed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return err, nil
}

func tarKind(flag byte) string {
	switch flag {
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeSymlink:
		return "a symbolic link"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a named pipe"
	}
	return fmt.Sprintf("an entry of type %q", flag)
}
