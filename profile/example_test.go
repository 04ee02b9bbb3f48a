package profile_test

import (
	"fmt"

	"github.com/holdfast/holdfast/profile"
)

// Parse reports all faults of a document, each with its place.
func ExampleParse() {
	_, err := profile.Parse([]byte("ownr: ark:/99999/library\ncollections: ark:/99999/maps\n"))
	fmt.Println(err)

	doc, err := profile.Parse([]byte("owner: ark:/99999/library\ncollections: [ark:/99999/maps]\n"))
	fmt.Println(doc.Profile.Owner, doc.Profile.Collections, err)
	// Output:
	// line 1, column 1: ownr is unknown; did you mean owner?
	// line 2, column 14: collections is text; want a list, even for one value: [ark:/99999/maps]
	// ark:/99999/library [ark:/99999/maps] <nil>
}
