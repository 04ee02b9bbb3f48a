package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// judgeContainer walks a container to its end, and then once more when it is a bag or has an
// mrt-manifest.txt: only now it is known which digests are needed of its files.
func judgeContainer(ctx context.Context, in unpack.Input, t registry.PayloadType, o Options) (Report, error) {
	v := newReport(string(registry.ContainerType)).atMost(o.MaxFaults)
	var top TopFolder
	var tops []string // names that a bag's own files may have
	var list *Listing
	described := descriptions{withoutDC: o.WithoutDC}
	var long []Fault   // of names
	var unlisted error // why there is no list although there is an mrt-manifest.txt
	err := unpack.Walk(ctx, in, o.Limits, func(e unpack.Entry, r io.Reader) error {
		v.Files, v.Bytes = v.Files+1, v.Bytes+e.Size
		top.Meet(e.Name)
		if part := pathset.LongPart(e.Name); part != "" && len(long) < v.most {
			long = append(long, longName(e.Name, part))
		}
		if strings.Count(e.Name, "/") <= 1 && len(tops) < mostTops {
			tops = append(tops, e.Name)
		}
		if e.Name == ListingFile {
			list, unlisted = ReadListing(r)
		}
		return described.meet(e.Name, r) // an error of r is the walk's, too
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
		Fix:      "it is kept, but cannot be exported to most disks: shorten it",
	}
}

// judgeListing holds the files of a sound container against its list.
func judgeListing(ctx context.Context, in unpack.Input, v *Report, list *Listing, o Options) error {
	err := unpack.Walk(ctx, in, o.Limits, func(e unpack.Entry, r io.Reader) error { return list.meet(e.Name, e.Size, r) })
	if err != nil {
		return err
	}
	listed := list.Finish()
	v.addFaults(listed)
	v.countMore(list.Wrong()-int64(len(listed)), 0)
	return nil
}

// ContainerRefusal is the verdict on a container that unpack.Walk ended over; nil when the error is
// not one of the container.
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
			v.add(Fault{Severity: Warning, Rule: "container-cut", Message: "the rest of it was not looked at", Fix: "correct what is listed, and check it again"})
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

// mostTops bounds the names that are kept of a container that may be a bag: no bag has that many
// files of its own, and those that are missed cost digests, never a verdict.
const mostTops = 10_000
