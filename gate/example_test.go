package gate_test

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/gate"
)

// Work waits at the gate until there is a slot for it.
func ExampleGate_Enter() {
	g := gate.New(gate.Options{Small: 16 << 20, LargeSlots: 1})
	leave, err := g.Enter(context.Background(), gate.Work{Collection: "maps", Token: "depositor-1", Bytes: 1 << 30, Memory: 64 << 20})
	if err != nil {
		panic(err) // gate.ErrFull: try again later
	}
	defer leave()
	fmt.Println("unpacking")
	// Output: unpacking
}
