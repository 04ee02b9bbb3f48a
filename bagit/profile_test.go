package bagit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
)

func loadProfile(t *testing.T, name string) *bagit.Profile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parseProfile(t, string(text))
}

func parseProfile(t *testing.T, text string) *bagit.Profile {
	t.Helper()
	p, err := bagit.ParseProfile(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// minimalProfile is a profile that asks for nothing but its name and a version, with fields added
// or, when given "-", left out. A field is written as JSON.
func minimalProfile(t *testing.T, changes ...string) string {
	t.Helper()
	fields := map[string]json.RawMessage{
		"BagIt-Profile-Info": json.RawMessage(`{"BagIt-Profile-Identifier": "urn:p", "Source-Organization": "o",
			"External-Description": "d", "Version": "1", "BagIt-Profile-Version": "1.4.0"}`),
		"Accept-BagIt-Version": json.RawMessage(`["1.0", "0.97"]`),
	}
	for i := 0; i < len(changes); i += 2 {
		if fields[changes[i]] = json.RawMessage(changes[i+1]); changes[i+1] == "-" {
			delete(fields, changes[i])
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// followed makes a bag that names the profile of minimalProfile in bag-info.txt.
func (b bag) followed(tags string) bag {
	return b.with("bag-info.txt", "BagIt-Profile-Identifier: urn:p\n"+tags)
}

// TestParseProfile_Refusals parses invalid profiles and expects every fault with its field.
func TestParseProfile_Refusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string // fields, in any order
	}{
		"nothing":          {"", []string{""}},
		"no JSON":          {"{\n\n\"a\": }", []string{""}},
		"no object":        {`["a"]`, []string{""}},
		"more after it":    {`{} {}`, []string{""}},
		"other octets":     {"{\"\xff\": 1}", []string{""}},
		"too long":         {strings.Repeat(" ", 1<<20+1), []string{""}},
		"empty":            {`{}`, []string{"BagIt-Profile-Info", "Accept-BagIt-Version"}},
		"misspelled":       {minimalProfile(t, "manifests-required", `["md5"]`), []string{"manifests-required"}},
		"of another tool":  {minimalProfile(t, "acceptBagItVersion", `["1.0"]`), []string{"acceptBagItVersion"}},
		"info is lacking":  {minimalProfile(t, "BagIt-Profile-Info", `{}`), []string{"BagIt-Profile-Info.Source-Organization", "BagIt-Profile-Info.External-Description", "BagIt-Profile-Info.Version", "BagIt-Profile-Info.BagIt-Profile-Identifier"}},
		"info is empty":    {minimalProfile(t, "BagIt-Profile-Info", `{"BagIt-Profile-Identifier": "", "Source-Organization": null, "External-Description": 1, "Version": "1"}`), []string{"BagIt-Profile-Info.BagIt-Profile-Identifier", "BagIt-Profile-Info.Source-Organization", "BagIt-Profile-Info.External-Description"}},
		"of the future":    {strings.Replace(minimalProfile(t), "1.4.0", "2.0.0", 1), []string{"BagIt-Profile-Info.BagIt-Profile-Version"}},
		"no version":       {minimalProfile(t, "Accept-BagIt-Version", `[]`), []string{"Accept-BagIt-Version"}},
		"version a number": {minimalProfile(t, "Accept-BagIt-Version", `[1.0]`), []string{"Accept-BagIt-Version[0]"}},
		"unknown version":  {minimalProfile(t, "Accept-BagIt-Version", `["1.7"]`), []string{"Accept-BagIt-Version"}},
		"tags a list":      {minimalProfile(t, "Bag-Info", `["Contact-Name"]`), []string{"Bag-Info"}},
		"tag with a typo":  {minimalProfile(t, "Bag-Info", `{"A": {"Required": true, "values": "x", "repeatable": "no"}}`), []string{"Bag-Info.A.Required", "Bag-Info.A.values", "Bag-Info.A.repeatable"}},
		"tag twice":        {minimalProfile(t, "Bag-Info", `{"A": {}, "a": {}, "B": {}, "B": {}, "C:": {}}`), []string{"Bag-Info.a", "Bag-Info.B", "Bag-Info.C:"}},
		"other tag files":  {minimalProfile(t, "Other-Info", `[{"bag-info.txt": {}}, {"../x": {}, "manifest-md5": {}}, {"y": {}, "Y.txt": {}, "y.txt": {}}, 5]`), []string{"Other-Info.bag-info.txt", "Other-Info.../x", "Other-Info.manifest-md5", "Other-Info.y.txt", "Other-Info"}},
		"algorithms":       {minimalProfile(t, "Manifests-Required", `["md5", "crc9", "", "md5"]`), []string{"Manifests-Required", "Manifests-Required[2]", "Manifests-Required", "Manifests-Required"}},
		"not allowed":      {minimalProfile(t, "Manifests-Required", `["md5"]`, "Manifests-Allowed", `["sha256"]`, "Tag-Manifests-Required", `["md5"]`, "Tag-Manifests-Allowed", `[]`, "Tag-Files-Required", `["x/y"]`, "Tag-Files-Allowed", `["z/*"]`, "Payload-Files-Required", `["data/d/"]`, "Payload-Files-Allowed", `["data/x"]`), []string{"Manifests-Allowed", "Tag-Manifests-Allowed", "Tag-Files-Allowed", "Payload-Files-Allowed"}},
		"paths":            {minimalProfile(t, "Tag-Files-Required", `["/x", "../y", "data/z", "a//b", "*.xml"]`, "Payload-Files-Required", `["x", "data/*"]`, "Payload-Files-Allowed", `["x", "data/", "*"]`), []string{"Tag-Files-Required", "Tag-Files-Required", "Tag-Files-Required", "Tag-Files-Required", "Tag-Files-Required", "Payload-Files-Required", "Payload-Files-Required", "Payload-Files-Allowed", "Payload-Files-Allowed"}},
		"fetch":            {minimalProfile(t, "Allow-Fetch.txt", `false`, "Fetch.txt-Required", `true`, "Data-Empty", `"true"`), []string{"Fetch.txt-Required", "Data-Empty"}},
		"serialization":    {minimalProfile(t, "Serialization", `"maybe"`, "Accept-Serialization", `["zip"]`), []string{"Serialization", "Accept-Serialization", "Accept-Serialization"}},
		"no media type":    {minimalProfile(t, "Serialization", `"optional"`), []string{"Accept-Serialization"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := bagit.ParseProfile(strings.NewReader(tc.text))
			if !errors.Is(err, bagit.ErrProfile) || p != nil {
				t.Fatalf("profile %v: %v", p, err)
			}
			joined, ok := err.(interface{ Unwrap() []error })
			if !ok {
				t.Fatalf("not joined: %v", err)
			}
			want := map[string]int{}
			for _, field := range tc.want {
				want[field]++
			}
			got := map[string]int{}
			for _, err := range joined.Unwrap() {
				fault := new(bagit.ProfileError)
				if !errors.As(err, &fault) || fault.Reason == "" || !strings.Contains(err.Error(), fault.Field) {
					t.Fatalf("fault %v", err)
				}
				got[fault.Field]++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
	broken := errors.New("disk is gone")
	if _, err := bagit.ParseProfile(io.MultiReader(strings.NewReader("{"), failing{broken})); !errors.Is(err, broken) || errors.Is(err, bagit.ErrProfile) {
		t.Errorf("reading failed: %v", err)
	}
	_, err := bagit.ParseProfile(strings.NewReader("{\n\n\"a\": }"))
	if err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("where: %v", err)
	}
	_, err = bagit.ParseProfile(strings.NewReader(minimalProfile(t, "manifests_required", "[]")))
	if err == nil || !strings.Contains(err.Error(), "Manifests-Required is") {
		t.Errorf("what is meant: %v", err)
	}
}

// TestValidate_Profile judges bags that violate one rule of a profile, as a folder, a tar and a
// zip.
func TestValidate_Profile(t *testing.T) {
	t.Parallel()
	good := newBag("1.0", "a", "A").followed("")
	holes := newBag("1.0", "a", "A").followed("").with("data/a", "-", "fetch.txt", "https://example.org/a - data/a\n")
	for _, tc := range []struct {
		name    string
		profile string
		bag     bag
		want    []string
	}{
		{"nothing asked for", minimalProfile(t), good, nil},
		{"of an old specification", strings.Replace(minimalProfile(t), `,"BagIt-Profile-Version":"1.4.0"`, "", 1), good, nil},
		{"one of two profiles", minimalProfile(t), good.with("bag-info.txt", "BagIt-Profile-Identifier: urn:q\nbagit-profile-identifier: urn:p\n"), nil},
		{"another profile", minimalProfile(t), good.with("bag-info.txt", "BagIt-Profile-Identifier: urn:q\n"), []string{"error profile-tag bag-info.txt"}},
		{"no bag-info.txt", minimalProfile(t, "Bag-Info", `{"A": {"required": true}}`), good.with("bag-info.txt", "-"), []string{"error profile-tag bag-info.txt", "error profile-tag bag-info.txt"}},
		{"of 0.93", minimalProfile(t, "Accept-BagIt-Version", `["0.93"]`), newBag("0.93", "a", "A").with("package-info.txt", "BagIt-Profile-Identifier: urn:p\n"), nil},
		{"version", minimalProfile(t, "Accept-BagIt-Version", `["0.97"]`), good, []string{"error profile-version bagit.txt"}},
		{
			"tags", minimalProfile(t, "Bag-Info", `{"A": {"required": true}, "B": {"values": ["x", "y z"]}, "C": {"repeatable": false}, "D": {"recommended": true}, "E": {"required": true}}`),
			good.followed("b: x\nB: y\n  z\nB: X\nC: 1\nc: 2\nE:\n"),
			[]string{"error profile-tag bag-info.txt", "error profile-tag bag-info.txt", "error profile-tag bag-info.txt", "warning profile-tag bag-info.txt", "warning profile-tag bag-info.txt"},
		},
		{"tags met", minimalProfile(t, "Bag-Info", `{"A": {"required": true, "values": []}, "D": {"recommended": true, "repeatable": true}}`), good.followed("a: 1\nD: 1\nD: 2\nOther: 3\n"), nil},
		{"manifests", minimalProfile(t, "Manifests-Required", `["SHA-512"]`, "Tag-Manifests-Required", `["md5"]`), good, []string{"error profile-manifest manifest-sha512.txt", "error profile-manifest tagmanifest-md5.txt"}},
		{"manifests allowed", minimalProfile(t, "Manifests-Allowed", `["sha256"]`, "Tag-Manifests-Allowed", `["sha512"]`), good.tagged(), []string{"error profile-manifest manifest-md5.txt", "error profile-manifest tagmanifest-sha256.txt"}},
		{"tag files", minimalProfile(t, "Tag-Files-Required", `["x.txt", "meta/"]`), good, []string{"error profile-file meta/", "error profile-file x.txt"}},
		{"tag files there", minimalProfile(t, "Tag-Files-Required", `["x.txt", "meta/"]`, "Tag-Files-Allowed", `["*.txt", "meta/*"]`), good.with("x.txt", "", "meta/a/b", "").tagged(), nil},
		{"tag files not allowed", minimalProfile(t, "Tag-Files-Allowed", `["meta/*.xml"]`), good.with("meta/a.xml", "", "meta/b/c.xml", "", "meta/a.txt", "", "x", "").tagged(), []string{"error profile-file meta/a.txt", "error profile-file x"}},
		{"payload", minimalProfile(t, "Payload-Files-Required", `["data/b", "data/d/"]`), good, []string{"error profile-file data/b", "error profile-file data/d/"}},
		{"payload in other form", minimalProfile(t, "Payload-Files-Required", `["data/`+nfc+`"]`), newBag("1.0", nfd, "A").followed(""), nil},
		{"payload not allowed", minimalProfile(t, "Payload-Files-Allowed", `["data/[!a]*", "data/?a"]`), newBag("1.0", "a", "A", "ba", "B", "\u00e9a", "C").followed(""), []string{"error profile-file data/a"}},
		{"fetch not allowed", minimalProfile(t, "Allow-Fetch.txt", `false`), holes, []string{"error not-fetched data/a", "error profile-fetch fetch.txt"}},
		{"fetch required", minimalProfile(t, "Fetch.txt-Required", `true`), good, []string{"error profile-fetch fetch.txt"}},
		{"data not empty", minimalProfile(t, "Data-Empty", `true`), good, []string{"error profile-file data"}},
		{"an empty file", minimalProfile(t, "Data-Empty", `true`), newBag("1.0", ".keep", "").followed(""), nil},
		{"two empty files", minimalProfile(t, "Data-Empty", `true`), newBag("1.0", "a", "", "b", "").followed(""), []string{"error profile-file data"}},
		{"only holes", minimalProfile(t, "Data-Empty", `true`, "Fetch.txt-Required", `true`, "Payload-Files-Required", `["data/a"]`), holes, []string{"error not-fetched data/a"}},
		{"holes that were filled", minimalProfile(t, "Data-Empty", `true`, "Fetch.txt-Required", `true`, "Payload-Files-Required", `["data/a"]`), holes.with("data/a", "A"), nil},
		{"a hole that is not allowed", minimalProfile(t, "Payload-Files-Allowed", `["data/b"]`), holes, []string{"error not-fetched data/a", "error profile-file data/a"}},
		{"other tag file", minimalProfile(t, "Other-Info", `{"X-Info": {"A": {"required": true, "values": ["1"]}, "B": {"required": true}}}`), good.with("x-info.txt", "A: 2\nno colon\n").tagged(), []string{"error bag-info x-info.txt", "error profile-tag x-info.txt", "error profile-tag x-info.txt"}},
		{"other tag file absent", minimalProfile(t, "Other-Info", `{"x.txt": {"A": {"required": true}, "B": {}}}`), good, []string{"error profile-tag x.txt"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			opts := bagit.Options{Profile: parseProfile(t, tc.profile)}
			folder, err := bagit.ValidateFS(t.Context(), tc.bag.fs(), opts)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want == nil {
				want = []string{}
			}
			if diff := cmp.Diff(want, rules(folder.Faults)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%v", diff, folder.Faults)
			}
			if folder.Valid != (len(folder.Errors()) == 0) || folder.Profile != "urn:p" {
				t.Errorf("valid=%t by %q: %v", folder.Valid, folder.Profile, folder.Faults)
			}
			raw := packTar(t, tc.bag, "top", nil)
			packed, err := bagit.ValidateTar(t.Context(), bytes.NewReader(raw), opts)
			if err != nil {
				t.Fatal(err)
			}
			sameFaults(t, "tar", packed, folder)
		})
	}
}

// TestValidate_ProfileForm checks the forms (folder, tar, zip) that a profile accepts.
func TestValidate_ProfileForm(t *testing.T) {
	t.Parallel()
	good := newBag("1.0", "a", "A").followed("")
	raw := packTar(t, good, "top", nil)
	for _, tc := range []struct {
		profile string
		bad     string // forms that are refused
	}{
		{minimalProfile(t), ""},
		{minimalProfile(t, "Accept-Serialization", `["application/zip"]`), "tar tar.gz"},
		{minimalProfile(t, "Serialization", `"forbidden"`), "tar tar.gz zip"},
		{minimalProfile(t, "Serialization", `"required"`, "Accept-Serialization", `["application/tar"]`), "folder tar.gz zip"},
		{minimalProfile(t, "Serialization", `"optional"`, "Accept-Serialization", `["APPLICATION/x-tar; x=y", "application/tar+gzip"]`), "zip"},
	} {
		opts := bagit.Options{Profile: parseProfile(t, tc.profile)}
		folder, err1 := bagit.ValidateFS(t.Context(), good.fs(), opts)
		plain, err2 := bagit.ValidateTar(t.Context(), bytes.NewReader(raw), opts)
		gz, err3 := bagit.ValidateTar(t.Context(), bytes.NewReader(zipped(t, raw)), opts)
		zip, err4 := validateZipWith(t, good, "top", opts)
		unwrapped, err5 := bagit.ValidateTar(t.Context(), bytes.NewReader(raw), bagit.Options{Profile: opts.Profile, Form: bagit.FormTarXZ})
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			t.Fatal(err)
		}
		for form, r := range map[string]*bagit.Report{"folder": folder, "tar": plain, "tar.gz": gz, "zip": zip} {
			bad := false
			for word := range strings.FieldsSeq(tc.bad) {
				bad = bad || word == form
			}
			if r.Valid == bad || bad && rules(r.Faults)[0] != "error profile-serialization " {
				t.Errorf("%s as %s: valid=%t %v", tc.profile, form, r.Valid, r.Faults)
			}
		}
		if wants := strings.Contains(tc.profile, "Accept") && strings.Contains(tc.profile, "Serialization"); unwrapped.Valid == wants {
			t.Errorf("%s as tar.xz: valid=%t %v", tc.profile, unwrapped.Valid, unwrapped.Faults)
		}
	}
}

// TestValidate_PublishedStyles judges bags by profiles written like those that consortia publish.
func TestValidate_PublishedStyles(t *testing.T) {
	t.Parallel()
	consortium, between := loadProfile(t, "aptrust-style.json"), loadProfile(t, "btr-style.json")
	info := "BagIt-Profile-Identifier: https://profiles.example.org/consortium-2.2.json\nSource-Organization: A university\n"
	good := newBag("0.97", "a", "A").with("bag-info.txt", info, "consortium-info.txt", "Title: T\nAccess: Institution\n")
	judge := func(b bag, p *bagit.Profile) *bagit.Report {
		r, err := bagit.ValidateTar(t.Context(), bytes.NewReader(packTar(t, b, "top", nil)), bagit.Options{Profile: p})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := judge(good, consortium); !r.Valid || len(r.Faults) != 0 {
		t.Errorf("consortium: %v", r.Faults)
	}
	bad := good.with("consortium-info.txt", "Title: T\nTitle: U\nAccess: nobody\nStorage-Option: Tape\n", "bag-info.txt", "-", "manifest-md5.txt", "-")
	want := []string{
		"error profile-tag bag-info.txt", "error profile-tag bag-info.txt",
		"error profile-tag consortium-info.txt", "error profile-tag consortium-info.txt", "error profile-tag consortium-info.txt",
		"error profile-manifest manifest-md5.txt",
	}
	if diff := cmp.Diff(want, rules(judge(bad, consortium).Faults)); diff != "" {
		t.Errorf("consortium (-want +got):\n%s", diff)
	}
	travels := newBag("1.0", "mets.xml", "M", "objects/a", "A", "rights-1.txt", "R", "notes.doc", "N").with("bag-info.txt",
		"BagIt-Profile-Identifier: https://profiles.example.org/between-repositories-1.0.json\nSource-Organization: A\n"+
			"Bagging-Date: 2026-11-22\nPayload-Oxum: 4.4\nContact-Email: a@example.org\n", "metadata/a.xml", "", "metadata/a.pdf", "")
	want = []string{
		"error profile-file data/notes.doc", "error profile-file metadata/a.pdf", "warning profile-tag bag-info.txt", "warning profile-tag bag-info.txt",
	}
	if diff := cmp.Diff(want, rules(judge(travels, between).Faults)); diff != "" {
		t.Errorf("between repositories (-want +got):\n%s", diff)
	}
}
