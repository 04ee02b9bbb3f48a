package metadata_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/metadata"
)

func TestMerge_Precedence(t *testing.T) {
	full := metadata.Sources{
		ERC:        &metadata.ERC{Who: []string{"erc"}, What: []string{"erc"}, When: []string{"erc"}},
		DataCite:   &metadata.DataCite{Creators: []string{"datacite"}, Titles: []string{"datacite"}, PublicationYear: "2009"},
		DublinCore: &metadata.DublinCore{Creator: []string{"dc"}, Title: []string{"dc"}, Date: []string{"dc"}},
		Form:       metadata.Metadata{Who: []string{"form"}, What: []string{"form"}, When: []string{"form"}},
	}
	tests := []struct {
		name            string
		change          func(*metadata.Sources)
		who, what, when string
	}{
		{"all", func(*metadata.Sources) {}, "erc", "erc", "erc"},
		{"each by itself", func(s *metadata.Sources) { s.ERC = &metadata.ERC{What: []string{"erc"}} }, "datacite", "erc", "2009"},
		{"unassigned is absent", func(s *metadata.Sources) { s.ERC = &metadata.ERC{Who: []string{"(:unas)"}} }, "datacite", "datacite", "2009"},
		{"unknown is a statement", func(s *metadata.Sources) { s.ERC = &metadata.ERC{Who: []string{"(:unkn)"}} }, "(:unkn)", "datacite", "2009"},
		{"no ERC", func(s *metadata.Sources) { s.ERC = nil }, "datacite", "datacite", "2009"},
		{"no ERC, no DataCite", func(s *metadata.Sources) { s.ERC, s.DataCite = nil, nil }, "dc", "dc", "dc"},
		{"form only", func(s *metadata.Sources) { *s = metadata.Sources{Form: s.Form} }, "form", "form", "form"},
		{"nothing", func(s *metadata.Sources) { *s = metadata.Sources{} }, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := full
			tt.change(&s)
			got, err := metadata.Merge(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []struct {
				name, want string
				got        []string
			}{{"who", tt.who, got.Who}, {"what", tt.what, got.What}, {"when", tt.when, got.When}} {
				if strings.Join(f.got, "|") != f.want {
					t.Errorf("%s=%q, want %q", f.name, f.got, f.want)
				}
			}
		})
	}
}

func TestMerge_Identifiers(t *testing.T) {
	// Merritt's own case: form "localidfour; localidfive", then the ids of the ERC in the
	// container.
	s := metadata.Sources{
		Form:       metadata.Metadata{LocalIDs: metadata.SplitLocalIDs("localidfour; localidfive")},
		ERC:        &metadata.ERC{Where: []string{"ark:/99999/dummy", "localid;localidtwo;localidthree;localidfive"}},
		DublinCore: &metadata.DublinCore{Identifier: []string{"dc1; localid", "ark:/99999/other", "(:unav)"}},
	}
	tests := []struct {
		name    string
		change  func(*metadata.Sources)
		primary string
		local   string
	}{
		{"form, ERC, Dublin Core", func(*metadata.Sources) {}, "ark:/99999/dummy", "localidfour;localidfive;localid;localidtwo;localidthree;dc1"},
		{"Dublin Core suppressed", func(s *metadata.Sources) { s.SuppressDublinCoreLocalID = true }, "ark:/99999/dummy", "localidfour;localidfive;localid;localidtwo;localidthree"},
		{"form's ARK, same but for slash and hyphen", func(s *metadata.Sources) { s.Form.PrimaryID = " ark:99999/dum-my" }, "ark:99999/dum-my", "localidfour;localidfive;localid;localidtwo;localidthree;dc1"},
		{"no ARK", func(s *metadata.Sources) { s.ERC = nil }, "", "localidfour;localidfive;dc1;localid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := s
			tt.change(&s)
			got, err := metadata.Merge(s)
			if err != nil {
				t.Fatal(err)
			}
			if got.PrimaryID != tt.primary {
				t.Errorf("primary=%q, want %q", got.PrimaryID, tt.primary)
			}
			if local := strings.Join(got.LocalIDs, ";"); local != tt.local {
				t.Errorf("local ids=%q, want %q", local, tt.local)
			}
		})
	}
}

func TestMerge_Conflict(t *testing.T) {
	tests := []struct {
		name string
		in   metadata.Sources
		want metadata.ConflictError
	}{
		{
			"form and ERC",
			metadata.Sources{Form: metadata.Metadata{PrimaryID: "ark:/1/b"}, ERC: &metadata.ERC{Where: []string{"ark:/1/c"}}},
			metadata.ConflictError{First: "ark:/1/b", FirstSource: "the submission", Second: "ark:/1/c", SecondSource: "mrt-erc.txt"},
		},
		{
			"two in the ERC",
			metadata.Sources{ERC: &metadata.ERC{Where: []string{"ark:/1/b;ark:/1/c"}}},
			metadata.ConflictError{First: "ark:/1/b", FirstSource: "mrt-erc.txt", Second: "ark:/1/c", SecondSource: "mrt-erc.txt"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := metadata.Merge(tt.in)
			var ce *metadata.ConflictError
			if !errors.As(err, &ce) {
				t.Fatalf("%v, want a *ConflictError", err)
			}
			if diff := cmp.Diff(tt.want, *ce); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeLocalIDs_WholeStrings(t *testing.T) {
	got := metadata.MergeLocalIDs([]string{"loc10", ""}, []string{"loc1", "loc10", "Loc1"})
	if diff := cmp.Diff([]string{"loc10", "loc1", "Loc1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLocalIDs_RoundTrip(t *testing.T) {
	id := rapid.StringOf(rapid.SampledFrom([]rune("ab;% speécE"))).
		Filter(func(s string) bool { return s != "" && strings.TrimSpace(s) == s })
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(id, 1, 5).Draw(t, "ids")
		list := metadata.JoinLocalIDs(want)
		if diff := cmp.Diff(want, metadata.SplitLocalIDs(list)); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", list, diff)
		}
	})
	if got := metadata.JoinLocalIDs([]string{"localid", "", "50%off"}); got != "localid;50%off" {
		t.Errorf("ordinary ids became %q", got)
	}
}
