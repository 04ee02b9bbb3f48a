package premis_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/premis/premistest"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	ark     = premis.Identifier{Type: "ARK", Value: "ark:/99999/fk4x"}
	version = premis.Identifier{Type: "local", Value: "ark:/99999/fk4x/v1"}
	fileID  = premis.Identifier{Type: "local", Value: "ark:/99999/fk4x/v1/producer/a&b.tif"}
	worker  = premis.Identifier{Type: "local", Value: "holdfast/process"}
)

func at() time.Time { return time.Date(2026, 8, 1, 14, 30, 0, 123456000, time.FixedZone("", 2*3600)) }

func file() *premis.Object {
	return &premis.Object{
		Category: premis.File, IDs: []premis.Identifier{fileID}, OriginalName: "a&b <1>.tif",
		Characteristics: &premis.Characteristics{
			Modified: time.Date(1944, 6, 6, 8, 30, 0, 123_456_000, time.FixedZone("", 2*3600)),
			Fixity:   []premis.Fixity{{Algorithm: "SHA-512", Digest: "00ff", Originator: "holdfast"}, {Algorithm: "MD5", Digest: "ff"}},
			Size:     0,
			Formats: []premis.Format{
				{Name: "image/tiff", Version: "6.0", Registry: "PRONOM", Key: "fmt/353", Role: "specification", Notes: []string{"by signature"}},
				{Registry: "PRONOM", Key: "fmt/154"},
			},
		},
		Storage:       []premis.Storage{{Location: premis.Identifier{Type: "URI", Value: "s3://b/k?x=1&y=2"}, Medium: "S3"}, {Medium: "tape"}},
		Relationships: []premis.Relationship{premis.IncludedIn(version)},
		Events:        []premis.Identifier{premis.EventID("item", "ingestion")},
	}
}

func event() *premis.Event {
	return &premis.Event{
		ID: premis.EventID("item", "ingestion"), Type: premis.Ingestion, Time: at(),
		Details: []string{"holdfast 1.0", "SIP of 1 file"}, Outcome: premis.Success, Notes: []string{"1 file, 0 bytes", "no warnings"},
		Agents:  []premis.Link{{ID: worker, Roles: []string{"executing program"}}},
		Objects: []premis.Link{{ID: version, Roles: []string{"outcome"}}, {ID: fileID}},
	}
}

func agent() *premis.Agent {
	return &premis.Agent{
		IDs: []premis.Identifier{worker}, Names: []string{"Holdfast process"}, Type: premis.Software, Version: "1.0", Notes: []string{"go1.26"},
	}
}

// document writes what add adds and returns it, valid against the schema.
func document(t *testing.T, add func(*premis.Writer) error) ([]byte, *premistest.Node) {
	t.Helper()
	var b bytes.Buffer
	w := premis.NewWriter(&b)
	if err := add(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	root, err := premistest.Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatalf("not XML: %v\n%s", err, b.String())
	}
	if err := premistest.Validate(root); err != nil {
		t.Fatalf("against the schema: %v\n%s", err, b.String())
	}
	if root.Attrs["version"] != "3.0" {
		t.Errorf("version=%q, want 3.0", root.Attrs["version"])
	}
	return b.Bytes(), root
}

func full(w *premis.Writer) error {
	identify := &premis.Event{ID: premis.EventID("item", "identifier assignment"), Type: premis.IdentifierAssignment, Time: at()}
	return errors.Join(
		w.WriteObject(&premis.Object{Category: premis.IntellectualEntity, IDs: []premis.Identifier{ark, {Type: "local", Value: "loc1"}}, OriginalName: "Husky Chicken"}),
		w.WriteObject(&premis.Object{
			Category: premis.Representation, IDs: []premis.Identifier{version},
			Storage: []premis.Storage{{Medium: "S3"}}, Relationships: []premis.Relationship{premis.Represents(ark)},
		}),
		w.WriteObject(file()),
		w.WriteEvent(event()),
		w.WriteEvent(identify),
		w.WriteAgent(agent()),
	)
}

