package source_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/source"
)

// TestRemedy_NoSubmission checks that no remedy asks for another submission: each is followed by
// the advice to requeue the item.
func TestRemedy_NoSubmission(t *testing.T) {
	t.Parallel()
	for _, f := range []source.Fault{source.FaultRedirect, source.FaultEncoding, source.FaultMissing, source.FaultDenied} {
		if say := (&source.Error{Kind: f}).Remedy(); say == "" || strings.Contains(say, "submit") {
			t.Errorf("%s: %q", f, say)
		}
	}
}
