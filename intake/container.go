package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// judgeContainer walks a container to its end. If it is a bag or has an mrt-manifest.txt, it walks
// the container again, because only then it knows which digests are needed.
func judgeContainer(ctx context.Context, in unpack.Input, t registry.PayloadType, o Options) (Report, error) {
	v := newReport(string(registry.ContainerType))
	var top TopFolder
	var tops []string // names that may be the bag's tag files
	var list *Listing
	described := descriptions{withoutDC: o.WithoutDC}
	var long []Fault   // long names
	var unlisted error // the error of reading the mrt-manifest.txt
	err := unpack.Walk(ctx, in, o.Limits, func(e unpack.Entry, r io.Reader) error {
		v.Files, v.Bytes = v.Files+1, v.Bytes+e.Size
		top.Add(e.Name)
		if part := pathset.LongPart(e.Name); part != "" && len(long) < faults.Most {
			long = append(long, longName(e.Name, part))
		}
		if strings.Count(e.Name, "/") <= 1 && len(tops) < mostTops {
			tops = append(tops, e.Name)
		}
		if e.Name == ListingFile {
			list, unlisted = ReadListing(r)
		}
		return described.add(e.Name, r) // Walk returns errors of r too
	})
	v.named = described.named
	isBag := t == registry.BagType || t == registry.AutoType && top.Bag()
	if isBag {
		v.Type = string(registry.BagType)
	}
	refusal := ContainerRefusal(err)
	switch {
	case refusal != nil:
		v.addAll(refusal.Report)
		v.limited = refusal.Report.limited
	case err != nil:
		return Report{}, err
	case v.Files == 0:
		v.add(Fault{Severity: Error, Rule: "container-empty", Message: "it holds no files", Fix: "pack the files to preserve, and submit that"})
	case isBag:
		return judgeBag(ctx, in, v, tops, &described, o)
	case unlisted != nil:
		refusal, ok := AsRefusal(unlisted)
		if !ok {
			return Report{}, unlisted
		}
		v.addAll(refusal.Report)
	case list != nil:
		if err := judgeListing(ctx, in, v, list, o); err != nil {
			return Report{}, err
		}
	}
	v.addFaults(described.of("."))
	v.addFaults(long)
	return v.settle(), nil
}

// longName warns of a name that most disks cannot hold.
func longName(name, part string) Fault {
	return Fault{
		Severity: Warning, Rule: string(checkm.RuleNameLong), File: name, Found: fmt.Sprintf("a part of %d bytes", len(part)),
		Expected: fmt.Sprintf("parts of at most %d bytes between slashes", pathset.MaxPart),
		Fix:      "it is kept, but cannot be exported to most disks: shorten the name",
	}
}

// judgeListing compares the files of a sound container with its list.
func judgeListing(ctx context.Context, in unpack.Input, v *Report, list *Listing, o Options) error {
	err := unpack.Walk(ctx, in, o.Limits, func(e unpack.Entry, r io.Reader) error { return list.checkFile(e.Name, e.Size, r) })
	if err != nil {
		return err
	}
	listed := list.Finish()
	v.addFaults(listed)
	v.countMore(list.Wrong()-int64(len(listed)), 0)
	return nil
}

// ContainerRefusal returns the refusal for an error of unpack.Walk, or nil if the container is not
// at fault.
func ContainerRefusal(err error) *Refusal {
	v := newReport(string(registry.ContainerType))
	var several *unpack.Faults
	var one *unpack.Error
	switch {
	case errors.As(err, &several):
		for _, e := range several.List {
			v.add(containerFault(e))
		}
		v.Errors += int64(several.More)
		v.limited = several.Limit
		if several.Cut {
			v.add(Fault{Severity: Warning, Rule: "container-cut", Message: "the rest of it was not checked", Fix: "correct what is listed, and check it again"})
		}
	case errors.As(err, &one) && one.ContentFault():
		v.add(containerFault(one))
		v.limited = one.Fault == unpack.FaultLimit
	default:
		return nil
	}
	return &Refusal{Report: v.settle()}
}

func containerFault(e *unpack.Error) Fault {
	f := Fault{Severity: Error, Rule: fmt.Sprintf("container-%s", e.Fault), File: e.Entry, Message: e.Detail}
	if !utf8.ValidString(e.Entry) {
		f.File = pathset.Escape(e.Entry)
	}
	if e.Err != nil {
		f.Message += ": " + e.Err.Error()
	}
	return f
}

// mostTops bounds the names that are kept of a container that may be a bag. No bag has that many
// tag files; missing one costs time, never a wrong verdict.
const mostTops = 10_000