func TestWriter_Golden(t *testing.T) {
	got, _ := document(t, full)
	again, _ := document(t, full)
	if !bytes.Equal(got, again) {
		t.Error("the same entities gave other bytes")
	}
	path := filepath.Join("testdata", "premis.xml")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestWriter_Values(t *testing.T) {
	_, root := document(t, full)
	tests := []struct {
		path []string
		want string
	}{
		{[]string{"event", "eventDateTime"}, "2026-08-01T12:30:00.123456Z|2026-08-01T12:30:00.123456Z"},
		{[]string{"event", "eventType"}, "ingestion|identifier assignment"},
		{[]string{"event", "eventOutcomeInformation", "eventOutcome"}, "success"},
		{[]string{"event", "linkingObjectIdentifier", "linkingObjectIdentifierValue"}, version.Value + "|" + fileID.Value},
		{[]string{"object", "originalName"}, "Husky Chicken|a&b <1>.tif"},
		{[]string{"object", "objectCharacteristics", "size"}, "0"},
		{[]string{"object", "objectCharacteristics", "fixity", "messageDigest"}, "00ff|ff"},
		{[]string{"object", "objectCharacteristics", "format", "formatRegistry", "formatRegistryKey"}, "fmt/353|fmt/154"},
		{[]string{"object", "storage", "contentLocation", "contentLocationValue"}, "s3://b/k?x=1&y=2"},
		{[]string{"agent", "agentVersion"}, "1.0"},
	}
	for _, tt := range tests {
		var got []string
		for _, n := range root.Find(tt.path...) {
			got = append(got, n.Text)
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%s=%q, want %q", strings.Join(tt.path, "/"), got, tt.want)
		}
	}
	types := root.Find("event", "eventType")
	want := map[string]string{
		"authority": "eventType", "authorityURI": "http://id.loc.gov/vocabulary/preservation/eventType",
		"valueURI": "http://id.loc.gov/vocabulary/preservation/eventType/ing",
	}
	if diff := cmp.Diff([]map[string]string{want, {}}, []map[string]string{types[0].Attrs, types[1].Attrs}); diff != "" {
		t.Errorf("attributes of eventType (-want +got):\n%s", diff)
	}
}

func TestWriter_Defaults(t *testing.T) {
	_, root := document(t, func(w *premis.Writer) error {
		o := file()
		o.Characteristics = &premis.Characteristics{Size: -1}
		v := &premis.Event{ID: event().ID, Type: "our own", Time: at(), Notes: []string{"a note without an outcome"}}
		return errors.Join(w.WriteObject(o), w.WriteEvent(v))
	})
	formats := root.Find("object", "objectCharacteristics", "format", "formatDesignation", "formatName")
	if len(formats) != 1 || formats[0].Text != "unknown" {
		t.Errorf("without a format: %v, want one named unknown", formats)
	}
	if sizes := root.Find("object", "objectCharacteristics", "size"); len(sizes) != 0 {
		t.Errorf("an unknown size was written as %s", sizes[0].Text)
	}
}

func TestWriter_HostileNames(t *testing.T) {
	tests := []struct {
		name, want string
		encoded    bool
	}{
		{"README %AF.md", "README %AF.md", false},
		{"∑a ≤ b.txt", "∑a ≤ b.txt", false},
		{"cafe\u0301.md", "cafe\u0301.md", false},
		{" a\tb\nc\r", " a\tb\nc\r", false},
		{"\ufffd", "\ufffd", false},
		{"50%\x07.md", "50%25%07.md", true},
		{"latin \xe9.md", "latin %E9.md", true},
		{"\uffff", "%EF%BF%BF", true},
		{"  ", "%20%20", true},
	}
	for _, tt := range tests {
		_, root := document(t, func(w *premis.Writer) error {
			o := file()
			o.OriginalName = tt.name
			return w.WriteObject(o)
		})
		names, marks := root.Find("object", "originalName"), root.Find("object", "significantProperties")
		if len(names) != 1 || names[0].Text != tt.want || (len(marks) == 1) != tt.encoded {
			t.Errorf("%q is written as %q, marked %d times, want %q, marked: %v", tt.name, names[0].Text, len(marks), tt.want, tt.encoded)
		}
	}
}

func TestWriter_Refuses(t *testing.T) {
	object := func(change func(*premis.Object)) func(*premis.Writer) error {
		return func(w *premis.Writer) error {
			o := file()
			change(o)
			return w.WriteObject(o)
		}
	}
	ev := func(change func(*premis.Event)) func(*premis.Writer) error {
		return func(w *premis.Writer) error {
			v := event()
			change(v)
			return w.WriteEvent(v)
		}
	}
	tests := []struct {
		name, element string
		write         func(*premis.Writer) error
	}{
		{"no category", "object", object(func(o *premis.Object) { o.Category = 0 })},
		{"no id", "objectIdentifier", object(func(o *premis.Object) { o.IDs = nil })},
		{"id without a type", "objectIdentifierType", object(func(o *premis.Object) { o.IDs[0].Type = "" })},
		{"id with a NUL", "objectIdentifierValue", object(func(o *premis.Object) { o.IDs[0].Value = "a\x00" })},
		{"file without characteristics", "objectCharacteristics", object(func(o *premis.Object) { o.Characteristics = nil })},
		{"representation with characteristics", "objectCharacteristics", object(func(o *premis.Object) { o.Category = premis.Representation })},
		{"stored entity", "storage", object(func(o *premis.Object) { o.Category, o.Characteristics = premis.IntellectualEntity, nil })},
		{"empty storage", "storage", object(func(o *premis.Object) { o.Storage = []premis.Storage{{}} })},
		{"half a location", "contentLocationValue", object(func(o *premis.Object) { o.Storage[0].Location.Value = "" })},
		{"digest missing", "messageDigest", object(func(o *premis.Object) { o.Characteristics.Fixity[0].Digest = "" })},
		{"empty format", "format", object(func(o *premis.Object) { o.Characteristics.Formats = []premis.Format{{}} })},
		{"version of no format", "formatVersion", object(func(o *premis.Object) { o.Characteristics.Formats[0].Name = "" })},
		{"registry without a key", "formatRegistryKey", object(func(o *premis.Object) { o.Characteristics.Formats[0].Key = "" })},
		{"key without a registry", "formatRegistryKey", object(func(o *premis.Object) { o.Characteristics.Formats[0].Registry = "" })},
		{"relationship to nothing", "relatedObjectIdentifier", object(func(o *premis.Object) { o.Relationships[0].Objects = nil })},
		{"event without an id", "eventIdentifierType", ev(func(v *premis.Event) { v.ID = premis.Identifier{} })},
		{"event without a type", "eventType", ev(func(v *premis.Event) { v.Type = "" })},
		{"event without a time", "eventDateTime", ev(func(v *premis.Event) { v.Time = time.Time{} })},
		{"event of a far year", "eventDateTime", ev(func(v *premis.Event) { v.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })},
		{"empty detail", "eventDetail", ev(func(v *premis.Event) { v.Details = []string{""} })},
		{"note not UTF-8", "eventOutcomeDetailNote", ev(func(v *premis.Event) { v.Notes = []string{"\xff"} })},
		{"agent without a type", "agentType", func(w *premis.Writer) error {
			return w.WriteAgent(&premis.Agent{IDs: []premis.Identifier{worker}, Names: []string{"x"}})
		}},
		{"agent without an id", "agentIdentifier", func(w *premis.Writer) error { return w.WriteAgent(&premis.Agent{Names: []string{"x"}}) }},
	}
	plain, _ := document(t, func(w *premis.Writer) error { return w.WriteObject(file()) })
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := document(t, func(w *premis.Writer) error {
				err := w.WriteObject(file())
				var ve *premis.ValueError
				if refused := tt.write(w); !errors.As(refused, &ve) || ve.Element != tt.element {
					t.Errorf("%v, want a *ValueError about %s", refused, tt.element)
				}
				return err
			})
			if !bytes.Equal(plain, got) {
				t.Errorf("the refused entity left a trace:\n%s", got)
			}
		})
	}
}

