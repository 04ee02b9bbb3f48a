package wording_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wording"
)

// TestRemedyForProducer: what the producer does is told to the producer, not about one, whatever is advised.
func TestRemedyForProducer(t *testing.T) {
	t.Parallel()
	changed := 0
	for _, advice := range registry.Advices() {
		for _, anew := range []registry.Anew{"", registry.AnewAlone, registry.AnewWhole} {
			for _, from := range []registry.Stage{"", registry.Download} {
				for _, mended := range []bool{false, true} {
					r := registry.Remedy{Advice: advice, Anew: anew, From: from, Mended: mended, Text: "start it"}
					about, to := wording.Remedy(wording.English{}, r), wording.RemedyForProducer(wording.English{}, r)
					if about == "" || to == "" || strings.Contains(to, "producer") || strings.Contains(to, "submits") {
						t.Errorf("%+v: %q", r, to)
					}
					if about != to {
						changed++
					}
				}
			}
		}
	}
	if changed == 0 {
		t.Error("nothing is worded for the producer")
	}
}
