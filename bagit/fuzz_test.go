package bagit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/bagit"
)

func FuzzParseDeclaration(f *testing.F) {
	f.Add("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
	f.Add("\ufeffBagIt-Version : .97\r\rtag-file-character-encoding:")
	f.Fuzz(func(t *testing.T, text string) {
		d, faults, err := bagit.ParseDeclaration(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) == 0 {
			again := "BagIt-Version: " + d.Version.String() + "\nTag-File-Character-Encoding: " + d.Encoding + "\n"
			if d2, faults, err := bagit.ParseDeclaration(strings.NewReader(again)); err != nil || d2 != d || len(faults) != 0 {
				t.Errorf("%+v becomes %+v %v", d, d2, faults)
			}
		}
	})
}

func FuzzScanManifest(f *testing.F) {
	f.Add([]byte("00ff  data/a\n00FF *data/b\r\\00 data/c\\n\n"))
	f.Add([]byte("\xff\xfe0\x000\x00 \x00a\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		last := 0
		for line, name := range bagit.ScanManifest(bytes.NewReader(text)) {
			if name == "" || line <= last {
				t.Errorf("name %q in line %d after line %d", name, line, last)
			}
			last = line
		}
	})
}

func FuzzScanBagInfo(f *testing.F) {
	f.Add("Source: a\n  b\n\nX : \t\n")
	f.Fuzz(func(t *testing.T, text string) {
		for tag := range bagit.ScanBagInfo(strings.NewReader(text)) {
			if tag.Label == "" || strings.ContainsAny(tag.Label, ":\r\n") {
				t.Errorf("tag %+v", tag)
			}
		}
	})
}

func FuzzScanFetch(f *testing.F) {
	f.Add("http://example.org/a 12 data/a\nfile:///x - data/b c\n")
	f.Fuzz(func(t *testing.T, text string) {
		for e := range bagit.ScanFetch(strings.NewReader(text)) {
			if e.URL == "" || e.File == "" || e.Length < -1 {
				t.Errorf("entry %+v", e)
			}
		}
	})
}

// FuzzValidate puts one text into every tag file of a bag. Nothing may panic, and every path to be
// fetched stays inside the bag.
func FuzzValidate(f *testing.F) {
	f.Add("1.0", "d41d8cd98f00b204e9800998ecf8427e data/%0a\nx: y\nhttp://a - ../b")
	f.Fuzz(func(t *testing.T, version, text string) {
		b := newBag("1.0", "a", "A").with(
			"bagit.txt", "BagIt-Version: "+version+"\nTag-File-Character-Encoding: UTF-8\n", "manifest-md5.txt", text,
			"bag-info.txt", text, "fetch.txt", text, "tagmanifest-sha256.txt", text, "data/"+"b", text,
		)
		r := validateTar(t, b, "top", nil)
		for _, e := range r.Fetch {
			if !strings.HasPrefix(e.File, "data/") || strings.Contains("/"+e.File+"/", "/../") {
				t.Errorf("may fetch %q", e.File)
			}
		}
		if r.Valid && len(r.Errors()) > 0 {
			t.Errorf("valid with %v", r.Errors())
		}
	})
}

// FuzzParseProfile parses profiles and judges a bag by each valid one. Every refusal names what is
// wrong, and a profile never makes an invalid bag valid.
func FuzzParseProfile(f *testing.F) {
	for _, name := range []string{"aptrust-style.json", "btr-style.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "consortium-info.txt", "Title: T\nAccess: Restricted\n")
	}
	f.Fuzz(func(t *testing.T, text, name, content string) {
		p, err := bagit.ParseProfile(strings.NewReader(text))
		if err != nil {
			fault := new(bagit.ProfileError)
			if p != nil || !errors.Is(err, bagit.ErrProfile) || !errors.As(err, &fault) || fault.Reason == "" {
				t.Errorf("profile %v, error %v", p, err)
			}
			return
		}
		if p.Identifier() == "" {
			t.Error("a profile without an identifier")
		}
		b := newBag("1.0", "a", "A").with("bag-info.txt", content)
		v := bagit.NewValidator(bagit.Options{Profile: p, Form: bagit.FormTar})
		plain := bagit.NewValidator(bagit.Options{})
		b = b.with(name, content)
		for _, name := range b.names() {
			for _, v := range []*bagit.Validator{v, plain} {
				if err := v.Add(t.Context(), name, -1, strings.NewReader(b[name])); err != nil {
					t.Fatal(err)
				}
			}
		}
		r, err := v.Finish()
		without, errWithout := plain.Finish()
		if err != nil || errWithout != nil {
			t.Fatal(err, errWithout)
		}
		if r.Valid && !without.Valid {
			t.Errorf("valid by the profile, but not without: %v", without.Faults)
		}
	})
}