func TestWriter_Order(t *testing.T) {
	document(t, func(w *premis.Writer) error {
		if err := w.Close(); !errors.Is(err, premis.ErrNoObject) {
			t.Errorf("closed while empty: %v, want ErrNoObject", err)
		}
		err := errors.Join(w.WriteObject(file()), w.WriteEvent(event()))
		if late := w.WriteObject(file()); !errors.Is(late, premis.ErrOrder) {
			t.Errorf("object after an event: %v, want ErrOrder", late)
		}
		err = errors.Join(err, w.WriteAgent(agent()))
		if late := w.WriteEvent(event()); !errors.Is(late, premis.ErrOrder) {
			t.Errorf("event after an agent: %v, want ErrOrder", late)
		}
		return err
	})
	w := premis.NewWriter(&bytes.Buffer{})
	if err := errors.Join(w.WriteObject(file()), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Close(), w.WriteAgent(agent())} {
		if !errors.Is(err, premis.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriter_FullDisk(t *testing.T) {
	w := premis.NewWriter(fullDisk{})
	var err error
	for range 100 {
		err = errors.Join(err, w.WriteObject(file()))
	}
	if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) || !errors.Is(w.Close(), errFull) {
		t.Errorf("writes to a full disk: %v", err)
	}
}

// TestWriter_AnyText: any text either reads back unchanged or is refused.
func TestWriter_AnyText(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		name, note := text.Draw(t, "name"), text.Draw(t, "note")
		o, v := file(), event()
		o.OriginalName, v.Notes = name, []string{note}
		var b bytes.Buffer
		w := premis.NewWriter(&b)
		if err := w.WriteObject(o); err != nil {
			t.Fatalf("name %q: %v", name, err)
		}
		refused := w.WriteEvent(v)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		root, err := premistest.Read(&b)
		if err == nil {
			err = premistest.Validate(root)
		}
		if err != nil {
			t.Fatalf("name %q, note %q: %v", name, note, err)
		}
		if notes := root.Find("event", "eventOutcomeInformation", "eventOutcomeDetail", "eventOutcomeDetailNote"); refused == nil && notes[0].Text != note {
			t.Fatalf("note %q reads back as %q", note, notes[0].Text)
		}
	})
}

