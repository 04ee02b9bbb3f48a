package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/panics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// smallFile is the size up to which several files of a bag are hashed at the same time. For a
// larger file its algorithms run in parallel instead.
const smallFile = 1 << 20

// mostWorkers bounds the files that are hashed at the same time, because each is in memory.
const mostWorkers = 8

// judgeBag checks all files of the bag in a container. tops are the names near the top of the
// container, which include those of the manifests.
func judgeBag(ctx context.Context, in unpack.Input, v *Report, tops []string, d *descriptions, o Options) (Report, error) {
	how, err := BagOptions(ctx, in, o.BagProfile)
	if err != nil {
		return Report{}, err
	}
	how.TempDir = o.TempDir
	bag := bagit.NewValidator(how)
	defer bag.Close() //nolint:errcheck // does something only after a failure
	bag.ExpectManifests(tops...)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.GOMAXPROCS(0), mostWorkers))
	err = unpack.Walk(gctx, in, o.Limits, func(e unpack.Entry, r io.Reader) error {
		if e.Size > smallFile || bag.NeedsContent(e.Name) {
			return bag.Add(gctx, e.Name, e.Size, r)
		}
		content := make([]byte, e.Size)
		if _, err := io.ReadFull(r, content); err != nil {
			return err
		}
		group.Go(func() error {
			return panics.Guard(func() error { return bag.Add(gctx, e.Name, e.Size, bytes.NewReader(content)) })
		})
		return nil
	})
	if failed := group.Wait(); failed != nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	if err != nil { // not a fault of the container, which was sound in the first walk
		return Report{}, err
	}
	report, err := bag.Finish()
	if err != nil {
		return Report{}, err
	}
	v.addFaults(d.of(path.Join(report.Base, bagit.PayloadDir)))
	if err := askBag(ctx, v, report, o); err != nil {
		return Report{}, err
	}
	return v.bag(report), nil
}

// BagOptions returns the options for checking a bag in a container. A profile may restrict the form
// of the bag, so BagOptions reads the first bytes of in. The error comes from reading.
func BagOptions(ctx context.Context, in unpack.Input, p *bagit.Profile) (bagit.Options, error) {
	o := bagit.Options{FindBase: true, Profile: p}
	if p == nil {
		return o, nil
	}
	head, err := headOf(ctx, in)
	o.Form = bagit.Form(source.Sniff(head)) // the same names in both packages
	return o, err
}

// bag takes the verdict from the report on a bag. A holey bag is accepted: the missing files are
// fetched and the bag is checked again.
func (v *Report) bag(r *bagit.Report) Report {
	v.Version, v.Files, v.Bytes = r.Version.String(), r.PayloadFiles, r.PayloadBytes
	v.addFaults(fetchFaults(r))
	holey := r.Holey()
	v.named = v.named || holey // a file still to be fetched may name the object
	listed := map[Severity]int{}
	for _, f := range r.Faults {
		severity := Severity(f.Severity)
		if holey && f.Rule == bagit.RuleNotFetched {
			severity = Warning
		}
		listed[severity]++
		v.add(Fault{
			Severity: severity, Rule: string(f.Rule), Clause: f.Clause, File: f.File, Source: f.Source,
			Expected: f.Expected, Found: f.Found, Fix: f.Fix,
		})
	}
	errs, warnings := r.ErrorCount, r.WarningCount
	if holey {
		errs, warnings = 0, errs+warnings
	}
	v.countMore(errs-int64(listed[Error]), warnings-int64(listed[Warning]))
	return v.settle()
}

// FetchRefusal returns the refusal for invalid addresses in a bag's fetch.txt, or nil. It ignores
// files that the bag has.
func FetchRefusal(r *bagit.Report) error {
	v := newReport(string(registry.BagType))
	v.addFaults(fetchFaults(r))
	return v.settled()
}

// fetchFaults checks the addresses of missing files by the rules for rows of a manifest.
func fetchFaults(r *bagit.Report) (out []Fault) {
	for _, e := range r.Fetch {
		if wrong := checkm.Address(e.URL); wrong != nil && !e.Present {
			f := manifestFault(*wrong)
			f.Line, f.File, f.Source = 0, e.File, bagit.FetchFile
			out = append(out, f)
		}
	}
	return out
}
