package intake_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// Judge recognizes a payload by its content and reports all its faults.
func ExampleJudge() {
	var payload bytes.Buffer
	w := tar.NewWriter(&payload)
	for _, name := range []string{"plates/1.tif", "/etc/passwd", "plates/1.tif"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name}); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}

	in := unpack.FromReaderAt(bytes.NewReader(payload.Bytes()), int64(payload.Len()))
	report, err := intake.Judge(context.Background(), in, registry.AutoType, intake.Options{})
	if err != nil {
		panic(err) // reading failed; it says nothing about the payload
	}
	fmt.Println(report.Type, "accepted:", report.Accepted)
	for _, fault := range report.Faults {
		fmt.Println(fault.Location(), fault.Rule)
	}
	// Output:
	// container accepted: false
	// /etc/passwd container-name
	// plates/1.tif container-duplicate
}
