package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// A test binary serves the files of a source, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A short soak completes its jobs and judges each figure, whatever it finds.
func TestSoak(t *testing.T) {
	var out, faults bytes.Buffer
	err := run(t.Context(), []string{"soak", "-for", "1600ms", "-every", "200ms", "-rate", "10", "-dir", t.TempDir()}, strings.NewReader(""), &out, &faults)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &faults)
	}
	for _, want := range []string{"COMPLETED", "RSS: ", "heap: ", "goroutines: ", "open files: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the soak does not say %q:\n%s", want, &out)
		}
	}
	if err := run(t.Context(), []string{"soak", "-for", "1s"}, strings.NewReader(""), &out, &faults); err == nil {
		t.Error("a soak of a second has no figures")
	}
}
