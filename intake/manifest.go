package intake

import (
	"io"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// Manifest checks a manifest of type t to its end. An object manifest is accepted or refused as a
// whole. A batch manifest is refused only for faults of the manifest itself, because bad rows fail
// alone. The error comes from r.
func Manifest(r io.Reader, t registry.PayloadType, o Options) (Report, error) {
	v, err := judgeManifest(r, t, o)
	if err != nil {
		return Report{}, err
	}
	return v.settle(), nil
}

func judgeManifest(r io.Reader, t registry.PayloadType, o Options) (*Report, error) {
	v := newReport(string(t))
	_, v.batch = t.JobType()
	v.named = v.batch
	report, err := checkm.Check(r, checkm.Options{Kind: checkm.Kind(t), Row: func(row *checkm.Row) ([]checkm.Fault, error) {
		v.named = v.named || o.names(row.Name)
		if o.Row == nil {
			return nil, nil
		}
		return o.Row(row)
	}})
	if err != nil {
		return nil, err
	}
	v.whole = !report.Sound
	v.Rows, v.RowsRefused, v.Bytes = report.Rows, report.Refused, report.Bytes
	if !v.batch {
		v.Files = report.Rows
	}
	for _, f := range report.Faults {
		v.add(manifestFault(f))
	}
	v.Errors, v.Warnings = report.Errors, report.Warnings
	return v, nil
}

func manifestFault(f checkm.Fault) Fault {
	return Fault{
		Severity: Severity(f.Severity), Rule: string(f.Rule), Line: f.Line, Column: f.Column, Field: f.Field,
		Expected: f.Expected, Found: f.Found, Fix: f.Fix,
	}
}
