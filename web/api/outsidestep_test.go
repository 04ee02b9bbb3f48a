package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestPutCollection_Steps checks that a profile may name announced functions, and that bad steps are
// refused with their places, also in a dry run.
func TestPutCollection_Steps(t *testing.T) {
	b := newBench(t)
	must(t, b.store.Announce(t.Context(), []registry.Function{
		{Name: "check"},
		{Name: "migrate", Args: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"job":{"type":"object"}},"required":["to"],"additionalProperties":false}`)},
	}))
	put := func(query, steps string) (reply, string) {
		return b.send(t, http.MethodPut, "/api/v1/collections/stepped"+query, `{"owner":"ark:/99999/o","collections":["ark:/99999/c"],"steps":`+steps+`}`)
	}
	for steps, locations := range map[string][]string{
		`[{"after":"record","function":"nothing"}]`:                                       {"body.steps[0].function"},
		`[{"after":"expand","function":"check"}]`:                                         {"body.steps[0].after"},
		`[{"after":"scan","function":"check"}]`:                                           {"body.steps[0].after"},
		`[{"after":"record","function":"check"},{"after":"record","function":"migrate"}]`: {"body.steps[1].args"},
		`[{"after":"record","function":"migrate","args":{"to":1}}]`:                       {"body.steps[0].args"},
		`[{"after":"record","function":"migrate","args":{"to":"a","job":1}}]`:             {"body.steps[0].args.job"},
		`[{"after":"notify","function":"check","blocking":true,"on":"failure"}]`:          {"body.steps[0].blocking", "body.steps[0].on"},
	} {
		for _, query := range []string{"", "?dry_run=true"} {
			answer, text := put(query, steps)
			p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
			var got []string
			for _, f := range p.Faults {
				got = append(got, f.Location)
			}
			if strings.Join(got, " ") != strings.Join(locations, " ") {
				t.Errorf("%s%s: faults at %v, want %v: %s", steps, query, got, locations, text)
			}
		}
	}
	if answer, text := put("", `[{"after":"record","function":"migrate","blocking":true,"args": { "to" : "pdf-a" }}, {"after":"scan","function":"check"}]`); answer.StatusCode == http.StatusOK {
		t.Errorf("a step after a stage that jobs do not take: %s", text)
	}
	answer, text := put("", `[{"after":"record","function":"migrate","blocking":true,"args": { "to" : "pdf-a" }}]`)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"args":{"to":"pdf-a"}`) {
		t.Fatalf("good steps: %d %s", answer.StatusCode, text)
	}
	c, err := b.as(t, registry.RoleAdmin).Collection(t.Context(), "stepped")
	must(t, err)
	must(t, b.as(t, registry.RoleAdmin).PutCollection(t.Context(), c)) // what is shown can be put again
	if again, err := b.store.Collection(t.Context(), "stepped"); err != nil || again.Version != c.Version {
		t.Errorf("put again as it is shown: version %d, was %d (%v)", again.Version, c.Version, err)
	}
}
