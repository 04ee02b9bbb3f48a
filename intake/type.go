package intake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// HeadLen is how much of a payload Recognise should see.
const HeadLen = source.SniffLen

// Recognise tells a payload's type by its first bytes, or all of a shorter one; names are not
// looked at. A manifest that names no known profile is taken for an object manifest, so that its
// submitter is told what is wrong with it. Whether a container holds a bag shows only when it is
// opened.
func Recognise(head []byte) registry.PayloadType {
	if kind, ok := checkm.Detect(head); ok {
		if t := registry.PayloadType(kind); slices.Contains(registry.PayloadTypes(), t) {
			return t
		}
		return registry.ObjectManifest
	}
	if source.Sniff(head) != "" {
		return registry.ContainerType
	}
	return registry.FileType
}

// Resolve settles an automatic type by content. A container stays automatic: that it is a bag shows
// only when it is opened. A manifest that names no known profile is a *Refusal: what it lists, only
// its submitter can say.
func Resolve(t registry.PayloadType, head []byte) (registry.PayloadType, error) {
	if t != registry.AutoType {
		return t, nil
	}
	if kind, ok := checkm.Detect(head); ok && kind == checkm.Unknown {
		v := newReport("manifest")
		v.add(manifestFault(checkm.Fault{
			Line: 1, Rule: checkm.RuleNoProfile, Severity: checkm.Error, Manifest: true,
			Expected: "a #%profile line with one of Merritt's profiles", Found: "none that is known",
			Fix: "add the profile, or say by the type what the manifest lists",
		}))
		return "", &Refusal{Report: v.settle()}
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
