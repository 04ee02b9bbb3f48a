// Package intake says what a payload is and whether it can be taken: the judgement that the API passes on uploads, the
// expand worker on what it fetched, and `holdfast check` on a depositor's own disk, so that all three agree.
package intake

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// HeadLen is how much of a payload Recognise should see.
const HeadLen = source.SniffLen

// Recognise tells a payload's type by its first bytes, or all of a shorter one; names are not looked at. A manifest
// that names no known profile is taken for an object manifest, so that its submitter is told what is wrong with it.
// Whether a container holds a bag shows only when it is opened.
func Recognise(head []byte) registry.PayloadType {
	if kind, ok := checkm.Detect(head); ok {
		if t := registry.PayloadType(kind); slices.Contains(registry.PayloadTypes(), t) {
			return t
		}
		return registry.ObjectManifest
	}
	if source.Sniff(head).Container() {
		return registry.ContainerType
	}
	return registry.FileType
}

// Resolve settles an automatic type by content. A container stays automatic: that it is a bag shows only when it is
// opened. A manifest that names no known profile is a *Refusal: what it lists, only its submitter can say.
func Resolve(t registry.PayloadType, head []byte) (registry.PayloadType, error) {
	if t != registry.AutoType {
		return t, nil
	}
	if kind, ok := checkm.Detect(head); ok && kind == checkm.Unknown {
		return "", &Refusal{Type: registry.AutoType, Report: checkm.Report{Errors: 1, Faults: []checkm.Fault{{
			Line: 1, Rule: checkm.RuleNoProfile, Severity: checkm.Error, Manifest: true,
			Expected: "a #%profile line with one of Merritt's profiles", Found: "none that is known",
			Fix: "add the profile, or say by the type what the manifest lists",
		}}}}
	}
	if t := Recognise(head); t != registry.ContainerType {
		return t, nil
	}
	return registry.AutoType, nil
}

// ParseType returns the payload type of a name as users write it; the error names what there is.
func ParseType(name string) (registry.PayloadType, error) {
	t := registry.PayloadType(strings.ToLower(name))
	if !slices.Contains(registry.PayloadTypes(), t) {
		return "", fmt.Errorf("unknown payload type %q; use one of %v", name, registry.PayloadTypes())
	}
	return t, nil
}

// IsManifest says whether payloads of this type are Checkm manifests.
func IsManifest(t registry.PayloadType) bool {
	_, batch := t.JobType()
	return batch || t == registry.ObjectManifest
}

// Judge reads a manifest of the given type to its end. An object manifest stands and falls as a whole; of a batch only
// what condemns the manifest itself is returned, since bad rows fail alone. The error is a *Refusal, or that of r.
func Judge(r io.Reader, t registry.PayloadType) (checkm.Report, error) {
	report, err := checkm.Check(r, checkm.Options{Kind: checkm.Kind(t)})
	if err != nil {
		return report, err
	}
	_, batch := t.JobType()
	switch {
	case batch && !report.Sound, !batch && !report.OK(), report.Rows == 0:
		return report, &Refusal{Type: t, Report: report}
	}
	return report, nil
}

// Refusal says why a manifest cannot be taken. It is a content fault.
type Refusal struct {
	Type   registry.PayloadType
	Report checkm.Report
}

// ContentFault marks the deposit as at fault.
func (e *Refusal) ContentFault() bool { return true }

// Error names the first faults and counts the rest.
func (e *Refusal) Error() string {
	const shown = 3
	var b strings.Builder
	what := string(e.Type)
	if e.Type == registry.AutoType {
		what = "manifest"
	}
	fmt.Fprintf(&b, "%s refused, %d errors", what, e.Report.Errors)
	n := 0
	for _, f := range e.Report.Faults {
		if f.Severity != checkm.Error {
			continue
		}
		if n++; n > shown {
			fmt.Fprintf(&b, "; and %d more", e.Report.Errors-shown)
			break
		}
		b.WriteString("; " + f.Error())
	}
	return b.String()
}
