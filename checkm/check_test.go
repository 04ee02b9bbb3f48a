package checkm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

func nameRow(name string) string { return "https://h.test/x | | | 1 | | " + name + "\n" }

func TestCheckNames(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  []string
	}{
		{"all different", []string{"a", "b", "c/b", "c/a", "c/d/a", "ca", "c.d/a", "d/c"}, nil},
		{"a folder of an earlier file", []string{"a", "b", "a/b", "b/c/d"}, []string{"8 error file-and-folder", "9 error file-and-folder"}},
		{"a file that is an earlier folder", []string{"a/b/c", "a", "a/b"}, []string{"7 error file-and-folder", "8 error file-and-folder"}},
		{"a folder that is a file, behind others of the folder", []string{"x/a/1", "x/a/2", "y/1", "x/a/3", "x/a"}, []string{"10 error file-and-folder"}},
		{"a file and a folder that differ by case", []string{"A", "a/b", "X/y", "x"}, []string{"7 warning name-case", "9 warning name-case"}},
		{"a long part", []string{strings.Repeat("x", 255), "d/" + strings.Repeat("x", 256), strings.Repeat("d/", 200)}, []string{"7 warning name-long", "8 error name"}},
		{"same", []string{"a.txt", "b", "a.txt", "a.txt"}, []string{"8 error name-duplicate", "9 error name-duplicate"}},
		{"case, small first", []string{"a.txt", "A.txt", "A.TXT"}, []string{"7 warning name-case", "8 warning name-case"}},
		{"case, capital first", []string{"A.txt", "A.TXT", "a.txt"}, []string{"7 warning name-case", "8 warning name-case"}},
		{"same after a case variant", []string{"A.txt", "a.txt", "A.txt"}, []string{"7 warning name-case", "8 error name-duplicate"}},
		{"case of a folder", []string{"D/a", "d/a"}, []string{"7 warning name-case"}},
		{"case beyond ASCII", []string{"straße", "STRASSE", "Σ", "ς"}, []string{"7 warning name-case", "9 warning name-case"}},
		{"normal form", []string{"\u00e9", "e\u0301"}, []string{"7 warning name-case"}},
		{"escaped and not", []string{"a b", "a%20b"}, []string{"7 error name-duplicate"}},
		{"default name", []string{"x", ""}, []string{"7 error name-duplicate"}},
		{"cut name is no duplicate", []string{"../x", "../x"}, []string{"6 error name", "7 error name"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var rows []string
			for _, n := range tt.names {
				rows = append(rows, nameRow(n))
			}
			wantFaults(t, check(t, object(rows...), checkm.Options{}), tt.want...)
		})
	}
	wantFaults(t, check(t, batch(nameRow("a"), nameRow("a")), checkm.Options{}))
}

func TestCheckNamesSayWhere(t *testing.T) {
	rep := check(t, object(nameRow("a.txt"), nameRow("b"), nameRow("A.txt"), nameRow("a.txt")), checkm.Options{})
	if len(rep.Faults) != 2 || !strings.Contains(rep.Faults[0].Expected, "line 6") || !strings.Contains(rep.Faults[1].Expected, "line 6") {
		t.Errorf("faults = %v, want both to name line 6", rep.Faults)
	}
}

// TestCheckNamesOfFoldersSayWhere checks that a file whose name is also a folder is reported with
// both lines and the folder.
func TestCheckNamesOfFoldersSayWhere(t *testing.T) {
	for _, tt := range []struct{ first, second, found string }{
		{"a/b", "a/b/c/d.txt", "a/b/c/d.txt, whose folder a/b is also a file"},
		{"a/b/c/d.txt", "a/b", "a/b, which is also a folder"},
	} {
		rep := check(t, object(nameRow("x"), nameRow(tt.first), nameRow("y"), nameRow(tt.second)), checkm.Options{})
		if len(rep.Faults) != 1 || rep.Faults[0].Line != 9 || !strings.HasSuffix(rep.Faults[0].Expected, "is on line 7") || rep.Faults[0].Found != tt.found {
			t.Errorf("%s, %s: %v", tt.first, tt.second, rep.Faults)
		}
	}
}

// TestCheckManyNames checks that none of 100,000 different names is taken for another.
func TestCheckManyNames(t *testing.T) {
	rep, err := checkm.Check(newFlood(100_000, "Data/File_NNNNNNNN.TIF"), checkm.Options{})
	if err != nil || rep.Errors > 0 || rep.Warnings != 0 || rep.Rows != 100_000 || rep.Bytes != 100_000*1024 {
		t.Errorf("report %+v, err %v", rep, err)
	}
}

