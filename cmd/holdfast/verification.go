package main

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// verification adds up what verifying objects came to.
type verification struct {
	objects, damaged, files, bytes int64
	alone                          int64     // not damaged, and compared with their inventories only
	codes                          []outcome // of objects that could not be verified
}

// found notes one object's report, and prints it.
func (v *verification) found(a *app, r wire.VerifyReport) error {
	v.objects++
	v.files += int64(r.Files)
	v.bytes += r.Bytes
	verdict, against := "sound", ""
	switch {
	case !r.Valid:
		v.damaged++
		verdict = "DAMAGED"
	case r.Against == wire.AgainstInventory:
		v.alone++
		verdict, against = "UNSURE", "  compared with its own inventory only, not with the Registry's record"
	}
	if a.json {
		return a.printJSON(r)
	}
	_, err := fmt.Fprintf(a.out, "%-7s  %s  v%d  %s  %s%s\n", verdict, r.ObjectID, r.Version, plural(int64(r.Files), "file", "files"), sizeText(r.Bytes), against)
	if len(r.Replicas) > 1 {
		for _, replica := range r.Replicas {
			verdict := "sound"
			if !replica.Valid {
				verdict = "DAMAGED"
			}
			if err == nil {
				_, err = fmt.Fprintf(a.out, "         %-7s  in storage %s  v%d\n", verdict, replica.Storage, replica.Version)
			}
		}
	}
	for _, f := range r.Faults {
		if err == nil {
			_, err = fmt.Fprintf(a.out, "         %s  %s  %s  %s\n", f.Code, f.Storage, clean(f.Path), clean(f.Message))
		}
	}
	return err
}

// text says on one line what was done and what it came to.
func (v *verification) text() string {
	text := fmt.Sprintf("verified %s, %s, %s, against the digests and versions that the Registry recorded: %s sound, %s damaged",
		plural(v.objects, "object", "objects"), plural(v.files, "file", "files"), sizeText(v.bytes),
		registry.CountText(v.objects-v.damaged-v.alone), registry.CountText(v.damaged))
	if v.alone > 0 {
		text += fmt.Sprintf(", %s compared with the inventory beside the files only, since the Registry could not read its record: verify again",
			registry.CountText(v.alone))
	}
	return text
}

// code is 1 when anything is damaged, whatever else happened: that is what somebody has to see to first. What was not compared with
// the record is to be verified again.
func (v *verification) code() outcome {
	if v.damaged > 0 {
		return exitFailed
	}
	if v.alone > 0 {
		v.codes = append(v.codes, exitTemporary)
	}
	if v.objects > v.alone && len(v.codes) > 0 {
		return exitPartly
	}
	return together(v.codes)
}
