package registry_test

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// The stages that an item passes are those of its action's route, with the optional steps that it
// takes.
func ExampleRoute_With() {
	route, _ := registry.RouteOf(registry.Ingest)
	for _, optional := range [][]registry.Stage{nil, {registry.Replicate}} {
		next, _ := route.With(optional).Next(registry.Process)
		fmt.Println(next)
	}
	// Output:
	// record
	// replicate
}

func ExampleOneOf() {
	fmt.Println(registry.OneOf([]registry.Stage{registry.Expand}))
	fmt.Println(registry.OneOf([]registry.Stage{registry.Expand, registry.Report, registry.Scan}))
	fmt.Println(registry.AllOf([]string{"north", "south"}))
	// Output:
	// expand
	// expand, report or scan
	// north and south
}
