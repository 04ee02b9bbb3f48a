package intake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// HeadLen is how many bytes of a payload Recognise should see.
const HeadLen = source.SniffLen

// Recognise returns a payload's type by its first bytes; names do not matter. A manifest without a
// known profile counts as an object manifest, so that its submitter gets that fault. Whether a
// container holds a bag shows only when it is opened.
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

// Resolve replaces AutoType by the type that the content shows. A container keeps AutoType, because
// only opening it shows whether it is a bag. A manifest without a known profile is a *Refusal,
// because only its submitter knows what it lists.
func Resolve(t registry.PayloadType, head []byte) (registry.PayloadType, error) {
	if t != registry.AutoType {
		return t, nil
	}
	if kind, ok := checkm.Detect(head); ok && kind == checkm.Unknown {
		v := newReport("manifest")
		v.add(manifestFault(checkm.Fault{
			Line: 1, Rule: checkm.RuleNoProfile, Severity: checkm.Error, Manifest: true,
			Expected: "a #%profile line with one of Merritt's profiles", Found: "no known profile",
			Fix: "add the profile, or give the type of the manifest when you submit it",
		}))
		return "", &Refusal{Report: v.settle()}
	}
	if t := Recognise(head); t != registry.ContainerType {
		return t, nil
	}
	return registry.AutoType, nil
}

// ParseType returns the payload type with this name. The error lists all types.
func ParseType(name string) (registry.PayloadType, error) {
	t := registry.PayloadType(strings.ToLower(name))
	if !slices.Contains(registry.PayloadTypes(), t) {
		return "", fmt.Errorf("unknown payload type %q; use one of %v", name, registry.OneOf(registry.PayloadTypes()))
	}
	return t, nil
}

// IsManifest reports whether payloads of this type are Checkm manifests.
func IsManifest(t registry.PayloadType) bool {
	_, batch := t.JobType()
	return batch || t == registry.ObjectManifest
}
