package repeat_test

import (
	"fmt"

	"github.com/holdfast/holdfast/repeat"
)

// The third record repeats the first.
func Example() {
	records := []string{"a", "b", "a"}
	f := repeat.New[int](int64(len(records)), repeat.Kept)
	for line, r := range records {
		if first, ok := f.First(repeat.SumOf(r), line+1); ok {
			fmt.Printf("line %d repeats line %d\n", line+1, first)
		}
	}
	// Output: line 3 repeats line 1
}
