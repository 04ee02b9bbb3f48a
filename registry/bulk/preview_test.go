package bulk

import (
	"math/rand/v2"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// The facts that a preview asks for decide the state of an item and whether an act applies. Those
// that it leaves out in one status give no other reason there, either.
func TestAsked_Suffices(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	places := len(registry.AllStages()) * len(registry.Statuses())
	for _, act := range registry.AdminActs() {
		spec := registry.BulkSpec{Act: act}
		anywhere := 0
		for _, s := range registry.Statuses() {
			anywhere |= asked(act, s)
		}
		for range 300 {
			place, bits := random.IntN(places)<<len(facts), random.IntN(1<<len(facts))
			full := positionAt(place | bits)
			wide, part := positionAt(place|bits&anywhere), positionAt(place|bits&asked(act, full.Status))
			if registry.StateOf(full) != registry.StateOf(part) || (whyNot(full, spec) == "") != (whyNot(part, spec) == "") {
				t.Fatalf("%s at %+v: %s, %q; as asked for %s, %q", act, full, registry.StateOf(full), whyNot(full, spec), registry.StateOf(part), whyNot(part, spec))
			}
			if whyNot(wide, spec) != whyNot(part, spec) {
				t.Fatalf("%s at %+v: %q, without what this status leaves out %q", act, full, whyNot(wide, spec), whyNot(part, spec))
			}
		}
	}
}
