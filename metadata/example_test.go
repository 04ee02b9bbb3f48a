package metadata_test

import (
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/metadata"
)

// An ERC says who made what when; its identifiers name the object and what its producer calls it.
func ExampleReadERC() {
	e, err := metadata.ReadERC(strings.NewReader("erc:\nwho: Atget, Eugène\nwhat: Glass plates\nwhen: 1898\nwhere: ark:/99999/fk4x2y\nwhere: plates-1\n"))
	if err != nil {
		panic(err)
	}
	arks, local := e.Identifiers()
	fmt.Println(e.Who, e.What, e.When, arks, local)
	// Output: [Atget, Eugène] [Glass plates] [1898] [ark:/99999/fk4x2y] [plates-1]
}
