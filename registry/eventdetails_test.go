package registry_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

func TestEvent_Details(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``: "", `null`: "", `{}`: "",
		`{"to_stage":"record","n":3,"empty":"","ok":true,"list":["a","b"]}`:                     `list: a; b, n: 3, ok: true, to stage: record`,
		`{"spec":{"act":"requeue","parent":"b1","matched":1,"reason":"again"},"stage":"apply"}`: `requested: requeue the jobs of batch b1 (1 item), reason: again, stage: apply`,
		`{"spec":{"cron":"@daily"},"version":1}`:                                                `spec: {"cron":"@daily"}, version: 1`,
		`["odd"]`:                                                                               `["odd"]`,
	} {
		if got := strings.Join(registry.Event{Data: []byte(raw)}.Details(), ", "); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
