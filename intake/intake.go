// Package intake recognizes the type of a payload and decides whether it can be accepted. The API
// uses it for uploads, the expand worker for fetched payloads, and `holdfast check` for files on a
// depositor's disk, so all three agree.
//
// It checks payloads as streams of bytes. Memory grows with the number of files in a container or
// bag, never with their size. A [Report] lists all faults of the payload, each with its place and
// its fix. Errors are system faults and say nothing about the payload.
package intake

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// Options control the checks of a payload. The zero value is for a collection without special
// requirements.
type Options struct {
	// Limits bound the unpacking of containers.
	Limits unpack.Limits
	// Remote is asked for each file that a manifest or fetch.txt names: whether it exists and has
	// the stated size. Nil asks for none.
	Remote source.Fetcher
	// BagProfile holds requirements on bags beyond the specification. It may be nil.
	BagProfile *bagit.Profile
	// TempDir is the folder for temporary files, which large bags need; "" is os.TempDir.
	TempDir string
	// Large removes the memory limit for OCFL objects. Otherwise an object with more than about
	// 80,000 files is refused.
	Large bool
	// WithoutDC ignores local ids in mrt-dc.xml, as registry.Profile.SuppressDCLocalIDs does.
	WithoutDC bool
	// Row returns further faults of a manifest row, such as [ARKs.Row] does. Its error ends the
	// check. It may be nil.
	Row func(*checkm.Row) ([]checkm.Fault, error)
	// Object is called with the folder and report of each object of an OCFL storage root. Its error
	// ends the check. It may be nil.
	Object func(folder string, r Report) error
}

// BagProfile returns the BagIt profile that a collection requires, or nil.
func BagProfile(p registry.Profile) (*bagit.Profile, error) {
	if len(p.BagProfile) == 0 {
		return nil, nil //nolint:nilnil // none is an answer
	}
	profile, err := bagit.ParseProfile(bytes.NewReader(p.BagProfile))
	if err != nil {
		return nil, fmt.Errorf("read the collection's bag_profile: %w; correct it in the collection's profile", err)
	}
	return profile, nil
}

// Judge recognizes the payload in and checks whether it can be accepted as type t, which may be
// AutoType. The Report of a refused payload has Accepted unset. The error comes from reading in, or
// from ctx.
func Judge(ctx context.Context, in unpack.Input, t registry.PayloadType, o Options) (Report, error) {
	t, err := resolve(ctx, in, t)
	if refusal, refused := AsRefusal(err); refused {
		return refusal.Report, nil
	} else if err != nil {
		return Report{}, err
	}
	switch {
	case in.Size == 0:
		v := newReport(string(t))
		v.add(Fault{Severity: Error, Rule: "empty", Message: "it has no bytes", Fix: "check that it is the right file"})
		return v.settle(), nil
	case IsManifest(t):
		r, err := in.Open(ctx, 0, in.Size)
		if err != nil {
			return Report{}, fmt.Errorf("open the manifest: %w", err)
		}
		defer r.Close()
		v, err := judgeManifest(r, t, o)
		if err != nil {
			return Report{}, err
		}
		if err := askManifest(ctx, v, in, t, o); err != nil {
			return Report{}, err
		}
		return v.settle(), nil
	case t == registry.FileType:
		v := newReport(string(t))
		v.Files, v.Bytes = 1, in.Size
		return v.settle(), nil
	default:
		return judgeContainer(ctx, in, t, o)
	}
}

// resolve replaces AutoType by the type that the payload's first bytes show.
func resolve(ctx context.Context, in unpack.Input, t registry.PayloadType) (registry.PayloadType, error) {
	if t != registry.AutoType {
		return t, nil
	}
	head, err := headOf(ctx, in)
	if err != nil {
		return "", err
	}
	return Resolve(t, head)
}

// headOf returns a payload's first bytes.
func headOf(ctx context.Context, in unpack.Input) ([]byte, error) {
	r, err := in.Open(ctx, 0, min(in.Size, HeadLen))
	if err != nil {
		return nil, fmt.Errorf("open the payload: %w", err)
	}
	defer r.Close()
	head, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the payload: %w", err)
	}
	return head, nil
}
