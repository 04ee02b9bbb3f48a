package intake

import (
	"fmt"
	"io"
	"path"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/erc"
	"github.com/holdfast/holdfast/faults"
)

// descriptions judges the files by which a container describes its object, where they count: at its top, or in a bag's
// payload folder.
type descriptions struct {
	faults map[string][]Fault // by folder
	met    int
}

// meet reads a file when it may be one that describes. The error is that of r.
func (d *descriptions) meet(name string, r io.Reader) error {
	folder := path.Dir(name)
	if folder != "." && path.Base(folder) != bagit.PayloadDir {
		return nil
	}
	var err error
	switch path.Base(name) {
	case erc.ERCFile:
		_, err = erc.ReadERC(r)
	case erc.DataCiteFile:
		_, err = erc.ReadDataCite(r)
	case erc.DublinCoreFile:
		_, err = erc.ReadDublinCore(r)
	}
	if !erc.Malformed(err) {
		return err
	}
	if d.met++; d.met > faults.Most { // folders named data may be very many, of which one counts
		return nil
	}
	if d.faults == nil {
		d.faults = map[string][]Fault{}
	}
	d.faults[folder] = append(d.faults[folder], Fault{
		Severity: Error, Rule: "description", File: name, Message: err.Error(), Fix: fmt.Sprintf("correct it, or leave %s out", path.Base(name)),
	})
	return nil
}

// of returns the faults of the files that count where the payload lies in folder, "." for the top.
func (d *descriptions) of(folder string) []Fault {
	wrong := d.faults["."]
	if folder != "." {
		wrong = append(wrong, d.faults[folder]...)
	}
	return wrong
}
