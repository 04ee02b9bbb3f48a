package intake_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// list is an mrt-manifest.txt of rows "name|algorithm|digest|size".
func list(rows ...string) string {
	return "#%checkm_0.7\n#%profile | " + checkm.InContainer.ProfileURI() + "\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileName | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | mrt:mimeType\n" +
		strings.Join(append(rows, "#%eof\n"), "\n")
}

func md5Of(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestJudge_Listing checks that a container is compared with its own mrt-manifest.txt before it is
// accepted, and that all differences are reported.
func TestJudge_Listing(t *testing.T) {
	t.Parallel()
	sound := tree{"a": "alpha", "b|c": "beta", "d/e": "delta"}
	rows := []string{"a | md5 | " + md5Of("alpha") + " | 5", "b%7cc | sha256 | " + fmt.Sprintf("%x", sha256.Sum256([]byte("beta"))), "d/e"}
	for _, tt := range []struct {
		name  string
		files tree
		list  string
		want  []string // rule and file of each fault
	}{
		{"agrees", sound, list(rows...), nil},
		{"lists itself", sound, list(append(rows, "mrt-manifest.txt | | | 7")...), nil},
		{"disagrees", sound.with(tree{"a": "other", "d/e": "", "x": "extra"}), list(rows...), []string{
			"listing-digest a", "listing-absent d/e", "listing-extra x",
		}},
		{"another size", sound, list(rows[0]+"0", rows[1], rows[2]), []string{"listing-size a"}},
		{"no list", sound, "hello", []string{"profile-missing ", "truncated "}},
		{"names one twice", sound, list(append(rows, "a")...), []string{"name-duplicate "}},
		{"nothing listed", sound, list(), []string{"no-entries "}},
	} {
		for kind, data := range map[string][]byte{
			"zip": tt.files.with(tree{"mrt-manifest.txt": tt.list}).zip(t), "tar": tt.files.with(tree{"mrt-manifest.txt": tt.list}).tar(t),
		} {
			report, err := intake.Judge(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), registry.AutoType, intake.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range report.Faults {
				if f.Severity != intake.Error {
					continue
				}
				got = append(got, f.Rule+" "+f.File)
				if !strings.HasPrefix(f.Source, "mrt-manifest.txt") {
					t.Errorf("%s: fault %v does not say where", tt.name, f)
				}
			}
			if tt.name != "no list" {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", tt.name, kind, diff)
				}
			} else if len(got) == 0 {
				t.Errorf("%s, %s: no fault", tt.name, kind)
			}
			if report.Accepted != (len(tt.want) == 0) || report.Errors != int64(len(got)) {
				t.Errorf("%s, %s: accepted=%t errors=%d", tt.name, kind, report.Accepted, report.Errors)
			}
		}
	}
	// Of a bag it is a file like any other.
	bag := bagTree("bag/", tree{"mrt-manifest.txt": list("absent")})
	data := bag.zip(t)
	report, err := intake.Judge(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), registry.AutoType, intake.Options{})
	if err != nil || !report.Accepted {
		t.Errorf("a bag: %v, %v", report.Faults, err)
	}
}

// TestReadListing_AllFaults checks that a list is read to its end and every fault of its rows
// reported.
func TestReadListing_AllFaults(t *testing.T) {
	t.Parallel()
	text := list("a | md5x | 00 | 1", "b | md5 | xyz | -1", "../c", "d")
	_, err := intake.ReadListing(strings.NewReader(text))
	refusal, ok := intake.AsRefusal(err)
	if !ok || !refusal.ContentFault() {
		t.Fatalf("error %v, want a refusal", err)
	}
	var places []string
	for _, f := range refusal.Report.Faults {
		places = append(places, f.Source)
	}
	for _, line := range []string{"6", "7", "8"} {
		if !slices.Contains(places, "mrt-manifest.txt:"+line) {
			t.Errorf("no fault of line %s: %v", line, err)
		}
	}
	if slices.Contains(places, "mrt-manifest.txt:9") {
		t.Errorf("a fault of a good line: %v", err)
	}
}