func TestEventID(t *testing.T) {
	id := premis.EventID("0198c0de-0000-7000-8000-000000000001", "ingestion")
	if id.Type != "UUID" || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id.Value) {
		t.Errorf("%+v is no UUID of version 5", id)
	}
	// Recorded events hang on this value: it must never change.
	if want := "76bc851f-2364-598d-9fc9-5bb479b8eea4"; id.Value != want {
		t.Errorf("id=%s, want %s", id.Value, want)
	}
	seen := make(map[premis.Identifier]string)
	for _, args := range [][]string{{"a", "bc"}, {"ab", "c"}, {"a", "b", "c"}, {"a", "bc", ""}, {"", "abc"}, {"a", "b"}} {
		id := premis.EventID(args[0], args[1], args[2:]...)
		if before, twice := seen[id]; twice {
			t.Errorf("%q and %s share an id", args, before)
		}
		seen[id] = fmt.Sprintf("%q", args)
		if premis.EventID(args[0], args[1], args[2:]...) != id {
			t.Errorf("%q: a repeat gives another id", args)
		}
	}
}

func TestEventType_URI(t *testing.T) {
	base := "http://id.loc.gov/vocabulary/preservation/eventType/"
	tests := map[premis.EventType]string{
		premis.Deletion: "del", premis.FixityCheck: "fix", premis.FormatIdentification: "for",
		premis.Ingestion: "ing", premis.MessageDigestCalculation: "mes", premis.Replication: "rep", premis.Validation: "val",
		premis.VirusCheck: "vir", premis.Dissemination: "dis", premis.FilenameChange: "fil", premis.MetadataExtraction: "mee",
		premis.PolicyAssignment: "poa",
	}
	for kind, code := range tests {
		if got := kind.URI(); got != base+code {
			t.Errorf("%s: URI=%s, want %s", kind, got, base+code)
		}
	}
	if got := premis.IdentifierAssignment.URI() + premis.EventType("x").URI() + premis.Outcome("x").URI(); got != "" {
		t.Errorf("a URI was made up: %s", got)
	}
	if got, want := premis.Fail.URI(), "http://id.loc.gov/vocabulary/preservation/eventOutcome/fai"; got != want {
		t.Errorf("URI=%s, want %s", got, want)
	}
}

