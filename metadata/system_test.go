package metadata_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/metadata"
)

func ingest() metadata.Ingest {
	return metadata.Ingest{
		Service: "holdfast 1.0", SubmissionDate: time.Date(2026, 8, 1, 12, 30, 0, 0, time.FixedZone("", 2*3600)),
		Batch: "bid-1", Job: "jid-1", UserAgent: "tracy", File: "4blocks.checkm", Type: "object-manifest",
		Profile: "merritt_demo_content", Collections: []string{"ark:/99999/c1", "ark:/99999/c2"},
	}
}

func fullIngest() metadata.Ingest {
	v := ingest()
	v.StorageService, v.StorageNode = "http://store:35121", "9501"
	v.Notification = []string{"a@example.org", "b@example.org"}
	v.SuppliedIdentifier = "ark:/99999/fk4x"
	v.DigestType, v.DigestValue = "sha-256", "abc123"
	v.Creator, v.Title, v.Date = "Seneca, Tracy", "Husky\nChicken: 50%", "2009-09-01"
	v.LocalIDs, v.Note = []string{"localid", "localidtwo"}, " padded "
	v.PackageIntegrity, v.ContainerValidity, v.ManifestValidity, v.ManifestIntegrity = "valid", "valid", "valid", "valid"
	v.AssignedIdentifier, v.RetrievedIdentifier = "ark:/99999/fk4y", "ark:/99999/fk4z"
	v.EmbargoEndDate, v.Handlers = "2030-01-01", []string{"estimate", "download", "process"}
	return v
}

func TestWriteIngest_Golden(t *testing.T) {
	golden(t, "mrt-ingest.txt", written(t, func(b *bytes.Buffer) error { return metadata.WriteIngest(b, fullIngest()) }))
	golden(t, "mrt-ingest-least.txt", written(t, func(b *bytes.Buffer) error { return metadata.WriteIngest(b, ingest()) }))
}

// TestWriteIngest_Order checks the fields and their order, which are those of Merritt's writer.
func TestWriteIngest_Order(t *testing.T) {
	b := written(t, func(b *bytes.Buffer) error { return metadata.WriteIngest(b, fullIngest()) })
	records, err := metadata.ReadANVL(bytes.NewReader(b))
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	var labels []string
	for _, e := range records[0] {
		labels = append(labels, e.Label)
	}
	want := strings.Fields(`ingest submissionDate batch job userAgent file type profile collection storageService storageNode
		notification suppliedIdentifier digestType digestValue creator title date localIdentifier note packageIntegrity
		containerValidity manifestValidity manifestIntegrity assignedIdentifier retrievedIdentifier embargoEndDate handlers`)
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if title, _ := records[0].First("title"); title != "Husky\nChicken: 50%" {
		t.Errorf("title=%q", title)
	}
}

func TestSystemFiles_Golden(t *testing.T) {
	golden(t, "mrt-mom.txt", written(t, func(b *bytes.Buffer) error {
		return metadata.WriteMOM(b, metadata.MOM{
			PrimaryID: "ark:/99999/fk4x", Type: "MRT-curatorial", Role: "MRT-content", Aggregate: "MRT-none",
			LocalIDs: []string{"localid", "localidtwo"},
		})
	}))
	golden(t, "mrt-mom-least.txt", written(t, func(b *bytes.Buffer) error {
		return metadata.WriteMOM(b, metadata.MOM{PrimaryID: "ark:/99999/fk4x", Type: "MRT-curatorial", Role: "MRT-content"})
	}))
	golden(t, "mrt-owner.txt", written(t, func(b *bytes.Buffer) error { return metadata.WriteOwner(b, metadata.Owner{ARK: "ark:/99999/owner"}) }))
	golden(t, "mrt-membership.txt", written(t, func(b *bytes.Buffer) error {
		return metadata.WriteMembership(b, metadata.Membership{Collections: []string{"ark:/99999/c1", "ark:/99999/c2"}})
	}))
}

