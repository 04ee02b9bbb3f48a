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

// smallFile is the size up to which files of a bag are digested beside each other; of larger ones
// the algorithms are.
const smallFile = 1 << 20

// mostWorkers bounds the files that are digested beside each other unless Options say otherwise:
// each is held in memory.
const mostWorkers = 8

// judgeBag looks at every file of the bag in a container. tops are the names among which those of
// its manifests are.
func judgeBag(ctx context.Context, in unpack.Input, v *Report, tops []string, d *descriptions, o Options) (Report, error) {
	how, err := BagOptions(ctx, in, o.BagProfile)
	if err != nil {
		return Report{}, err
	}
	how.TempDir = o.TempDir
	bag := bagit.NewValidator(how)
	defer bag.Close() //nolint:errcheck // only after a failure it does anything
	bag.ExpectManifests(tops...)
	workers := o.Workers
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), mostWorkers)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
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
	if err != nil { // the container itself was sound a moment ago
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

// BagOptions are how a bag in a container is judged. A profile may have a say in the form in which
// it came, which its first bytes tell. The error is that of reading in.
func BagOptions(ctx context.Context, in unpack.Input, p *bagit.Profile) (bagit.Options, error) {
	o := bagit.Options{FindBase: true, Profile: p}
	if p == nil {
		return o, nil
	}
	head, err := headOf(ctx, in)
	o.Form = bagit.Form(source.Sniff(head)) // both call the forms by the usual endings of files
	return o, err
}

// bag draws the verdict on a bag. A holey one is taken: what it leaves out is fetched, and judged
// then.
func (v *Report) bag(r *bagit.Report) Report {
	v.Version, v.Files, v.Bytes = r.Version.String(), r.PayloadFiles, r.PayloadBytes
	v.addFaults(fetchFaults(r))
	holey := r.Holey()
	v.named = v.named || holey // by what is still to be fetched
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

// FetchRefusal is the verdict on the addresses in a bag's fetch.txt, as far as they are needed; nil
// when all can be asked.
func FetchRefusal(r *bagit.Report) error {
	v := newReport(string(registry.BagType))
	v.addFaults(fetchFaults(r))
	return v.settled()
}

// fetchFaults judges the addresses of files that a bag left out, by the rule for those of a
// manifest's rows.
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
