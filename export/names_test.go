package export_test

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/source/unpack"
)

// A bag can contain every name that a container may have, so that every object can be exported as a
// bag and restored.
func TestAcceptedNamesFitIntoBags(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.SampledFrom([]rune("ab.~$%:\\/ \n\r\t\x01\x1b\x1f\x7f\u0085\u2028é|*?")), 1, 12, -1).Draw(t, "name")
		var packed bytes.Buffer
		w := tar.NewWriter(&packed)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Format: tar.FormatPAX, Typeflag: tar.TypeReg}); err != nil {
			return // no tar can have it
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		data := bytes.NewReader(packed.Bytes())
		_ = unpack.Walk(t.Context(), unpack.FromReaderAt(data, int64(packed.Len())), unpack.Limits{}, func(e unpack.Entry, _ io.Reader) error {
			if err := bagit.CheckName("data/" + e.Name); err != nil {
				t.Fatalf("%q is taken in as %q, and no bag holds it: %v", name, e.Name, err)
			}
			return nil
		})
	})
}
