package noid_test

import (
	"crypto/rand"
	"fmt"

	"github.com/holdfast/holdfast/noid"
)

// A template draws a name, and knows a name of its own that was typed wrong.
func ExampleTemplate_Mint() {
	template, err := noid.ParseTemplate("99999/fk4.reeeeeeeek")
	if err != nil {
		panic(err)
	}
	ark, err := template.Mint(rand.Reader)
	if err != nil {
		panic(err)
	}
	fmt.Println(ark.NAAN, len(ark.Name), noid.CheckARK(ark))
	// Output: 99999 12 ok
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
