package registry_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// What puts a job right is the producer's to do exactly where the deposit is at fault, and is said whenever there is something
// to be done.
func TestFix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		status       registry.Status
		class        registry.ErrorClass
		code, remedy string
		want         string
	}{
		{"completed", registry.Completed, "", "", "", ""},
		{"running", registry.Running, "", "", "wait", ""},
		{"a wrong digest", registry.Failed, registry.ContentFault, "digest-mismatch", "", "the producer compares the file with the original, and corrects the file or its digest; what is mended at its address is requeued by an admin, anything else is submitted corrected, and alone"},
		{"a missing file", registry.Failed, registry.ContentFault, "http-404", "put it there", "the producer puts the file there, then an admin requeues the item; a wrong address is corrected in a submission of this deposit alone"},
		{"a bad payload", registry.Failed, registry.ContentFault, "E007", "", "the producer corrects the deposit; what is mended at its address is requeued by an admin, anything else is submitted corrected, and alone"},
		{"a bad container", registry.Failed, registry.ContentFault, "unpack-format", "", "the producer packs the container anew; what is mended at its address is requeued by an admin, anything else is submitted corrected, and alone"},
		{"the system, unknown", registry.Failed, registry.SystemFault, "http-404", "", "an admin looks at the cause and requeues the item"},
		{"the system, known", registry.Failed, registry.SystemFault, "ezid-away", "see that EZID is up", "see that EZID is up, then requeue the item"},
		{"a batch", registry.Failed, registry.JobsFault, "jobs", "", "requeue the failed jobs, then ask the batch for an updated report"},
		{"cancelled", registry.Cancelled, "", "", "see that EZID is up", "nothing, or an admin requeues it"},
		{"deleted", registry.Deleted, "", "", "", "nothing, or the producer submits it again"},
		{"aborted", registry.Aborted, "", "", "", "nothing, or the producer submits it again"},
	} {
		got := registry.Fix(registry.Position{Status: tt.status, Attempt: 1}, tt.class, tt.code, tt.remedy)
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if content := tt.class == registry.ContentFault; content != strings.HasPrefix(got, "the producer ") {
			t.Errorf("%s: %q tells the wrong one to act", tt.name, got)
		}
	}
	want := "the producer corrects the row and submits it alone, in a new batch"
	if got := registry.Fix(registry.Position{Status: registry.Failed}, registry.ContentFault, "digest", ""); got != want {
		t.Errorf("a refused row: %q, want %q", got, want)
	}
}
