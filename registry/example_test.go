package registry_test

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// A query is words and field:value, all of which must match.
func ExampleParseQuery() {
	query, err := registry.ParseQuery(`State:FAILED -collection:maps "glass plates"`)
	if err != nil {
		panic(err)
	}
	for _, term := range query.Terms {
		fmt.Printf("%q %q %v\n", term.Field, term.Value, term.Not)
	}
	_, err = registry.ParseQuery("colour:red")
	fmt.Println(err != nil)
	// Output:
	// "state" "failed" false
	// "collection" "maps" true
	// "" "glass plates" false
	// true
}

// The stages that an item passes are those of its action's route, with the optional steps that it takes.
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
