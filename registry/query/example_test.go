package query_test

import (
	"fmt"

	"github.com/holdfast/holdfast/registry/query"
)

// A query is words and field:value, all of which must match.
func ExampleParse() {
	parsed, err := query.Parse(`State:FAILED -collection:maps "glass plates"`)
	if err != nil {
		panic(err)
	}
	for _, term := range parsed.Terms {
		fmt.Printf("%q %q %v\n", term.Field, term.Value, term.Not)
	}
	_, err = query.Parse("colour:red")
	fmt.Println(err != nil)
	// Output:
	// "state" "failed" false
	// "collection" "maps" true
	// "" "glass plates" false
	// true
}
