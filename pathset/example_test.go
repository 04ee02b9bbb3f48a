package pathset_test

import (
	"fmt"

	"github.com/holdfast/holdfast/pathset"
)

// A Set finds names that cannot lie beside each other in one object.
func ExampleSet_Add() {
	set := pathset.NewSet()
	for i, name := range []string{"maps/north.tif", "Maps/north.tif", "maps", "maps/north.tif"} {
		clash := set.Add(name, i+1)
		switch clash.Kind {
		case pathset.Fine:
			fmt.Println(name, "is fine")
		case pathset.Variant:
			fmt.Println(name, "differs only by case from number", clash.At)
		case pathset.FileFolder:
			fmt.Println(name, "is the folder of number", clash.At)
		case pathset.Same:
			fmt.Println(name, "is number", clash.At, "again")
		}
	}
	// Output:
	// maps/north.tif is fine
	// Maps/north.tif differs only by case from number 1
	// maps is the folder of number 1
	// maps/north.tif is number 1 again
}