// TestWriter_Rights: the schema accepts a statement of each basis, and one that lacks what the schema
// needs is refused.
func TestWriter_Rights(t *testing.T) {
	id := premis.Identifier{Type: "local", Value: "ark:/99999/fk4x/rights"}
	whole := func(r premis.Rights) *premis.Rights {
		r.ID, r.Objects = id, []premis.Identifier{ark}
		r.Granted = []premis.Granted{{Act: "disseminate", Restriction: "embargo", From: "2026-01-01", Until: "2030-01-01"}}
		return &r
	}
	entity := &premis.Object{Category: premis.IntellectualEntity, IDs: []premis.Identifier{ark}, PreservationLevel: "full", Rights: []premis.Identifier{id}}
	const uri = "https://rightsstatements.org/vocab/InC/1.0/"
	for path, r := range map[string]premis.Rights{
		"copyrightInformation/copyrightNote":      {Basis: "copyright", Status: "copyrighted", Jurisdiction: "de", Note: "said", Document: uri},
		"licenseInformation/licenseTerms":         {Basis: "license", Note: "said", Document: uri},
		"statuteInformation/statuteCitation":      {Basis: "statute", Jurisdiction: "de", Note: "said", Document: uri},
		"otherRightsInformation/otherRightsBasis": {Basis: "other", Note: "said", Document: uri},
	} {
		_, root := document(t, func(w *premis.Writer) error { return errors.Join(w.WriteObject(entity), w.WriteRights(whole(r))) })
		said := root.Find(append([]string{"rights", "rightsStatement"}, strings.Split(path, "/")...)...)
		until := root.Find("rights", "rightsStatement", "rightsGranted", "termOfRestriction", "endDate")
		level := root.Find("object", "preservationLevel", "preservationLevelValue")
		if len(said) != 1 || said[0].Text != "said" || len(until) != 1 || until[0].Text != "2030-01-01" || len(level) != 1 || level[0].Text != "full" {
			t.Errorf("%s: %+v, until %+v, level %+v", r.Basis, said, until, level)
		}
	}
	for element, r := range map[string]premis.Rights{
		"rightsBasis":           {Basis: "a wish"},
		"copyrightStatus":       {Basis: "copyright", Jurisdiction: "de"},
		"copyrightJurisdiction": {Basis: "copyright", Status: "unknown"},
		"licenseTerms":          {Basis: "license"},
		"statuteCitation":       {Basis: "statute", Jurisdiction: "de"},
		"otherRightsBasis":      {Basis: "other"},
	} {
		document(t, func(w *premis.Writer) error {
			err := w.WriteObject(entity)
			var ve *premis.ValueError
			if refused := w.WriteRights(whole(r)); !errors.As(refused, &ve) || ve.Element != element {
				t.Errorf("%+v: %v, want a *ValueError about %s", r, refused, element)
			}
			return err
		})
	}
}
