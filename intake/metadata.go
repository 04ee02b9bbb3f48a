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

// descriptions judges the files by which a container describes its object, where they count: at its
// top, or in a bag's payload folder, which is known only in the end.
type descriptions struct {
	faults map[string][]Fault // by folder
	held   int                // octets of them, without those of the first folders
	more   bool               // there are faults that are not kept
	named  bool               // one that may count gives an ARK or a local id
	// withoutDC: the local ids of mrt-dc.xml do not count.
	withoutDC bool
}

// names says whether a file of this name may give its object an ARK or a local id.
func (o Options) names(file string) bool {
	return file == metadata.ERCFile || file == metadata.DublinCoreFile && !o.WithoutDC
}

// mostDescribed bounds what is kept of faulty descriptions in folders that may be a bag's payload.
// One of them counts, if any.
const mostDescribed = 1 << 20

// meet reads a file when it may be one that describes. The error is that of r.
func (d *descriptions) meet(name string, r io.Reader) error {
	folder := path.Dir(name)
	above, last := path.Split(folder)
	first := folder == "." || folder == bagit.PayloadDir
	if !first && (last != bagit.PayloadDir || strings.Count(above, "/") > 1) { // a bag's base lies one folder deep at most
		return nil
	}
	s := metadata.Sources{SuppressDublinCoreLocalID: d.withoutDC}
	var err error
	switch path.Base(name) {
	case metadata.ERCFile:
		s.ERC = new(metadata.ERC)
		*s.ERC, err = metadata.ReadERC(r)
	case metadata.DataCiteFile:
		_, err = metadata.ReadDataCite(r) // whose identifiers are no names of the object
	case metadata.DublinCoreFile:
		s.DublinCore = new(metadata.DublinCore)
		*s.DublinCore, err = metadata.ReadDublinCore(r)
	}
	if err == nil {
		m, conflict := metadata.Merge(s) // which is told when the object gets its name
		d.named = d.named || conflict != nil || m.PrimaryID != "" || len(m.LocalIDs) > 0
	}
	if !metadata.Malformed(err) {
		return err
	}
	f := descriptionFault(name, faults.Cut(err.Error()), fmt.Sprintf("correct it, or leave %s out", path.Base(name)))
	if !first { // of the first there are three files each
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

// of returns the faults of the files that count where the payload lies in folder, "." for the top.
func (d *descriptions) of(folder string) []Fault {
	wrong := d.faults["."]
	if folder != "." {
		wrong = append(wrong, d.faults[folder]...)
	}
	if d.more && folder != "." && folder != bagit.PayloadDir {
		// One of those that were not kept may be this folder's. Who cannot tell does not accept.
		wrong = append(wrong, descriptionFault(folder, "there are too many files that describe objects and cannot be read",
			"correct them, or leave them out; leave out what lies beside the bag"))
	}
	return wrong
}

func descriptionFault(file, message, fix string) Fault {
	return Fault{Severity: Error, Rule: "description", File: file, Message: message, Fix: fix}
}
