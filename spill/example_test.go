package spill_test

import (
	"fmt"

	"github.com/holdfast/holdfast/spill"
)

// Records of any number are kept in bounded memory and read back in order.
func Example() {
	space := spill.NewSpace("", 1<<30)
	defer space.Close()
	log := space.NewLog()
	for i := range 100_000 {
		log.Append(fmt.Appendf(nil, "record %d", i))
	}
	last := ""
	for record := range log.Records() {
		last = string(record)
	}
	if err := space.Err(); err != nil {
		panic(err)
	}
	fmt.Println(log.Len(), "records, the last is", last)
	// Output: 100000 records, the last is record 99999
}
