package checkm_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

// TestWhole has manifests that are odd or broken as a whole: cases known from Merritt's parser, and
// its test manifests that are not available as files.
func TestWhole(t *testing.T) {
	noHead := row1 + eof
	profile := "#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n"
	swap := func(old, new string) string { return strings.Replace(object(row1), old, new, 1) }
	tests := []struct {
		name   string
		text   string
		kind   checkm.Kind
		rows   int64
		sound  bool
		faults []string
	}{
		{"good", object(row1), "", 1, true, nil},
		{"UTF-8 byte order mark", "\xEF\xBB\xBF" + object(row1), "", 1, false, []string{"1 error byte-order-mark"}},
		{"UTF-16", "\xFF\xFE#\x00%\x00", "", 0, false, []string{"1 error byte-order-mark"}},
		{"empty", "", "", 0, false, []string{"1 error empty"}},
		{"blank", "\n \n", checkm.Object, 0, false, []string{
			"2 error truncated", "2 error no-entries", "2 warning header-missing", "2 warning header-missing", "2 warning header-missing",
		}},
		{"no headers", noHead, "", 1, false, []string{
			"1 error profile-missing", "1 warning header-missing", "1 warning header-missing", "1 warning header-missing",
		}},
		{"no headers, type given", noHead, checkm.Object, 1, true, []string{
			"1 warning header-missing", "1 warning header-missing", "1 warning header-missing",
		}},
		{"no headers, batch given", noHead, checkm.Batch, 1, true, []string{
			"1 warning header-missing", "1 warning header-missing", "1 warning header-missing",
		}},
		{"unknown profile", swap("mrt-ingest-manifest", "mrt-other"), "", 1, false, []string{"2 error profile-unknown"}},
		{"https profile", swap("http://uc3", "https://uc3"), "", 1, false, []string{"2 error profile-unknown"}},
		{"any character for a dot", swap("uc3.cdlib.org", "uc3xcdlib.org"), "", 1, false, []string{"2 error profile-unknown"}},
		{"#%Profile", swap("#%profile", "#%Profile"), "", 1, false, []string{"6 error profile-missing", "2 warning header"}},
		{"profile without its first pipe", swap("#%profile | ", "#%profile "), "", 1, true, []string{"2 warning header"}},
		{"profile in angle brackets", swap("http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", "<http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest>"), "", 1, true, nil},
		{"legacy profile", swap("ingest/manifest/", "mrt/"), "", 1, true, nil},
		{"two profiles, first good", swap("#%prefix", profile+"#%prefix"), "", 1, true, []string{"3 warning profile-repeated"}},
		{"two profiles, first bad", swap("#%profile", "#%profile | x\n#%profile"), "", 1, false, []string{"2 error profile-unknown", "3 warning profile-repeated"}},
		{"another kind than given", object(row1), checkm.Batch, 1, false, []string{"2 error profile-mismatch"}},
		{"another batch than given", batch(row1), checkm.FileBatch, 1, true, []string{"2 warning profile-mismatch"}},
		{"checkm_0.9", swap("_0.7", "_0.9"), "", 1, true, []string{"1 warning header"}},
		{"#%EOF", objectHead + row1 + "#%EOF\n", "", 1, true, []string{"7 warning header"}},
		{"text after #%eof", objectHead + row1 + "#%eof trailing text\n", "", 1, true, []string{"7 warning after-eof"}},
		{"no line break after #%eof", objectHead + row1 + "#%eof", "", 1, true, []string{"7 warning final-line-break"}},
		{"no #%eof", objectHead + row1, "", 1, false, []string{"6 error truncated"}},
		{"cut within a row", objectHead + row1 + "https://h.test/d/b.jp", "", 2, false, []string{"7 error truncated", "7 error truncated"}},
		{"cut within #%eof", objectHead + row1 + "#%eo", "", 1, false, []string{"7 error truncated", "7 warning header"}},
		{"blank line after #%eof", object(row1) + "\n \n", "", 1, true, []string{"8 warning after-eof", "9 warning after-eof"}},
		{"comment after #%eof", object(row1) + "# end\n", "", 1, true, []string{"8 warning after-eof"}},
		{"data after #%eof", object(row1) + row1 + row1, "", 1, false, []string{"8 error after-eof"}},
		{"two manifests in one", object(row1) + object(row1), "", 1, false, []string{"8 error after-eof"}},
		{"blank and comment lines", object("\n", "  \n", "# a\n", row1, "\t\n", "#b\n"), "", 1, true, nil},
		{"#%eof only", eof, "", 0, false, []string{
			"1 error profile-missing", "1 error no-entries", "1 warning header-missing", "1 warning header-missing", "1 warning header-missing",
		}},
		{"headers only", object(), "", 0, false, []string{"6 error no-entries"}},
		{"CRLF", strings.ReplaceAll(object(row1, "bad\n"), "\n", "\r\n"), "", 2, true, []string{"7 error url"}},
		{"lone CR", strings.ReplaceAll(object(row1, "bad\n"), "\n", "\r"), "", 2, true, []string{"7 error url"}},
		{"header after a row", object(row1, profile), "", 1, true, []string{"7 warning header-late"}},
		{"other prefix", swap("http://merritt.cdlib.org/terms#", "http://other.test/"), "", 1, true, []string{"3 warning header"}},
		{"older vocabulary", swap("merritt.cdlib.org/terms#", "uc3.cdlib.org/ontology/mom#"), "", 1, true, nil},
		{"older form of a prefix", swap("mrt: | http://merritt.cdlib.org/terms#", "mrt:<http://merritt.cdlib.org/terms#>"), "", 1, true, nil},
		{"prefix without a URI", swap("mrt: | http://merritt.cdlib.org/terms#", "mrt:"), "", 1, true, []string{"3 warning header"}},
		{"column of a vocabulary of others", swap("mrt:mimeType", "ex:mimeType\n#%prefix | ex: | http://example.org/"), "", 1, true, []string{"5 warning fields"}},
		{"NUL in a comment", object("# \x00\n", row1), "", 1, false, []string{"6 error encoding"}},
		{"column given twice", swap("nfo:hashValue", "nfo:fileName"), "", 1, false, []string{"5 error fields"}},
		{"no URL column", swap("nfo:fileUrl | ", ""), "", 1, false, []string{"5 error fields"}},
		{"misspelt column", swap("nfo:hashValue", "nfo:hashVal"), "", 1, true, []string{"5 warning fields"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rep := check(t, tt.text, checkm.Options{Kind: tt.kind})
			if rep.Rows != tt.rows || rep.Sound != tt.sound {
				t.Errorf("%d rows, sound %t; want %d, %t", rep.Rows, rep.Sound, tt.rows, tt.sound)
			}
			wantSame(t, rep, tt.faults)
		})
	}
}