func TestSystemFiles_Refuse(t *testing.T) {
	with := func(change func(*metadata.Ingest)) func(*bytes.Buffer) error {
		return func(b *bytes.Buffer) error {
			v := fullIngest()
			change(&v)
			return metadata.WriteIngest(b, v)
		}
	}
	mom := metadata.MOM{PrimaryID: "ark:/1/b", Type: "t", Role: "r"}
	tests := []struct {
		name, field string
		write       func(*bytes.Buffer) error
	}{
		{"ingest without a batch", "batch", with(func(v *metadata.Ingest) { v.Batch = "" })},
		{"ingest without a time", "submissionDate", with(func(v *metadata.Ingest) { v.SubmissionDate = time.Time{} })},
		{"ingest without a collection", "collection", with(func(v *metadata.Ingest) { v.Collections = nil })},
		{"ingest with a NUL", "note", with(func(v *metadata.Ingest) { v.Note = "a\x00" })},
		{"ingest not UTF-8", "handlers", with(func(v *metadata.Ingest) { v.Handlers = []string{"\xff"} })},
		{"MOM without an ARK", "primaryIdentifier", func(b *bytes.Buffer) error { return metadata.WriteMOM(b, metadata.MOM{Type: "t", Role: "r"}) }},
		{"MOM not UTF-8", "localIdentifier", func(b *bytes.Buffer) error { m := mom; m.LocalIDs = []string{"\xff"}; return metadata.WriteMOM(b, m) }},
		{"owner empty", "owner", func(b *bytes.Buffer) error { return metadata.WriteOwner(b, metadata.Owner{ARK: " "}) }},
		{"owner of two lines", "owner", func(b *bytes.Buffer) error { return metadata.WriteOwner(b, metadata.Owner{ARK: "a\nb"}) }},
		{"membership empty", "collection", func(b *bytes.Buffer) error { return metadata.WriteMembership(b, metadata.Membership{}) }},
		{"membership of two lines", "collection", func(b *bytes.Buffer) error {
			return metadata.WriteMembership(b, metadata.Membership{Collections: []string{"ok", "a\rb"}})
		}},
		{"ERC not UTF-8", "where", func(b *bytes.Buffer) error { return metadata.WriteERC(b, metadata.ERC{Where: []string{"\xff"}}) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			err := tt.write(&b)
			var fe *metadata.FieldError
			if !errors.As(err, &fe) || fe.Field != tt.field {
				t.Errorf("%v, want a *FieldError about %s", err, tt.field)
			}
			if b.Len() > 0 {
				t.Errorf("%q was written beside an error", b.String())
			}
		})
	}
}

func TestReadDelete(t *testing.T) {
	in := "\ufeffbrain1.tif\r\n\r\n#1 50%20.tif\nproducer/dir/a b\nbrain1.tif\nproducer/brain1.tif\n last \nこんにちは.md"
	got, err := metadata.ReadDelete(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	want := []metadata.Deletion{
		{"brain1.tif", "brain1.tif", 1},
		{"#1 50%20.tif", "#1 50%20.tif", 3},
		{"dir/a b", "producer/dir/a b", 4},
		{" last ", " last ", 7},
		{"こんにちは.md", "こんにちは.md", 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadDelete_Refuses(t *testing.T) {
	for _, bad := range []string{"../x", "/etc/passwd", "a/../../x", "producer/../x", "producer/", "a//b", "./a", "a/", "a\x00", "\xff"} {
		got, err := metadata.ReadDelete(strings.NewReader("ok\n" + bad + "\n"))
		var se *metadata.SyntaxError
		if !errors.As(err, &se) || se.Line != 2 || got != nil {
			t.Errorf("%q: %v, %v, want a *SyntaxError at line 2 and nothing to delete", bad, got, err)
		}
	}
	if _, err := metadata.ReadDelete(&endless{c: 'x'}); !errors.Is(err, metadata.ErrTooLarge) {
		t.Errorf("endless: %v, want ErrTooLarge", err)
	}
}

func FuzzReadDelete(f *testing.F) {
	f.Add("a\nproducer/b\n../c\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		deletions, err := metadata.ReadDelete(strings.NewReader(s))
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for _, d := range deletions {
			if seen[d.Name] || d.Name == "" || strings.HasPrefix(d.Name, "/") || strings.Contains("/"+d.Name+"/", "/../") || strings.ContainsAny(d.Name, "\r\n\x00") {
				t.Fatalf("%q was accepted", d.Name)
			}
			seen[d.Name] = true
		}
	})
}
