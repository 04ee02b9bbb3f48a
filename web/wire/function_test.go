package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// TestFunction_Seconds checks that policies are in seconds in JSON, and come back whole.
func TestFunction_Seconds(t *testing.T) {
	policy := registry.FunctionPolicy{MaxAttempts: 2, First: 1500 * time.Millisecond, Factor: 1.5, Most: time.Hour, AtOnce: 3}
	f := registry.Function{Name: "count", Title: "Counts", Args: json.RawMessage(`{}`), Policy: policy, SeenAt: time.Unix(1, 0).UTC()}
	n := registry.Namespace{Name: "curation", Title: "Curation", SeenAt: f.SeenAt, Policy: registry.NamespacePolicy{
		FunctionPolicy: policy, Final: []string{"gone"}, StepTime: time.Minute,
	}}
	const inJSON = `"max_attempts":2,"first_seconds":1.5,"factor":1.5,"most_seconds":3600,"at_once":3`
	for _, tt := range []struct {
		wire any
		want string
	}{
		{FunctionOf(f), `{"name":"count","title":"Counts","args":{},"policy":{` + inJSON + `},"seen_at":"1970-01-01T00:00:01Z"}`},
		{NamespaceOf(n), `{"name":"curation","title":"Curation","policy":{` + inJSON + `,"final":["gone"],"step_seconds":60},"seen_at":"1970-01-01T00:00:01Z"}`},
	} {
		text, err := json.Marshal(tt.wire)
		if err != nil || string(text) != tt.want {
			t.Errorf("%s, %v; want %s", text, err, tt.want)
		}
	}
	if diff := cmp.Diff(f, FunctionOf(f).Registry()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(n, NamespaceOf(n).Registry()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
