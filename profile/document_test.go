package profile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
)

func number(n int) *int { return &n }

// whole has every field of a profile.
func whole() registry.Profile {
	return registry.Profile{
		Name: "Maps & plans: yes", Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/maps", "ark:/99999/all"},
		NOIDTemplate: "99999/fk4{.reeeeeeeek}", Minting: registry.MintEZID, DigestAlgorithm: "sha256", Priority: number(7),
		ReleaseOneByOne: true, StopOnBadRow: true, SuppressDCLocalIDs: true, Scan: true, ScanPartly: true, NameEncoding: "cp437", DuplicateDays: number(0), Storages: []string{"storage", "second"}, Copies: number(2), OffsiteCopies: number(1),
		Callback:   &registry.Callback{URL: "https://r.example.org/{job}", GoesOn: true, CompletedOnly: true},
		BagProfile: json.RawMessage(`{"Z":[],"A":{"required":false,"n":1.5,"none":null},"e":""}`),
		Mail:       &registry.MailRules{To: []string{"a@example.org"}, Allow: []string{"*.example.org"}, Queued: true, Safe: true, FailuresOnly: true}, RetentionDays: number(90),
		UploadBytes: new(int64(5 << 40)), UploadsOpen: number(12),
		Steps: []registry.OutsideStep{
			{After: registry.Process, Function: "a"},
			{After: registry.Record, Function: "ocr", On: registry.OnAlways, Blocking: true, Args: json.RawMessage(`{"language":"en","pages":[1,2]}`)},
		},
		Description: "two\nlines", Embargo: "2030-01-01",
		Terms: registry.Terms{
			Rights:            &registry.Rights{Basis: registry.Copyright, Status: "unknown", Jurisdiction: "de", Statement: "a: b", URI: "https://example.org/"},
			PreservationLevel: "full", EmbargoUntil: "2030-01-01", EmbargoReason: "why",
		},
	}
}

// TestRoundTrip checks that a written profile is read as the same one in both formats.
func TestRoundTrip(t *testing.T) {
	for name, p := range map[string]registry.Profile{"whole": whole(), "least": {Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}}, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			yaml, err := profile.YAML(p, "a comment", "of two lines: {")
			if err != nil {
				t.Fatal(err)
			}
			asJSON, err := profile.JSON(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range [][]byte{yaml, asJSON} {
				d, err := profile.Parse(text)
				if err != nil {
					t.Fatalf("%v:\n%s", err, text)
				}
				if diff := cmp.Diff(p, d.Profile); diff != "" {
					t.Errorf("profile (-want +got):\n%s\nof:\n%s", diff, text)
				}
			}
		})
	}
}

// TestWholeIsWhole checks that the test above sets every field of a profile, so that a new one must
// be written and read, too.
func TestWholeIsWhole(t *testing.T) {
	text, err := profile.JSON(whole())
	if err != nil {
		t.Fatal(err)
	}
	var have map[string]json.RawMessage
	if err := json.Unmarshal(text, &have); err != nil {
		t.Fatal(err)
	}
	for _, name := range profile.Fields() {
		if _, ok := have[name]; !ok {
			t.Errorf("%s is not in the test's profile", name)
		}
	}
}

