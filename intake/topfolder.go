package intake

import (
	"strings"

	"github.com/holdfast/holdfast/bagit"
)

// TopFolder recognizes a bag by the names of the files in a container or folder, added in any
// order.
//
// It is a bag if a declaration (bagit.txt) lies at its top, or in the only folder at its top.
// Payload manifests beside a payload folder count too: a bag that lost its declaration would
// otherwise be preserved as ordinary files, and nobody would notice.
type TopFolder struct {
	met, several bool
	name         string // the only top folder so far, "" for none
	top, below   bagSigns
}

// bagSigns are the characteristic names at the top of a bag.
type bagSigns struct{ declaration, manifest, payload bool }

// Add adds the name of a file.
func (t *TopFolder) Add(name string) {
	folder, rest, within := strings.Cut(name, "/")
	t.top.add(name)
	if within {
		t.below.add(rest)
	} else {
		folder = ""
	}
	t.several = t.several || t.met && t.name != folder
	t.met, t.name = true, folder
}

// Bag reports whether the names so far are those of a bag.
func (t *TopFolder) Bag() bool { return t.top.bag() || !t.several && t.below.bag() }

func (s *bagSigns) add(name string) {
	s.declaration = s.declaration || name == bagit.DeclarationFile
	s.manifest = s.manifest || strings.HasPrefix(name, "manifest-") && strings.HasSuffix(name, ".txt") && !strings.Contains(name, "/")
	s.payload = s.payload || strings.HasPrefix(name, bagit.PayloadDir+"/")
}

func (s *bagSigns) bag() bool { return s.declaration || s.manifest && s.payload }
