package registry_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// TestCauseText has notes as the workers write them.
func TestCauseText(t *testing.T) {
	for _, tt := range []struct{ name, note, want string }{
		{"busy server", "open https://files.example.org/a/b%20c.tif?X-Amz-Signature=abc: the server answered 503 Service Unavailable (asks to wait 30s)", "open https://files.example.org/<path>: the server answered http-503 (asks to wait <n>)"},
		{"missing file", "open https://files.example.org/12: the server answered 404 Not Found; put the file there or correct the address, then submit again", "open https://files.example.org/<path>: the server answered http-404; put the file there or correct the address, then submit again"},
		{"refused", "head http://127.0.0.1:34567/x.pdf: the connection failed: dial tcp 127.0.0.1:34567: connect: connection refused; check that the server is up and can be reached from here", "head http://127.0.0.1:34567/<path>: the connection failed: dial tcp <n>:<n>: connect: connection refused; check that the server is up and can be reached from here"},
		{"read timeout", "read tcp 10.0.0.1:5050->10.0.0.2:443: i/o timeout", "read tcp <n>:<n>-><n>:<n>: i/o timeout"},
		{"several files of a server", "open https://h/1: the server answered 503 Service Unavailable\nopen https://h/2: the server answered 503 Service Unavailable\nand 7 more files", "open https://h/<path>: the server answered http-503"},
		{"several servers in any order", "b.tif is bad\nopen https://h/2: called off", "<name> is bad\nopen https://h/<path>: called off"},
		{"digest", "https://h/f has sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, but the submission says 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752; correct the manifest or the file and submit again", "https://h/<path> has sha256 <id>, but the submission says <id>; correct the manifest or the file and submit again"},
		{"size", "https://h/f has size 12 bytes, but the submission says 1,300 bytes", "https://h/<path> has size <size>, but the submission says <size>"},
		{"room", "needs 1.2 GiB; volume staging is 97 % used (9 GiB of 10 GiB), 300 MiB reserved", "needs <size>; volume staging is <n> % used (<size> of <size>), <size> reserved"},
		{"identifiers", `local id "ab c/1" belongs to ark:/99999/fk4abc, but the submission names ark:/99999/fk4x; correct one of the two`, "local id <text> belongs to <id>, but the submission names <id>; correct one of the two"},
		{"item and worker", "ark:/13030/m5 is locked by item 0199f3c2-7abc-7def-8123-456789abcdef", "<id> is locked by item <id>"},
		{"lost", "5 attempts used up: worker box-12-9f3c was lost; it had held the item since 2026-11-22T08:16:18Z", "<n> attempts used up: worker <id> was lost; it had held the item since <date>"},
		{"rule of OCFL", "E092 v1/content/a.txt: the digest is another", "E092 <path>: the digest is another"},
		{"path", "read /staging/items/0199/3/x: input/output error", "read <path>: input/output error"},
		{"user in an address", "open https://alice:s3cret@h.example.org:8443/a: access was denied", "open https://h.example.org:8443/<path>: access was denied"},
		{"password with signs", "open https://alice:pa?ss#w@h/a: access was denied", "open https://h/<path>: access was denied"},
		{"password with a slash", "open https://alice:12/ss@h/a: access was denied", "open https:///<path>: access was denied"},
		{"mail", "tell alice@example.org, please", "tell <name>, please"},
		{"what can be written", "expected: md2, md5 or sha512/256, or an ARK as ark:/99999/fk4test; found: ark:/99999/fk4x", "expected: md2, md5 or sha512/256, or an ARK as ark:/99999/fk4test; found: <id>"},
		{"algorithms", "adler32 of file7 is compared, as sha3-256, blake3 and crc32c are", "adler32 of <id> is compared, as sha3-256, blake3 and crc32c are"},
		{"jobs", "3 of 1,000 jobs did not complete", "<n> of <n> jobs did not complete"},
		{"cut", "open https://h/1: called off\nopen https://h/2: the serv…", "open https://h/<path>: called off"},
		{"cut in an address", "open https://alice:12345…", "open"},
		{"only that there are more", "and 3 more files", "and <n> more files"},
		{"controls", "a\x00b\tc\r\nd", "a b c\nd"},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := registry.CauseText(tt.note)
			if got != tt.want {
				t.Errorf("CauseText(%q)\n= %q, want\n  %q", tt.note, got, tt.want)
			}
			if again := registry.CauseText(got); again != got {
				t.Errorf("once more: %q", again)
			}
		})
	}
}

func FuzzCauseText(f *testing.F) {
	for _, s := range []string{
		"", "a", `a "b" 12 MiB`, "404 Not Found", "1 2 KiB, 503 Service Unavailable", "https://u:p@h:80/x?y#z", "<n> <nope> <12>", "ark:/1/2", "x\ny\nand 3 more files",
		strings.Repeat("word ", 200), strings.Repeat("9", 300), strings.Repeat("https://h/ ", 60), "\xff\x00\u2028", "a/b'c\"d", "2026-01-02T03:04:05Z", "http://[::1]:8/", "5x00…", "-1.e5",
	} {
		f.Add(s, "s3cr3t")
	}
	f.Fuzz(func(t *testing.T, note, secret string) {
		text := registry.CauseText(note)
		if len(text) > 400 || !utf8.ValidString(text) {
			t.Fatalf("%d bytes: %q", len(text), text)
		}
		if again := registry.CauseText(text); again != text {
			t.Fatalf("CauseText(%q)\n= %q, once more\n  %q", note, text, again)
		}
		c := registry.CauseOf(registry.Download, registry.SystemFault, note, secret, note)
		if len(c.Code) > 64 || len(c.Host) > 255 || len(c.Fingerprint()) != 16 {
			t.Fatalf("cause %+v", c)
		}
		// Whatever the password is made of, it stands in an address as addresses are written.
		secret = secret[:min(len(secret), 500)]
		address := (&url.URL{Scheme: "https", User: url.UserPassword("alice", "pw-"+secret+"-wp"), Host: "h.example.org", Path: "/" + secret + "/f"}).String()
		c = registry.CauseOf(registry.Download, registry.SystemFault, "", "", "open "+address+": the connection failed")
		if c.Text != "open https://h.example.org/<path>: the connection failed" || c.Host != "h.example.org" {
			t.Fatalf("%s: %+v", address, c)
		}
	})
}

