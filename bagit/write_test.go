package bagit_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/bagit"
)

func TestFormatInfo(t *testing.T) {
	want := []bagit.Tag{{Label: "A", Value: "one"}, {Label: "A", Value: "two\nlines"}, {Label: "Ünïcode", Value: "ä: b"}}
	text, err := bagit.FormatInfo(want)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(bagit.ScanBagInfo(bytes.NewReader(text)))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(bagit.Tag{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	for _, tag := range []bagit.Tag{{Label: ""}, {Label: "a:b"}, {Label: " a"}, {Label: "a\nb"}, {Label: "a", Value: "\xff"}, {Label: "a", Value: "\x00"}} {
		if _, err := bagit.FormatInfo([]bagit.Tag{tag}); !errors.Is(err, bagit.ErrTag) {
			t.Errorf("tag %+v: %v", tag, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"", "/a", "../a", "x/../../a", "x//y", "./x", "x\x00", "\xff", "~x", "a/"} {
		if err := bagit.CheckName(name); !errors.Is(err, bagit.ErrName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "data/~x", "data/two\nlines", "data/100%", "data/ä b"} {
		if err := bagit.CheckName(name); err != nil {
			t.Errorf("name %q: %v", name, err)
		}
	}
}
