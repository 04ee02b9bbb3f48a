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

// maxBagProfile bounds a collection's BagIt profile: every submission carries a copy, as it was at
// that moment.
const maxBagProfile = 64 << 10

// bagProfileFaults says all that is wrong with a BagIt profile. An empty one, or null, asks for
// nothing.
func bagProfileFaults(location string, doc json.RawMessage) []wire.Fault {
	doc = compacted(doc)
	if len(doc) == 0 {
		return nil
	}
	if len(doc) > maxBagProfile {
		return []wire.Fault{{Location: location, Message: fmt.Sprintf("has %d bytes; at most %d are kept", len(doc), maxBagProfile)}}
	}
	profile, err := bagit.ParseProfile(bytes.NewReader(doc))
	if err == nil {
		if !slices.ContainsFunc(bagit.PackedForms(), profile.Accepts) {
			return []wire.Fault{{
				Location: location + ".Serialization",
				Message:  "no bag could be taken in: every one arrives packed, a folder as a tar; accept application/x-tar or application/zip",
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

// compacted takes the white space out of a document, and takes null for none. What is not JSON
// stays as it is.
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
