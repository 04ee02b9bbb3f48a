package registry_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestQuotaError_Text: an error never says that one size exceeds another that is shown as the same.
func TestQuotaError_Text(t *testing.T) {
	t.Parallel()
	limit := registry.UploadLimit{Scope: registry.UploadsOfTenant, Bytes: 1_000_000}
	for _, c := range []struct {
		held, need int64
		want       string
	}{
		{0, 1_000_001, "has 1000001 bytes, and all uploads of this service together may have 1000000 bytes;"},
		{0, 2_000_000, "has 1.9 MiB, and all uploads of this service together may have 976.6 KiB;"},
		{999_999, 2, "needs 2 bytes, and the uploads of this service have 999999 bytes of the 1000000 bytes that"},
		{1_000_000, 2, "have 976.6 KiB of the 976.6 KiB that"},
	} {
		e := &registry.QuotaError{UploadLimit: limit, Held: c.held, Need: c.need}
		if !strings.Contains(e.Error(), c.want) {
			t.Errorf("%q, want %q in it", e, c.want)
		}
	}
}
