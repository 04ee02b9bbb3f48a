package intake

import (
	"strings"

	"github.com/holdfast/holdfast/bagit"
)

// TopFolder tells whether a container or folder is a bag, by the names of its files, which it is
// shown in any order.
//
// It is one when a declaration (bagit.txt) lies at its top, or in the one folder that everything
// lies in. Where there are payload manifests beside a payload folder it was meant to be one, and is
// judged as one: to preserve a bag that has lost its declaration as mere files would let nobody
// notice.
type TopFolder struct {
	met, several bool
	name         string // the folder of all so far, "" for none
	top, below   bagSigns
}

// bagSigns are what is at the top of a bag.
type bagSigns struct{ declaration, manifest, payload bool }

// Meet takes note of a file's name.
func (t *TopFolder) Meet(name string) {
	folder, rest, within := strings.Cut(name, "/")
	t.top.meet(name)
	if within {
		t.below.meet(rest)
	} else {
		folder = ""
	}
	t.several = t.several || t.met && t.name != folder
	t.met, t.name = true, folder
}

// Bag says whether the names so far are those of a bag.
func (t *TopFolder) Bag() bool { return t.top.bag() || !t.several && t.below.bag() }

func (s *bagSigns) meet(name string) {
	s.declaration = s.declaration || name == bagit.DeclarationFile
	s.manifest = s.manifest || strings.HasPrefix(name, "manifest-") && strings.HasSuffix(name, ".txt") && !strings.Contains(name, "/")
	s.payload = s.payload || strings.HasPrefix(name, bagit.PayloadDir+"/")
}

func (s *bagSigns) bag() bool { return s.declaration || s.manifest && s.payload }
