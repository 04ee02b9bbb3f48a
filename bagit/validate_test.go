package bagit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
)

const (
	nfc = "N\u00fa\u00f1ez"
	nfd = "Nu\u0301n\u0303ez"
)

func line(alg, content, name string) string { return digest(alg, content) + "  " + name + "\n" }

// onlyMD5 makes a bag with one manifest of the given text.
func onlyMD5(version, manifest string, files ...string) bag {
	b := newBag(version, files...)
	delete(b, "manifest-sha256.txt")
	b["manifest-md5.txt"] = manifest
	return b
}

// TestValidate_Rules judges bags with one defect each, as a folder, a tar and a zip, and compares
// all faults.
func TestValidate_Rules(t *testing.T) {
	old, current := newBag("0.97", "a", "A", "b", "B"), newBag("1.0", "a", "A", "b", "B")
	for _, tc := range []struct {
		name string
		bag  bag
		want []string // severity, rule and file of every fault
	}{
		{"valid", current, nil},
		{"valid with tag manifest", current.with("bag-info.txt", "Payload-Oxum: 2.2\n").tagged(), nil},
		{"no declaration", current.with("bagit.txt", "-"), []string{"error declaration bagit.txt"}},
		{"mark in declaration", old.with("bagit.txt", "\ufeff"+old["bagit.txt"]), []string{"error byte-order-mark bagit.txt"}},
		{"odd version", old.with("bagit.txt", "BagIt-Version: .97\nTag-File-Character-Encoding: UTF-8\n"), []string{"error version bagit.txt"}},
		{"unknown version", old.with("bagit.txt", "BagIt-Version: 2.0\nTag-File-Character-Encoding: UTF-8\n"), []string{"error version bagit.txt"}},
		{"unknown encoding", old.with("bagit.txt", "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-9\n"), []string{"error encoding bagit.txt"}},
		{"three lines before 1.0", old.with("bagit.txt", old["bagit.txt"]+"more\n"), []string{"warning declaration bagit.txt"}},
		{"three lines", current.with("bagit.txt", current["bagit.txt"]+"more\n"), []string{"error declaration bagit.txt"}},
		{"mark in manifest", onlyMD5("1.0", "\ufeff"+line("md5", "A", "data/a"), "a", "A"), []string{"error byte-order-mark manifest-md5.txt"}},
		{"wrong encoding in manifest", onlyMD5("1.0", line("md5", "A", "data/a\xff"), "a", "A"), []string{
			"error unlisted data/a", "error encoding manifest-md5.txt",
		}},
		{"no manifest", bag{"bagit.txt": current["bagit.txt"], "data/a": "A"}, []string{"error no-manifest manifest-sha512.txt"}},
		{"no payload", bag{"bagit.txt": current["bagit.txt"], "manifest-md5.txt": ""}, []string{"error payload-dir data"}},
		{"corrupt", current.with("data/a", "X"), []string{"error digest data/a", "error digest data/a"}},
		{"corrupt tag file", current.with("bag-info.txt", "A: b\n").tagged().with("bag-info.txt", "A: c\n"), []string{"error digest bag-info.txt"}},
		{"missing", current.with("data/a", "-"), []string{"error missing data/a"}},
		{"all is told", current.with("data/a", "-", "data/b", "X", "data/c", "C"), []string{
			"error missing data/a", "error digest data/b", "error digest data/b", "error unlisted data/c", "error unlisted data/c",
		}},
		{"extra before 1.0", old.with("data/c", "C"), []string{"error unlisted data/c"}},
		{"in one manifest only", current.with("manifest-md5.txt", line("md5", "A", "data/a")), []string{"error unlisted data/b"}},
		{"in one manifest only before 1.0", old.with("manifest-md5.txt", line("md5", "A", "data/a")), nil},
		{"unknown algorithm", current.with("manifest-crc9.txt", "00 data/a\n00 data/b\n"), []string{"error algorithm manifest-crc9.txt"}},
		{"algorithm in capitals", onlyMD5("1.0", line("md5", "A", "data/a"), "a", "A").with("manifest-SHA-256.txt", line("sha256", "A", "data/a")), []string{"warning algorithm manifest-SHA-256.txt"}},
		{"digest of wrong length", onlyMD5("1.0", "abcd data/a\n", "a", "A"), []string{"error manifest-line manifest-md5.txt"}},
		{"line without path", onlyMD5("1.0", line("md5", "A", "data/a")+"abcd\n", "a", "A"), []string{"error manifest-line manifest-md5.txt"}},
		{"folder in manifest", onlyMD5("1.0", line("md5", "A", "data/a")+line("md5", "", "data/d/"), "a", "A", "d/x", "X"), []string{
			"error manifest-line data/d/", "error unlisted data/d/x",
		}},
		{"twice the same", onlyMD5("1.0", line("md5", "A", "data/a")+line("md5", "A", "data/a"), "a", "A"), []string{"error listed-twice data/a"}},
		{"twice the same before 1.0", onlyMD5("0.97", line("md5", "A", "data/a")+line("md5", "A", "data/a"), "a", "A"), []string{"warning listed-twice data/a"}},
		{"twice another before 1.0", onlyMD5("0.97", line("md5", "A", "data/a")+line("md5", "B", "data/a"), "a", "A"), []string{"error listed-twice data/a"}},
		{"outside payload", onlyMD5("0.97", line("md5", "A", "data/a")+line("md5", "", "x"), "a", "A"), []string{"error outside-payload x"}},
		{"tag manifest lists itself", current.with("tagmanifest-md5.txt", line("md5", "", "tagmanifest-sha256.txt"), "tagmanifest-sha256.txt", ""), []string{
			"error tag-manifest manifest-md5.txt", "error tag-manifest manifest-md5.txt",
			"error tag-manifest manifest-sha256.txt", "error tag-manifest manifest-sha256.txt", "error tag-manifest tagmanifest-sha256.txt",
			"warning unlisted bagit.txt", "warning unlisted bagit.txt",
		}},
		{"Oxum", current.with("bag-info.txt", "payload-oxum: 2.3\n"), []string{"error payload-oxum bag-info.txt"}},
		{"Oxum twice", current.with("bag-info.txt", "Payload-Oxum: 2.2\nPayload-Oxum: 2.2\n"), []string{"error payload-oxum bag-info.txt"}},
		{"Oxum is none", current.with("bag-info.txt", "Payload-Oxum: 2 files\n"), []string{"error payload-oxum bag-info.txt"}},
		{"tag without colon", current.with("bag-info.txt", "Bagging-Date\n"), []string{"error bag-info bag-info.txt"}},
		{"space before colon", current.with("bag-info.txt", "A : b\n"), []string{"error bag-info bag-info.txt"}},
		{"space before colon before 1.0", old.with("bag-info.txt", "A : b\n"), []string{"warning bag-info bag-info.txt"}},
		{"date twice", current.with("bag-info.txt", "Bagging-Date: 2026-01-02\nbagging-date: 2026-01-03\n"), []string{"warning bag-info bag-info.txt"}},
		{"md5sum", onlyMD5("0.97", digest("md5", "A")+" *data/a\n", "a", "A"), []string{"warning md5sum-format manifest-md5.txt"}},
		{"dot slash", onlyMD5("0.97", line("md5", "A", "./data/a"), "a", "A"), []string{"warning relative-path manifest-md5.txt"}},
		{"manifest in NFC, file in NFD", onlyMD5("1.0", line("md5", "A", "data/"+nfc), nfd, "A"), []string{"warning normalization data/" + nfd}},
		{"manifest in NFC, other file in NFD", onlyMD5("1.0", line("md5", "A", "data/"+nfc), nfd, "B"), []string{
			"error digest data/" + nfd, "warning normalization data/" + nfd,
		}},
		{"both forms listed, one file", onlyMD5("0.97", line("md5", "", "data/"+nfc)+line("md5", "", "data/"+nfd), nfd, "").
			with("bag-info.txt", "Payload-Oxum: 0.2\n"), []string{
			"warning payload-oxum bag-info.txt", "warning normalization data/" + nfd,
		}},
		{"both forms", onlyMD5("0.97", line("md5", "A", "data/"+nfc)+line("md5", "B", "data/"+nfd), nfc, "A", nfd, "B"), []string{
			"warning normalization data/" + nfc,
		}},
		{"two cases", newBag("1.0", "README", "A", "readme", "B"), []string{"warning case data/readme"}},
		{"two cases listed, one file, before 1.0", onlyMD5("0.97", line("md5", "A", "data/X")+line("md5", "A", "data/x"), "x", "A"), []string{"warning case data/x"}},
		{"two cases listed, one file", onlyMD5("1.0", line("md5", "A", "data/X")+line("md5", "A", "data/x"), "x", "A"), []string{"error missing data/X"}},
		{"another case with another content", onlyMD5("0.97", line("md5", "B", "data/X"), "x", "A"), []string{
			"error missing data/X", "error unlisted data/x",
		}},
		{"system file listed", newBag("1.0", ".DS_Store", "", "a", "A"), []string{"warning system-file data/.DS_Store"}},
		{"system file gone before 1.0", newBag("0.97", "Thumbs.db", "", "a", "A").with("data/Thumbs.db", "-"), []string{"warning system-file data/Thumbs.db"}},
		{"system file gone", newBag("1.0", "Thumbs.db", "", "a", "A").with("data/Thumbs.db", "-"), []string{"error missing data/Thumbs.db"}},
		{"system file came before 1.0", old.with("data/.DS_Store", "x", "bag-info.txt", "Payload-Oxum: 2.2\n"), []string{
			"warning payload-oxum bag-info.txt", "warning system-file data/.DS_Store",
		}},
		{"system file came", current.with("data/.DS_Store", "x"), []string{"error unlisted data/.DS_Store", "error unlisted data/.DS_Store"}},
		{"escapes", onlyMD5("1.0", line("md5", "A", "data/x%0Ay%25z%0d"), "x\ny%z\r", "A"), []string{"warning portable-name data/x\ny%z\r"}},
		{"percent not escaped", onlyMD5("1.0", line("md5", "A", "data/100%"), "100%", "A"), []string{"warning percent-encoding data/100%"}},
		{"escape taken literally", onlyMD5("1.0", line("md5", "A", "data/a%25"), "a%25", "A"), []string{"warning percent-encoding data/a%25"}},
		{"percent before 1.0", onlyMD5("0.97", line("md5", "A", "data/a%25"), "a%25", "A"), nil},
		{"device name", newBag("1.0", "aux.txt", "A"), []string{"warning portable-name data/aux.txt"}},
		{"0.93", newBag("0.93", "a", "A").with("package-info.txt", "Payload-Oxum: 1.1\n"), nil},
		{"0.94, wrong Oxum", newBag("0.94", "a", "A").with("package-info.txt", "Payload-Oxum: 1.2\n"), []string{"error payload-oxum package-info.txt"}},
		{"old Mac", onlyMD5("1.0", strings.ReplaceAll(line("md5", "A", "data/a")+line("md5", "B", "data/b"), "\n", "\r"), "a", "A", "b", "B"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := tc.want
			if want == nil {
				want = []string{}
			}
			folder := validateFS(t, tc.bag.fs())
			if diff := cmp.Diff(want, rules(folder.Faults)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if valid := len(folder.Errors()) == 0; folder.Valid != valid {
				t.Errorf("valid=%t with errors %v", folder.Valid, folder.Errors())
			}
			sameFaults(t, "zip", validateZip(t, tc.bag, "top"), folder)
			sameFaults(t, "tar", validateTar(t, tc.bag, "", nil), folder)
			sameFaults(t, "tar.gz", validateTarBytes(t, zipped(t, packTar(t, tc.bag, "./top", nil))), folder)
		})
	}
}

// TestValidate_UnsafeReferences puts names that lead out of the bag in every place that can hold a
// name.
func TestValidate_UnsafeReferences(t *testing.T) {
	for _, name := range []string{
		"/tmp/foo", "~/foo", "~root/foo", "../foo", "data/../../foo", "data/x/../y", `C:\Windows\System32\setx.exe`,
		`\\?\UNC\server\setx.exe`, `%HomeDrive%\Windows\setx.exe`, `data\..\..\foo`, "data/a\x00b", "data/a\x1b[2J", "file:///foo/bar",
	} {
		b := newBag("0.97", "a", "A")
		for where, bad := range map[string]bag{
			"manifest-md5.txt":    b.with("manifest-md5.txt", b["manifest-md5.txt"]+line("md5", "", name)),
			"tagmanifest-md5.txt": b.with("tagmanifest-md5.txt", line("md5", "", name)),
			"fetch.txt":           b.with("fetch.txt", "http://example.org/x - "+name+"\n"),
		} {
			r := validateFS(t, bad.fs())
			if name == "file:///foo/bar" && where == "fetch.txt" {
				if len(r.Fetch) != 0 {
					t.Errorf("%q may be fetched", name)
				}
				continue // before 1.0 this is a warning, as for any file that is not payload
			}
			if r.Valid {
				t.Errorf("%q in %s: valid, %v", name, where, r.Faults)
			}
			if len(r.Fetch) != 0 {
				t.Errorf("%q may be fetched", name)
			}
		}
	}
}

func TestValidate_Encodings(t *testing.T) {
	latin := bag{
		"bagit.txt":        "BagIt-Version: 0.97\nTag-File-Character-Encoding: ISO-8859-1\n",
		"bag-info.txt":     "Contact-Name: Ren\xe9\n",
		"data/caf\u00e9":   "A",
		"manifest-md5.txt": line("md5", "A", "data/caf\xe9"),
	}
	utf16 := func(s string, big bool) string {
		var b strings.Builder
		for _, r := range s {
			if hi, lo := byte(r>>8), byte(r); big {
				b.Write([]byte{hi, lo})
			} else {
				b.Write([]byte{lo, hi})
			}
		}
		return b.String()
	}
	wide := latin.with(
		"bagit.txt", "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-16\n",
		"bag-info.txt", utf16("\ufeffContact-Name: Ren\u00e9\n", false),
		"manifest-md5.txt", utf16(line("md5", "A", "data/caf\u00e9"), true),
	)
	for name, b := range map[string]bag{"latin": latin, "wide": wide} {
		// bagit.txt comes last in one of the orders: the encoding is known only then.
		for _, order := range [][]string{{"bagit.txt", "bag-info.txt", "data/caf\u00e9", "manifest-md5.txt"}, {"data/caf\u00e9", "manifest-md5.txt", "bag-info.txt", "bagit.txt"}} {
			r := validateTar(t, b, "top", order)
			if !r.Valid || len(r.Info) != 1 || r.Info[0].Value != "Ren\u00e9" {
				t.Errorf("%s: valid=%t, info %v: %v", name, r.Valid, r.Info, r.Faults)
			}
		}
	}
	for name, b := range map[string]bag{
		"plain declared wide": wide.with("manifest-md5.txt", latin["manifest-md5.txt"]),
		"wide declared plain": latin.with("manifest-md5.txt", wide["manifest-md5.txt"]),
	} {
		if r := validateFS(t, b.fs()); r.Valid {
			t.Errorf("%s: valid", name)
		}
	}
}

func TestValidate_Fetch(t *testing.T) {
	full := newBag("1.0", "a", "A", "b%", "B").with("bag-info.txt", "Payload-Oxum: 2.2\n")
	full["manifest-md5.txt"] = strings.ReplaceAll(full["manifest-md5.txt"], "%", "%25")
	full["manifest-sha256.txt"] = strings.ReplaceAll(full["manifest-sha256.txt"], "%", "%25")
	holey := full.with("data/b%", "-", "fetch.txt", "https://example.org/b%25 1 data/b%25\nhttps://example.org/a - data/a\n")
	r := validateFS(t, holey.fs())
	if r.Valid || r.Complete || !r.Holey() {
		t.Errorf("valid=%t complete=%t holey=%t: %v", r.Valid, r.Complete, r.Holey(), r.Faults)
	}
	if diff := cmp.Diff([]string{"error not-fetched data/b%"}, rules(r.Faults)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if len(r.Fetch) != 2 || r.Fetch[0].File != "data/b%" || r.Fetch[0].Length != 1 || r.Fetch[0].Present || !r.Fetch[1].Present || r.Fetch[1].Length != -1 {
		t.Errorf("fetch %+v", r.Fetch)
	}
	if r := validateFS(t, holey.with("data/b%", "B").fs()); !r.Valid {
		t.Errorf("filled bag: %v", r.Faults)
	}

	// Nothing but tag files is sent.
	empty := holey.with("data/a", "-")
	if r := validateTar(t, empty, "", nil); !r.Holey() || len(r.Errors()) != 2 {
		t.Errorf("bag without payload: holey=%t %v", r.Holey(), r.Faults)
	}

	for _, tc := range []struct{ version, line, want string }{
		{"1.0", "https://example.org/x - data/x", "error fetch data/x"},
		{"0.97", "https://example.org/x - data/x", "warning fetch data/x"},
		{"1.0", "https://example.org/x - x.png", "error fetch x.png"},
		{"0.97", "file:///home/x.png 42000 x.png", "warning fetch x.png"},
		{"0.97", "no-scheme - data/a", "error fetch fetch.txt"},
		{"0.97", "https://example.org/x ten data/a", "error fetch fetch.txt"},
		{"0.97", "https://example.org/x", "error fetch fetch.txt"},
		{"0.97", "https://example.org/a 77 data/a", "warning fetch data/a"},
	} {
		r := validateFS(t, newBag(tc.version, "a", "A").with("fetch.txt", tc.line+"\r\n").fs())
		if diff := cmp.Diff([]string{tc.want}, rules(r.Faults)); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tc.version, tc.line, diff)
		}
	}
}

func TestReport_Info(t *testing.T) {
	b := newBag("0.97", "a", "A").with("bag-info.txt",
		"Source-Organization: Spengler\r\n   University\r\n\r\nCONTACT-name: b\nContact-Name:a\nEmpty:\nTest : 3")
	r := validateFS(t, b.fs())
	var got []string
	for _, tag := range r.Info {
		got = append(got, tag.Label+"="+tag.Value)
	}
	want := []string{"Source-Organization=Spengler\nUniversity", "CONTACT-name=b", "Contact-Name=a", "Empty=", "Test=3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if r.Version != bagit.Version097 || r.Encoding != "UTF-8" || r.PayloadFiles != 1 || r.PayloadBytes != 1 || r.TagFiles != 4 {
		t.Errorf("report %+v", r)
	}
}
