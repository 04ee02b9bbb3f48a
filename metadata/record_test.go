package metadata_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/metadata"
)

func TestReadERC(t *testing.T) {
	tests := []struct {
		name, in string
		want     metadata.ERC
	}{
		{
			"whole", "erc:\nwho: (:unkn) unknown\nwhat: Jazz for the bears\nwhen: 1920-1932\nwhere: 2001697390\n",
			metadata.ERC{Who: []string{"(:unkn) unknown"}, What: []string{"Jazz for the bears"}, When: []string{"1920-1932"}, Where: []string{"2001697390"}},
		},
		{
			"many values, any case", "ERC:\nWho: a\nwho: b\nwhere: ark:/1/b\nwhere: l1;l2\nnote: x\n",
			metadata.ERC{Who: []string{"a", "b"}, Where: []string{"ark:/1/b", "l1;l2"}},
		},
		{"no erc line", "who: a\n", metadata.ERC{Who: []string{"a"}}},
		{"blank line between", "erc:\n\nwho: a\n\nwhat: b\n", metadata.ERC{Who: []string{"a"}, What: []string{"b"}}},
		{"second one left alone", "erc:\nwho: a\n\nerc:\nwho: b\n", metadata.ERC{Who: []string{"a"}}},
		{"another record before", "profile: x\n\nerc:\nwho: a\n", metadata.ERC{Who: []string{"a"}}},
		{
			"one line", "erc: Gibbon, Edward | Decline and Fall | 1781 | http://x/y\n",
			metadata.ERC{Who: []string{"Gibbon, Edward"}, What: []string{"Decline and Fall"}, When: []string{"1781"}, Where: []string{"http://x/y"}},
		},
		{"empty values", "erc:\nwho:\nwhat: b\n", metadata.ERC{What: []string{"b"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := metadata.ReadERC(strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, in := range []string{"", "erc:\n", "profile: x\n"} {
		if got, err := metadata.ReadERC(strings.NewReader(in)); !errors.Is(err, metadata.ErrNoMetadata) {
			t.Errorf("%q: %v, %v, want ErrNoMetadata", in, got, err)
		}
	}
}

func TestERC_Identifiers(t *testing.T) {
	tests := []struct {
		where       []string
		arks, local []string
	}{
		{nil, nil, nil},
		{[]string{"ark:/99999/fk4x", "localid;localid; localidtwo ;;localid"}, []string{"ark:/99999/fk4x"}, []string{"localid", "localidtwo"}},
		{[]string{"(:unas)"}, nil, nil},
		{[]string{"(:unkn) unknown;loc1"}, nil, []string{"loc1"}},
		{[]string{"loc10", "ARK:99999/fk4x;loc1"}, []string{"ARK:99999/fk4x"}, []string{"loc10", "loc1"}},
		{[]string{"http://x/ark:/1/b"}, nil, []string{"http://x/ark:/1/b"}},
	}
	for _, tt := range tests {
		arks, local := metadata.ERC{Where: tt.where}.Identifiers()
		if diff := cmp.Diff([][]string{tt.arks, tt.local}, [][]string{arks, local}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.where, diff)
		}
	}
}

func TestWriteERC_Golden(t *testing.T) {
	golden(t, "mrt-erc.txt", written(t, func(b *bytes.Buffer) error {
		return metadata.WriteERC(b, metadata.Metadata{
			Who: []string{"Tracy Seneca", "O'Neill; Ω, 50% & more"}, What: []string{"Husky\nChicken"}, When: []string{"2009-09-01"},
			PrimaryID: "ark:/99999/fk4jq1b2x", LocalIDs: []string{"localid", "localidtwo", "a;b"},
		}.ERC())
	}))
	golden(t, "mrt-erc-defaults.txt", written(t, func(b *bytes.Buffer) error { return metadata.WriteERC(b, metadata.ERC{Who: []string{""}}) }))
}

func TestERC_RoundTrip(t *testing.T) {
	m := metadata.Metadata{
		Who: []string{" a\r\nb: c ", "#d"}, What: []string{"100%25"}, When: []string{"?"},
		PrimaryID: "ark:/99999/fk4", LocalIDs: []string{"l;1", "l%sc", "%pe", "é"},
	}
	b := written(t, func(b *bytes.Buffer) error { return metadata.WriteERC(b, m.ERC()) })
	got, err := metadata.ReadERC(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.ERC(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	arks, local := got.Identifiers()
	if diff := cmp.Diff([][]string{{m.PrimaryID}, m.LocalIDs}, [][]string{arks, local}); diff != "" {
		t.Errorf("identifiers (-want +got):\n%s", diff)
	}
}

// TestReadERC_Jazzbears reads the ERC of a real submission (Merritt's sample jazzbears.zip).
func TestReadERC_Jazzbears(t *testing.T) {
	z, err := zip.OpenReader(filepath.Join(sharedCases(t), "merritt", "sampleFiles", "jazzbears.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open("mrt-erc.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := metadata.ReadERC(f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := metadata.Merge(metadata.Sources{ERC: &e, Form: metadata.Metadata{Who: []string{"form"}, LocalIDs: []string{"row"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := metadata.Metadata{
		Who: []string{"(:unkn) unknown"}, What: []string{"Jazz for the bears"}, When: []string{"1920-1932"},
		LocalIDs: []string{"row", "2001697390"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// sharedCases finds shared/cases beside the checkout.
func sharedCases(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	cases := filepath.Join(filepath.Dir(dir), "shared", "cases")
	if _, err := os.Stat(cases); err != nil {
		t.Skipf("the shared cases are absent: %v", err)
	}
	return cases
}

func TestParseCode(t *testing.T) {
	tests := []struct {
		in    string
		code  metadata.Code
		words string
		ok    bool
	}{
		{"(:unkn) unknown", metadata.Code("(:unkn)"), "unknown", true},
		{" (:UNAS) ", metadata.Unassigned, "", true},
		{"(:tba)", metadata.Code("(:tba)"), "", true},
		{"(:at) ark:/1/b", metadata.Code("(:at)"), "ark:/1/b", true},
		{"(:xyz) later", "(:xyz)", "later", true},
		{"(:)", "", "", false},
		{"(:un kn)", "", "", false},
		{"(:un", "", "", false},
		{"unknown (:unkn)", "", "", false},
		{"", "", "", false},
	}
	for _, tt := range tests {
		code, words, ok := metadata.ParseCode(tt.in)
		if code != tt.code || words != tt.words || ok != tt.ok {
			t.Errorf("ParseCode(%q)=%q, %q, %v, want %q, %q, %v", tt.in, code, words, ok, tt.code, tt.words, tt.ok)
		}
	}
}