func TestCheckCounts(t *testing.T) {
	rep := check(t, object("https://h.test/1 | | | 5\n", "https://h.test/2\n", "https://h.test/3 | | | 5x\n",
		"https://h.test/4 | | | 9223372036854775807\n"), checkm.Options{})
	if rep.Rows != 4 || rep.Refused != 1 || rep.Unsized != 1 || rep.Bytes != 1<<63-1 || rep.Errors == 0 || !rep.Sound {
		t.Errorf("report = %+v", rep)
	}
}

// TestCheckCap checks that the list of faults is bounded and the counts are not, and that warnings
// never displace errors.
func TestCheckCap(t *testing.T) {
	var rows []string
	for i := range 50 {
		rows = append(rows, fmt.Sprintf("https://h.test/%d | | | | foo\n", i), "ftp://x | | | x\n")
	}
	text := objectHead + strings.Join(rows, "")
	rep := check(t, text, checkm.Options{MaxFaults: 10})
	if rep.Errors != 101 || rep.Warnings != 50 || len(rep.Faults) != 10 || rep.Rows != 100 {
		t.Fatalf("%d errors, %d warnings, %d faults, %d rows", rep.Errors, rep.Warnings, len(rep.Faults), rep.Rows)
	}
	for i, f := range rep.Faults {
		if f.Severity != checkm.Error {
			t.Errorf("fault %d is a %s", i, f.Severity)
		}
	}
	if last := rep.Faults[9]; last.Rule != checkm.RuleTruncated || !last.Manifest {
		t.Errorf("last fault = %v, want the truncation", last)
	}
	if rep := check(t, text, checkm.Options{}); len(rep.Faults) != 151 {
		t.Errorf("%d faults by default, want all 151", len(rep.Faults))
	}
}

// TestFaultShown checks that a fault contains no secrets and no characters that would harm a page,
// a terminal or a database.
func TestFaultShown(t *testing.T) {
	rep := check(t, object(
		"ftp://user:pass@h.test/a?sig=secret\n",
		"https://h.test/a | "+strings.Repeat("é", 500)+" | x\n",
		"https://h.test/a | \x1b[31m | x\n",
	), checkm.Options{})
	out, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"pass", "secret", "\x1b", `\u001b`, "user"} {
		if strings.Contains(string(out), secret) {
			t.Errorf("the report shows %q: %s", secret, out)
		}
	}
	if len(out) > 3000 {
		t.Errorf("report of %d bytes", len(out))
	}
	want := "line 6, column 1 (nfo:fileUrl): url-scheme; expected: a URL of scheme http, https or s3; found: ftp://…@h.test/a?…; " +
		"fix: make the file available over one of these"
	if got := rep.Faults[0].Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		name, text string
		kind       checkm.Kind
		ok         bool
	}{
		{"object", objectHead, checkm.Object, true},
		{"batch, CR", strings.ReplaceAll(batchHead, "\n", "\r"), checkm.Batch, true},
		{"byte order mark", "\xEF\xBB\xBF" + objectHead, checkm.Object, true},
		{"comments first", "# ours\n\n#%checkm_0.7\n" + objectHead, checkm.Object, true},
		{"profile alone", "#%profile | http://uc3.cdlib.org/registry/mrt/mrt-batch-manifest\n", checkm.Batch, true},
		{"declaration alone", "#%checkm_0.7", checkm.Unknown, true},
		{"unknown profile", "#%checkm_0.7\n#%profile | x\n", checkm.Unknown, true},
		{"row first", row1 + objectHead, checkm.Unknown, false},
		{"comment", "# a shell script\n", checkm.Unknown, false},
		{"YAML", "%YAML 1.2\n", checkm.Unknown, false},
		{"empty", "", checkm.Unknown, false},
		{"binary", "\x1f\x8b\x08\x00#%checkm_0.7", checkm.Unknown, false},
	}
	for _, tt := range tests {
		if kind, ok := checkm.Detect([]byte(tt.text)); kind != tt.kind || ok != tt.ok {
			t.Errorf("%s: %q, %t; want %q, %t", tt.name, kind, ok, tt.kind, tt.ok)
		}
	}
}

func TestKind(t *testing.T) {
	for _, k := range []checkm.Kind{checkm.Object, checkm.Batch, checkm.ContainerBatch, checkm.FileBatch, checkm.Add, checkm.InContainer} {
		if got, ok := checkm.KindOf(k.ProfileURI()); !ok || got != k {
			t.Errorf("KindOf(%q) = %q, %t; want %q", k.ProfileURI(), got, ok, k)
		}
		if k.Batch() == k.Listing() {
			t.Errorf("%q: Batch %t, Listing %t", k, k.Batch(), k.Listing())
		}
	}
	if k, ok := checkm.KindOf(""); ok || k.ProfileURI() != "" || k.Batch() || k.Listing() {
		t.Errorf("KindOf(\"\") = %q, %t", k, ok)
	}
}
