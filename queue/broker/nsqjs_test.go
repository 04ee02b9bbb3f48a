package broker_test

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/npmtest"
	"github.com/holdfast/holdfast/queue/broker"
)

// nsqjsVersion is the independent client that the broker is tried with.
const nsqjsVersion = "0.13.0"

//go:embed testdata/nsqjs_client.js
var nsqjsClient string

// A client of another project in another language works with the broker, also with authentication.
func TestNSQJS(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]string{"open": "", "secret": "a secret of the test"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nsqjs(t, secret)
		})
	}
}

func nsqjs(t *testing.T, secret string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := open(t, broker.Options{AuthSecret: secret})
	web := serve(t, b)

	node := npmtest.Node(ctx, t, "nsqjs", nsqjsVersion, nsqjsClient, b.Addr(), strings.TrimPrefix(web.URL, "http://"), secret)
	var stderr strings.Builder
	node.Stderr = &stderr
	stdout, err := node.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s\n%s", err, stdout, stderr.String())
	}

	// One line for each thing that it did.
	type step struct {
		Step     string   `json:"step"`
		Bodies   []string `json:"bodies,omitempty"`
		Attempts int      `json:"attempts,omitempty"`
		Error    string   `json:"error,omitempty"`
		Early    bool     `json:"early,omitempty"`
	}
	var got []step
	for lines := bufio.NewScanner(strings.NewReader(string(stdout))); lines.Scan(); {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("decode %q: %v", lines.Text(), err)
		}
		got = append(got, s)
	}
	want := []step{
		{Step: "publish and finish", Bodies: []string{"one"}, Attempts: 1},
		{Step: "many", Bodies: []string{"m1", "m2", "m3"}},
		{Step: "deferred", Bodies: []string{"later"}, Attempts: 1},
		{Step: "requeue", Bodies: []string{"again"}, Attempts: 3},
		{Step: "touch", Bodies: []string{"touched"}, Attempts: 1},
		{Step: "timeout", Bodies: []string{"slow"}, Attempts: 2},
		{Step: "finish too late", Error: "E_FIN_FAILED"},
		{Step: "bad topic", Error: "E_BAD_TOPIC"},
		{Step: "no secret", Error: "E_AUTH_FIRST"},
		{Step: "lookup", Bodies: []string{"found"}, Attempts: 1},
	}
	if secret == "" {
		want = slices.DeleteFunc(want, func(s step) bool { return s.Step == "no secret" })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s\n%s", diff, stderr.String())
	}
	for _, topic := range b.Stats().Topics {
		for _, ch := range topic.Channels {
			if left := ch.Depth + ch.InFlight + ch.Deferred; left > 0 {
				t.Errorf("%s: %d messages left", topic.Name, left)
			}
		}
	}
}
