package main

import (
	"fmt"

	"github.com/holdfast/holdfast/registry/wire"
)

// verification adds up what verifying objects came to.
type verification struct {
	objects, damaged, files, bytes int64
	codes                          []outcome // of objects that could not be verified
}

// found notes one object's report, and prints it.
func (v *verification) found(a *app, r wire.VerifyReport) error {
	v.objects++
	v.files += int64(r.Files)
	v.bytes += r.Bytes
	verdict := "sound"
	if !r.Valid {
		v.damaged++
		verdict = "DAMAGED"
	}
	if a.json {
		return a.printJSON(r)
	}
	_, err := fmt.Fprintf(a.out, "%-7s  %s  v%d  %s  %s\n", verdict, r.ObjectID, r.Version, plural(int64(r.Files), "file", "files"), sizeText(r.Bytes))
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

// code is 1 when anything is damaged, whatever else happened: that is what somebody has to see to first.
func (v *verification) code() outcome {
	if v.damaged > 0 {
		return exitFailed
	}
	if v.objects > 0 && len(v.codes) > 0 {
		return exitPartly
	}
	return together(v.codes)
}
