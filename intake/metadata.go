package intake

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/metadata"
)

// descriptions checks the metadata files of a container that count: those at its top, and those in
// a bag's payload folder, which is known only at the end.
type descriptions struct {
	faults map[string][]Fault // by folder
	held   int                // octets of the faults, without those of the first folders
	more   bool               // some faults were not kept
	named  bool               // a file that may count has an ARK or a local id
	// withoutDC ignores the local ids of mrt-dc.xml.
	withoutDC bool
}

// names reports whether a file of this name may contain the object's ARK or a local id.
func (o Options) names(file string) bool {
	return file == metadata.ERCFile || file == metadata.DublinCoreFile && !o.WithoutDC
}

// mostDescribed bounds the faults that are kept for folders that may be a bag's payload folder. At
// most one of these folders counts.
const mostDescribed = 1 << 20

// add reads a file if it is a metadata file that may count. The error comes from r.
func (d *descriptions) add(name string, r io.Reader) error {
	folder := path.Dir(name)
	above, last := path.Split(folder)
	first := folder == "." || folder == bagit.PayloadDir
	if !first && (last != bagit.PayloadDir || strings.Count(above, "/") > 1) { // a bag's base is at most one folder deep
		return nil
	}
	s := metadata.Sources{SuppressDublinCoreLocalID: d.withoutDC}
	var err error
	switch path.Base(name) {
	case metadata.ERCFile:
		s.ERC = new(metadata.ERC)
		*s.ERC, err = metadata.ReadERC(r)
	case metadata.DataCiteFile:
		_, err = metadata.ReadDataCite(r) // its identifiers do not name the object
	case metadata.DublinCoreFile:
		s.DublinCore = new(metadata.DublinCore)
		*s.DublinCore, err = metadata.ReadDublinCore(r)
	}
	if err == nil {
		m, conflict := metadata.Merge(s) // the conflict is reported when the object is named
		d.named = d.named || conflict != nil || m.PrimaryID != "" || len(m.LocalIDs) > 0
	}
	if !metadata.Malformed(err) {
		return err
	}
	f := descriptionFault(name, faults.Cut(err.Error()), fmt.Sprintf("correct it, or leave %s out", path.Base(name)))
	if !first { // the first folders have at most three such files each
		if d.held += len(name) + len(folder) + len(f.Message) + 500; d.held > mostDescribed {
			d.more = true
			return nil
		}
	}
	if d.faults == nil {
		d.faults = map[string][]Fault{}
	}
	d.faults[folder] = append(d.faults[folder], f)
	return nil
}

// of returns the faults that count if the payload lies in folder, "." for the top.
func (d *descriptions) of(folder string) []Fault {
	wrong := d.faults["."]
	if folder != "." {
		wrong = append(wrong, d.faults[folder]...)
	}
	if d.more && folder != "." && folder != bagit.PayloadDir {
		// The faults of this folder may be among those that were not kept, so refuse.
		wrong = append(wrong, descriptionFault(folder, "too many metadata files cannot be read",
			"correct them or leave them out; also leave out what lies beside the bag"))
	}
	return wrong
}

func descriptionFault(file, message, fix string) Fault {
	return Fault{Severity: Error, Rule: "description", File: file, Message: message, Fix: fix}
}
