package mint_test

import (
	"crypto/rand"
	"fmt"

	"github.com/holdfast/holdfast/mint"
)

// A template draws a name, and knows a name of its own that was typed wrong.
func ExampleTemplate_Mint() {
	template, err := mint.ParseTemplate("99999/fk4.reeeeeeeek")
	if err != nil {
		panic(err)
	}
	ark, err := template.Mint(rand.Reader)
	if err != nil {
		panic(err)
	}
	fmt.Println(ark.NAAN, len(ark.Name), mint.CheckARK(ark))
	// Output: 99999 12 ok
}

// Two ways to write one ARK name the same object.
func ExampleARK_ObjectID() {
	for _, text := range []string{"ark:/99999/fk4-x2y/page/3?info", "ARK:99999/fk4x2y"} {
		ark, err := mint.ParseARK(text)
		if err != nil {
			panic(err)
		}
		fmt.Println(ark.ObjectID())
	}
	// Output:
	// ark:/99999/fk4x2y
	// ark:/99999/fk4x2y
}