// wantSame compares faults without regard to the order of those on one line.
func wantSame(t *testing.T, rep checkm.Report, want []string) {
	t.Helper()
	got := map[string]int{}
	for _, s := range brief(rep.Faults) {
		got[s]++
	}
	for _, s := range want {
		got[s]--
	}
	for s, n := range got {
		if n != 0 {
			t.Errorf("fault %q: %+d", s, n)
		}
	}
	if t.Failed() {
		for _, f := range rep.Faults {
			t.Log(f.Error())
		}
	}
}

// TestRow has rows that are odd or broken.
func TestRow(t *testing.T) {
	const u = "https://h.test/d/a.jpg"
	const sum = "0b21c6d48e815dd537d42dc1cfac0111"
	tests := []struct {
		name string
		row  string
		want []string // "column severity rule"
	}{
		{"tabs, leading spaces, no spaces", "  " + u + "\t|\tmd5|" + sum + "|1||a.jpg", nil},
		{"only a URL", u, nil},
		{"no-break space before the URL", "\u00a0" + u, []string{"1 error url"}},
		{"no-break space after the URL", u + "\u00a0| | | | | a.jpg", []string{"1 error url"}},
		{"space within the URL", "https://h.test/a b.jpg", []string{"1 error url"}},
		{"placeholders", u + " | - | - | - | - | a.jpg", []string{"2 error algorithm", "4 error size", "5 warning modified"}},
		{"algorithm without digest", u + " | md5 | | | | a.jpg", []string{"3 error digest"}},
		{"digest without algorithm", u + " | | " + sum + " | | | a.jpg", []string{"2 error algorithm"}},
		{"digest of another length", u + " | sha1 | " + sum, []string{"3 error digest"}},
		{"digest that is not hex", u + " | md5 | zz21c6d48e815dd537d42dc1cfac0111", []string{"3 error digest"}},
		{"sha224", u + " | sha224 | " + sum, []string{"2 error algorithm"}},
		{"sha3", u + " | sha3 | " + sum, []string{"2 error algorithm"}},
		{"sha_256", u + " | sha_256 | " + sum, []string{"2 error algorithm"}},
		{"negative size", u + " | | | -1", []string{"4 error size"}},
		{"size with a sign", u + " | | | +1", []string{"4 error size"}},
		{"size of 2^63", u + " | | | 9223372036854775808", []string{"4 error size"}},
		{"size of 2^63-1", u + " | | | 9223372036854775807", nil},
		{"bad date", u + " | | | | yesterday", []string{"5 warning modified"}},
		{"file URL", "file:///etc/passwd", []string{"1 error url-scheme"}},
		{"ftp URL", "ftp://h.test/a", []string{"1 error url-scheme"}},
		{"password", "https://user:pw@h.test/a", []string{"1 error url-secret"}},
		{"name", "s3://key@bucket/a", []string{"1 error url-secret"}},
		{"no scheme", "h.test/a", []string{"1 error url"}},
		{"no host", "https:///a", []string{"1 error url"}},
		{"include", "@https://h.test/more.checkm", []string{"1 error url"}},
		{"bad escape in URL", "https://h.test/%zz", []string{"1 error url"}},
		{"fragment", "https://h.test/a#1.jpg", []string{"1 warning url"}},
		{"upload", "upload:0198c7f0/a.jpg", []string{"1 error url-scheme"}},
		{"upload in capitals", "UPLOAD:0198c7f0", []string{"1 error url-scheme"}},
		{"port and no host", "https://:80/a", []string{"1 error url"}},
		{"s3", "s3://bucket/key/a.jpg", nil},
		{"no URL", " | md5 | " + sum + " | | | a.jpg", []string{"1 error url-missing"}},
		{"URL without a name", "https://h.test/", []string{"6 error name-missing"}},
		{"URL whose name leads out", "https://h.test/..%2f..%2fetc%2fpasswd", []string{"6 error name"}},
		{"name leads out", u + " | | | | | ../../x", []string{"6 error name"}},
		{"name leads out in the middle", u + " | | | | | a/../../x", []string{"6 error name"}},
		{"absolute name", u + " | | | | | /etc/x", []string{"6 error name"}},
		{"dot segment", u + " | | | | | a/./b", []string{"6 error name"}},
		{"empty segment", u + " | | | | | a//b", []string{"6 error name"}},
		{"folder for a name", u + " | | | | | a/", []string{"6 error name"}},
		{"control character in name", u + " | | | | | a\x1bb", []string{"6 error name"}},
		{"C1 control in name", u + " | | | | | a\u0085b", []string{"6 error name"}},
		{"dots in a name", u + " | | | | | file..name..with..dots.txt", nil},
		{"MIME type", u + " | | | | | a.jpg | image/jpeg", nil},
		{"odd MIME type", u + " | | | | | a.jpg | jpeg", []string{"7 warning mime-type"}},
		{"unescaped pipe", "https://h.test/README%7Cpipe.md | | | | | README|pipe.md", []string{"6 error name-pipe", "7 warning mime-type"}},
		{"unescaped pipe, other URL", u + " | | | | | README|pipe.md", []string{"7 warning mime-type"}},
		{"eight columns", u + " | | | | | a.jpg | image/jpeg | x", []string{"8 error extra-columns"}},
		{"a pipe too many at the end", u + " | | | | | a.jpg | image/jpeg |", []string{"8 error extra-columns"}},
		{"a hundred columns", u + strings.Repeat("|", 99), []string{"8 error extra-columns"}},
		{"escapes that are none", u + " | | | | | a%7Cb", []string{"6 warning escape"}},
		{"percent signs that are none", u + " | | | | | %41%25%00%%0", nil},
		{"line break as another dialect has it", u + " | | | | | 100%%0ab", []string{"6 warning escape"}},
		{"two faults", u + " | md5 | 12 | 111xxx | | a.jpg", []string{"3 error digest", "4 error size"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, faults := one(t, object(tt.row+"\n"))
			var got []string
			for _, f := range faults {
				got = append(got, columnOf(f))
			}
			if strings.Join(got, ",") != strings.Join(tt.want, ",") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func columnOf(f checkm.Fault) string {
	return string(rune('0'+f.Column)) + " " + string(f.Severity) + " " + string(f.Rule)
}

// TestContainerName checks which names of containers are accepted, by Merritt's rule.
func TestContainerName(t *testing.T) {
	head := strings.Replace(batchHead, "mrt-batch-manifest", "mrt-container-batch-manifest", 1)
	for name, want := range map[string]string{
		"a.zip": "", "a.TAR.GZ": "", "a.tgz": "", "a.tar.zst": "", "a.b.tar": "", "a": "", "a.zip.txt": "container-name", "a.checkm": "container-name",
	} {
		_, faults := one(t, head+"https://h.test/x.zip | | | | | "+name+"\n"+eof)
		got := ""
		for _, f := range faults {
			got += string(f.Rule)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestBatchRow has faults that only rows of a batch can have.
func TestBatchRow(t *testing.T) {
	const u = "https://h.test/d/a.zip | | | | | "
	tests := []struct {
		name, row, want string
	}{
		{"ARK", u + "a.zip | ark:/99999/fk4x9 | | | t", ""},
		{"ARK without slash", u + "a.zip | ark:99999/fk4x9", ""},
		{"betanumeric NAAN", u + "a.zip | ark:/b5060/d8x/c.v1", ""},
		{"no name", u + "a.zip | ark:/foo", "7 error primary-identifier"},
		{"no NAAN", u + "a.zip | ark:/9999/x", "7 error primary-identifier"},
		{"vowel in NAAN", u + "a.zip | ark:/9999a/x", "7 error primary-identifier"},
		{"no ARK", u + "a.zip | doi:10.5072/FK2", "7 error primary-identifier"},
		{"ARK that leads out", u + "a.zip | ark:/99999/../x", "7 error primary-identifier"},
		{"ARK with a space", u + "a.zip | ark:/99999/a b", "7 error primary-identifier"},
		{"folder in a name", u + "d/a.zip", "6 warning name"},
		{"name leads out", u + "../a.zip", "6 error name"},
		{"odd free text", u + "a.zip | | | (:unkn) unknown | Jazz, 100 % | 1920-1932", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, faults := one(t, batch(tt.row+"\n"))
			got := ""
			for _, f := range faults {
				got += columnOf(f)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestName_BackslashParent checks that a name that leads out of its folder on Windows is refused,
// as it is in containers and bags.
func TestName_BackslashParent(t *testing.T) {
	for name, want := range map[string]bool{`a\..\b`: true, `..\b`: true, `a\..`: true, `a/..\b`: true, `a\b`: false, `a\..b`: false, `a..\b`: false} {
		if got := checkm.NameProblem(name) != ""; got != want {
			t.Errorf("%s: refused=%t, want %t", name, got, want)
		}
	}
}
