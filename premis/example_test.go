package premis_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/premis"
)

// A document names an object, what was done to it, and who did it, in this order.
func Example() {
	object := premis.Identifier{Type: "ARK", Value: "ark:/99999/fk4x2y"}
	agent := premis.Identifier{Type: "local", Value: "Holdfast"}
	var out strings.Builder
	w := premis.NewWriter(&out)
	err := errors.Join(
		w.WriteObject(&premis.Object{Category: premis.IntellectualEntity, IDs: []premis.Identifier{object}}),
		w.WriteEvent(&premis.Event{
			ID: premis.EventID("item-1", "ingestion"), Type: premis.Ingestion, Outcome: premis.Success,
			Time:    time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
			Agents:  []premis.Link{{ID: agent, Roles: []string{premis.ExecutingProgram}}},
			Objects: []premis.Link{{ID: object}},
		}),
		w.WriteAgent(&premis.Agent{IDs: []premis.Identifier{agent}, Names: []string{"Holdfast"}, Type: premis.Software}),
		w.Close(),
	)
	fmt.Println(err, strings.Count(out.String(), "ark:/99999/fk4x2y"))
	// Output: <nil> 2
}