func TestParse_Faults(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"all at once", "name: 7\nownr: ark:/1/2\ncollections: ark:/1/2\nscan: yes\nmail:\n  to: [a@b.example, 5]\n  sfae: true\nname: x\n", []string{
			"1:7 name is a number; want text; put it into quotes",
			"2:1 ownr is unknown; did you mean owner?",
			"3:14 collections is text; want a list, even for one value: [ark:/1/2]",
			"4:7 scan is text; want true or false",
			"6:21 mail.to[1] is a number; want text; put it into quotes",
			"7:3 mail.sfae is unknown; did you mean safe?",
			"8:1 name is already on line 1; write it once",
		}},
		{"in JSON", "{\n\t\"name\": 7,\n\t\"Owner\": \"\\ud83d\\ude00\", \"mail\": {\"to\": [null]},\n\t\"name\": \"x\"}", []string{
			"2:10 name is a number; want text; put it into quotes",
			"3:2 Owner is unknown; did you mean owner?",
			"3:43 mail.to[0] is empty",
			"4:2 name is already on line 2; write it once",
		}},
		{"numbers", "priority: 010\nretention_days: 1.5\nduplicate_days: 0x1f\n", []string{
			"1:11 010 can be read in several ways; write a number in decimal, or text in quotes",
			"3:17 0x1f can be read in several ways; write a number in decimal, or text in quotes",
		}},
		{"no whole number", "retention_days: 1.5\npriority: 99999999999999999999\n", []string{
			"1:17 retention_days is 1.5; want a whole number", "2:11 priority is 99999999999999999999; want a whole number",
		}},
		{"what YAML has beside", "name: &a x\nembargo: *a\ndescription: !!binary aGk=\nowner: !mine x\n", []string{
			"1:7 anchors and aliases are not supported; write the value out", "2:10 anchors and aliases are not supported; write the value out",
			"3:14 !!binary is not supported; write the value out", "4:8 !mine is not supported; write the value out",
		}},
		{"merged", "callback:\n  <<: {url: x}\n", []string{"2:3 want a name here"}},
		{"twice within", "bag_profile:\n  A: 1\n  B: {C: 1, C: 2}\n", []string{"3:13 C is already on line 3; write it once"}},
		{"two documents", "name: a\n---\nname: b\n", []string{"2:1 a second document begins here; give one profile"}},
		{"two in JSON", "{} {}", []string{"1:5 not valid JSON: more text follows the profile; a document contains one profile"}},
		{"nothing", "", []string{"1:1 the document is empty"}},
		{"a list", "- a\n", []string{"1:1 it is a list; it must consist of names with values, such as owner: ark:/99999/example"}},
		{"no YAML", "name: a\n\tscan: true\n", []string{"2:0 not valid YAML: found a tab character that violates indentation"}},
		{"no JSON", "{\"name\": \"a\"\n\"scan\": true}", []string{"2:1 not valid JSON: invalid character '\"' after object key:value pair"}},
		{"half a JSON", "{\"name\": \"a\",\n", []string{"2:1 not valid JSON: the document ends too early"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := profile.Parse([]byte(tt.text))
			var got []string
			for _, f := range faultsIn(t, err) {
				got = append(got, place(f.Place)+" "+f.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// faultsIn returns the faults that an error is, each of which has a line.
func faultsIn(t *testing.T, err error) profile.Faults {
	t.Helper()
	var faults profile.Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("error %v, want faults", err)
	}
	for _, one := range faults {
		if one.Line < 1 || one.Message == "" {
			t.Errorf("fault %+v", one)
		}
	}
	return faults
}

func place(p profile.Place) string {
	text, _ := json.Marshal([]int{p.Line, p.Column})
	return strings.NewReplacer("[", "", "]", "", ",", ":").Replace(string(text))
}

// TestDocument_Place checks that a refusal by the Registry is reported with its place in the file.
func TestDocument_Place(t *testing.T) {
	text := "owner: x\nmail:\n  to:\n    - a@example.org\n    - nobody\ncallback: {url: x}\nbag_profile:\n  Serialization: none\n"
	d, err := profile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"body.owner": "1:8", "body.mail.to[1]": "5:7", "body.mail.to": "4:5", "body.mail.to[7]": "4:5", "body.callback.url": "6:17",
		"body.bag_profile.Serialization": "8:18", "body.bag_profile.Other.x": "8:3", "body.collections": "1:1", "body": "1:1", "path.name": "1:1",
	} {
		if got := place(d.Place(location)); got != want {
			t.Errorf("%s is at %s, want %s", location, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	before, after := whole(), whole()
	if same, err := profile.Changes(before, after); err != nil || len(same) != 0 {
		t.Errorf("changes of nothing: %q, %v", same, err)
	}
	after.Name, after.Scan, after.Priority, after.RetentionDays = "Maps", false, number(3), nil
	after.Mail = &registry.MailRules{To: []string{"a@example.org", "b@example.org"}, Allow: []string{"*.example.org"}, Safe: true}
	after.BagProfile = json.RawMessage(`{}`)
	got, err := profile.Changes(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"name: Maps; it was Maps & plans: yes", "priority: 3; it was 7", "scan: removed; it was true", "bag_profile: replaced by another document",
		`mail.to: ["a@example.org","b@example.org"]; it was ["a@example.org"]`, "mail.queued: removed; it was true",
		"mail.failures_only: removed; it was true", "retention_days: removed; it was 90",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	got, err = profile.Changes(registry.Profile{Owner: "o"}, registry.Profile{Owner: "o", BagProfile: json.RawMessage(`{}`), Embargo: "till 2030"})
	if diff := cmp.Diff([]string{"bag_profile: added a document", "embargo: till 2030; it was not set"}, got); diff != "" || err != nil {
		t.Errorf("changes (-want +got):\n%s%v", diff, err)
	}
}

// FuzzParse checks that whatever is parsed can be written and parsed as the same again, and that
// every fault has a line.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"name: a\n", "{\"name\": \"a\"}", "owner: \"\\0\\u0085\"\n", "description: |\n  a\n\n  b \n", "embargo: 2030-01-01\nname: 'on'", "name: ~\nmail: {}", "# only\n", "---\n...\n",
		"bag_profile: {? [a] : b}", "bag_profile: [1e400, -0, 0.10, .5, true, null, \"\\ud800\"]", "? a\n: b", "*a", "!!str", "a: &b [*b]", "name: \"\xff\"", "{\"a\":\"\xff\"}", "\ufeffname: x", "{", "[", "'",
	} {
		f.Add([]byte(seed))
	}
	if text, err := os.ReadFile(filepath.Join("..", "docs", "profiles.md")); err == nil {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := profile.Parse(text)
		if err != nil {
			faultsIn(t, err)
			return
		}
		again, err := profile.YAML(d.Profile)
		if err != nil {
			t.Fatal(err)
		}
		e, err := profile.Parse(again)
		if err != nil {
			t.Fatalf("%v of %q, which was written of %q", err, again, text)
		}
		asJSON := func(p registry.Profile) string {
			text, err := profile.JSON(p)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if one, two := asJSON(d.Profile), asJSON(e.Profile); one != two {
			t.Errorf("%s became %s by %q", one, two, again)
		}
	})
}
