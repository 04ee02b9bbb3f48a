package names_test

import (
	"fmt"

	"github.com/holdfast/holdfast/names"
)

// A Set finds names that cannot lie beside each other in one object.
func ExampleSet_Add() {
	set := names.NewSet()
	for i, name := range []string{"maps/north.tif", "Maps/north.tif", "maps", "maps/north.tif"} {
		clash := set.Add(name, i+1)
		switch clash.Kind {
		case names.Fine:
			fmt.Println(name, "is fine")
		case names.Variant:
			fmt.Println(name, "differs only by case from number", clash.At)
		case names.FileFolder:
			fmt.Println(name, "is the folder of number", clash.At)
		case names.Same:
			fmt.Println(name, "is number", clash.At, "again")
		}
	}
	// Output:
	// maps/north.tif is fine
	// Maps/north.tif differs only by case from number 1
	// maps is the folder of number 1
	// maps/north.tif is number 1 again
}
