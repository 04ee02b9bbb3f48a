package rebuild

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
)

// events returns what is to be told of the object, by version. A repeat has the same ids.
func (w *newcomer) events(ark string, at time.Time) (events []registry.Premis) {
	add := func(version int, kind premis.EventType, detail string) {
		events = append(events, registry.Premis{
			ID: premis.EventID("adoption of "+ark, string(kind), fmt.Sprint(version)).Value, ObjectID: ark, Version: version,
			Type: string(kind), At: at, Agent: "Holdfast " + w.Software, Outcome: "success", Detail: detail,
		})
	}
	if ARKOf(w.found.ID) == "" {
		add(1, premis.IdentifierAssignment, fmt.Sprintf("%s, for the object that is stored as %s", ark, w.found.ID))
	}
	for n := 1; n <= w.found.Head; n++ {
		if n == w.found.Head {
			text := fmt.Sprintf("valid as an object of OCFL %s, every file of all versions read and compared by %s", w.found.Spec, w.found.Algorithm)
			if len(w.out.Warnings) > 0 {
				text = fmt.Sprintf("valid as an object of OCFL %s, every file of all versions read and compared by %s; warnings: %s",
					w.found.Spec, w.found.Algorithm, strings.Join(w.out.Warnings, "; "))
			}
			add(n, premis.Validation, text)
		}
		add(n, premis.Ingestion, fmt.Sprintf("version %d, which others stored as %s, adopted as it lies in %s", n, w.found.ID, w.address()))
	}
	return events
}

// address returns the address of the storage, or its name.
func (w *newcomer) address() string {
	if w.Root.Address != "" {
		return w.Root.Address
	}
	return w.Root.Name
}
