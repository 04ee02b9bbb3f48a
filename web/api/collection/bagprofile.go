package collection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/web/wire"
)

// maxBagProfile bounds a collection's BagIt profile, in bytes: every submission stores a copy.
const maxBagProfile = 64 << 10

// bagProfileFaults returns all faults of a BagIt profile. An empty one, or null, requires nothing.
func bagProfileFaults(location string, doc json.RawMessage) []wire.Fault {
	doc = compacted(doc)
	if len(doc) == 0 {
		return nil
	}
	if len(doc) > maxBagProfile {
		return []wire.Fault{{Location: location, Message: fmt.Sprintf("has %d bytes; at most %d are allowed", len(doc), maxBagProfile)}}
	}
	profile, err := bagit.ParseProfile(bytes.NewReader(doc))
	if err == nil {
		if !slices.ContainsFunc(bagit.PackedForms(), profile.Accepts) {
			return []wire.Fault{{
				Location: location + ".Serialization",
				Message:  "this profile accepts no packed bag, but every bag arrives packed, a folder as a tar; accept application/x-tar or application/zip",
			}}
		}
		return nil
	}
	var faults []wire.Fault
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []wire.Fault{{Location: location, Message: err.Error()}}
	}
	for _, err := range all.Unwrap() {
		fault := wire.Fault{Location: location, Message: err.Error()}
		if of := (*bagit.ProfileError)(nil); errors.As(err, &of) {
			fault.Message = of.Reason
			if of.Field != "" {
				fault.Location += "." + of.Field
			}
		}
		faults = append(faults, fault)
	}
	return faults
}

// compacted removes the white space of a JSON document. It returns nil for null, and invalid JSON
// unchanged.
func compacted(doc json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, doc) != nil {
		return doc
	}
	if out.String() == "null" {
		return nil
	}
	return out.Bytes()
}
