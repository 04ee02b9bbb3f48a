package noid_test

import (
	"crypto/rand"
	"fmt"

	"github.com/holdfast/holdfast/noid"
)

// Mint makes a name with a check character, which reveals typing errors.
func ExampleTemplate_Mint() {
	template, err := noid.ParseTemplate("99999/fk4.reeeeeeeek")
	if err != nil {
		panic(err)
	}
	ark, err := template.Mint(rand.Reader)
	if err != nil {
		panic(err)
	}
	fmt.Println(ark.NAAN, len(ark.Name))

	// Swap the last two characters before the check character of a name.
	good, err := noid.ParseARK("ark:/99999/fk4000000bcf")
	if err != nil {
		panic(err)
	}
	likely, mistyped := template.Mistyped(good)
	fmt.Println(mistyped, len(likely) > 0)
	// Output:
	// 99999 12
	// true true
}

// Two ways to write one ARK name the same object.
func ExampleARK_ObjectID() {
	for _, text := range []string{"ark:/99999/fk4-x2y/page/3?info", "ARK:99999/fk4x2y"} {
		ark, err := noid.ParseARK(text)
		if err != nil {
			panic(err)
		}
		fmt.Println(ark.ObjectID())
	}
	// Output:
	// ark:/99999/fk4x2y
	// ark:/99999/fk4x2y
}