// TestCauseOf_Groups: jobs that failed because a server answers 503 form one group, and a 404 of
// that server another.
func TestCauseOf_Groups(t *testing.T) {
	busy := func(n int) string {
		return fmt.Sprintf("open https://h.example.org/%d/page %d.tif: the server answered 503 Service Unavailable", n, n)
	}
	of := func(code, host, note string) string {
		return registry.CauseOf(registry.Download, registry.SystemFault, code, host, note).Fingerprint()
	}
	want := of("http-503", "h.example.org", busy(1))
	for name, got := range map[string]string{
		"another file":                     of("http-503", "H.example.org", busy(2)),
		"several files":                    of("http-503", "h.example.org", busy(3)+"\n"+busy(4)+"\nand 3 more files"),
		"a wish to be left alone":          of("http-503", "h.example.org", busy(5)+" (asks to wait 2m0s)"),
		"a worker that says only the text": of("", "", busy(6)),
	} {
		if got != want {
			t.Errorf("%s has another cause", name)
		}
	}
	others := map[string]string{
		want: "the first", of("http-404", "h.example.org", "x"): "another answer", of("http-503", "i.example.org", busy(1)): "another host",
		of("http-503", "", busy(1)): "several hosts", of("", "", "x"): "no code",
		registry.CauseOf(registry.Estimate, registry.SystemFault, "http-503", "h.example.org", busy(1)).Fingerprint():  "another stage",
		registry.CauseOf(registry.Download, registry.ContentFault, "http-503", "h.example.org", busy(1)).Fingerprint(): "another class",
	}
	if len(others) != 7 {
		t.Errorf("some are one cause: %v", others)
	}
}

// TestCauseOf_Words: a worker's code or host is kept only if it is a word that may be shown.
func TestCauseOf_Words(t *testing.T) {
	for _, tt := range []struct{ code, host, wantCode, wantHost string }{
		{"NoSuchBucket", "S3.example.org:9000", "NoSuchBucket", "s3.example.org:9000"},
		{"two words", "h", "", "h"},
		{"http-503", "alice:pw@h", "http-503", ""},
		{strings.Repeat("x", 65), strings.Repeat("h", 256), "", ""},
		{"timeout\n", "hö", "", ""},
	} {
		c := registry.CauseOf(registry.Process, registry.SystemFault, tt.code, tt.host, "n")
		if c.Code != tt.wantCode || c.Host != tt.wantHost {
			t.Errorf("%q %q: code=%q host=%q, want %q %q", tt.code, tt.host, c.Code, c.Host, tt.wantCode, tt.wantHost)
		}
	}
}

func TestFailureGroup_Requeue(t *testing.T) {
	q, err := query.Parse("batch:ID class:system")
	if err != nil {
		t.Fatal(err)
	}
	print := strings.Repeat("0f", 8)
	got, ok := registry.FailureGroup{Fingerprint: print}.Requeue(q)
	if want := "batch:ID class:system cause:" + print; !ok || got.String() != want {
		t.Errorf("%q %v, want %q", got, ok, want)
	}
	if len(q.Terms) != 2 {
		t.Errorf("the query that was asked became %q", q)
	}
	long := registry.Query{Terms: []registry.Term{{Value: strings.Repeat("x", registry.MaxQueryBytes-10)}}}
	for name, g := range map[string]registry.FailureGroup{"not looked at": {}, "useless": {Fingerprint: print, Useless: true}} {
		if _, ok := g.Requeue(q); ok {
			t.Errorf("%s: requeued", name)
		}
	}
	if _, ok := (registry.FailureGroup{Fingerprint: print}).Requeue(long); ok {
		t.Error("a query that cannot be read is offered")
	}
	for _, bad := range []string{"cause:12", "cause:zzzzzzzzzzzzzzzz", "cause:" + print + "00"} {
		if _, err := query.Parse(bad); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestCause_Title checks that titles have no placeholders and no places of single rows.
func TestCause_Title(t *testing.T) {
	for _, tt := range []struct {
		class            registry.ErrorClass
		code, host, note string
		want             string
	}{
		{registry.ContentFault, "url-scheme", "", `line 7, column 1: the address "gopher:a" has no scheme that can be fetched`, "the address … has no scheme that can be fetched"},
		{registry.ContentFault, "digest-length", "", "line 12: the digest has 31 digits", "the digest has … digits"},
		{registry.ContentFault, "http-404", "h.example.org", "open https://h.example.org/a.tif: the server answered 404", "http-404 from h.example.org"},
		{registry.SystemFault, "no-space", "", "write /data/staging/a/b.tif: no space left on device", "no-space: write …: no space left on device"},
		{registry.ContentFault, "", "", "column 3: no title", "no title"},
		{registry.SystemFault, "timeout", "", "", "timeout"},
		{registry.ContentFault, "", "", "it is no archive\nand no manifest", "and no manifest"},
	} {
		if got := registry.CauseOf(registry.Expand, tt.class, tt.code, tt.host, tt.note).Title(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.note, got, tt.want)
		}
	}
}
