// Package intake decides what a payload is and whether it can be accepted. The API uses it for
// uploads, the expand worker for what it fetched, and `holdfast check` on a depositor's disk, so
// all three agree.
//
// It judges a payload by its bytes alone, in streams: memory grows with the number of files in a
// container or bag, never with their size. A [Report] has all faults of the payload, each with its
// place and its cure. Errors are system faults and say nothing about the payload.
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

// Options change how a payload is judged. The zero value is what holds where a collection asks for
// nothing.
type Options struct {
	// Limits bound what containers may unpack to.
	Limits unpack.Limits
	// Remote is asked for every file that a manifest, or a bag that leaves files out, names:
	// whether it is there, and of the size that was said. Nil asks for none.
	Remote source.Fetcher
	// Workers is how many files are digested at a time; 0 is one per core.
	Workers int
	// BagProfile is what bags must meet, beside their specification; nil is nothing more.
	BagProfile *bagit.Profile
	// TempDir is the folder of temporary files, which large bags need; "" is the one that
	// os.TempDir names.
	TempDir string
	// Large has OCFL objects judged whatever memory they take. Otherwise one with more than some
	// 80,000 files is refused.
	Large bool
	// WithoutDC: local ids in mrt-dc.xml do not count, as registry.Profile.SuppressDCLocalIDs says.
	WithoutDC bool
	// Row says what is wrong with a row of a manifest beside what the manifest's rules say, as
	// [ARKs.Row] does; its error ends the judging. Nil: nothing.
	Row func(*checkm.Row) ([]checkm.Fault, error)
	// Object is told of each object of an OCFL storage root, with its folder, as soon as it is
	// judged; its error ends the judging. Nil tells nobody.
	Object func(folder string, r Report) error
	// MaxFaults is how many faults a Report lists; 0 is 1,000. All are counted.
	MaxFaults int
}

// BagProfile reads the BagIt profile that a collection demands; nil when it demands none.
func BagProfile(p registry.Profile) (*bagit.Profile, error) {
	if len(p.BagProfile) == 0 {
		return nil, nil //nolint:nilnil // none is an answer
	}
	profile, err := bagit.ParseProfile(bytes.NewReader(p.BagProfile))
	if err != nil {
		return nil, fmt.Errorf("read the collection's bag_profile: %w; give the collection another one", err)
	}
	return profile, nil
}

// Judge says what the payload in is and whether it can be taken as type t, which may be automatic.
// The verdict is there in any case but that of an error: what cannot be taken has Accepted unset.
// The error is that of reading in, or ctx's.
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

// resolve settles an automatic type by the payload's first bytes.
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

// headOf reads a payload's first bytes.
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
