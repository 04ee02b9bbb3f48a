package bagit_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/bagit"
)

// suiteCase is a bag of ours that is made as the name of one in the public conformance suite says,
// which is judged as the folder says that it lies in there.
type suiteCase struct {
	name string // folder and name
	bag  bag
	rule bagit.Rule // that must be among the errors of invalid, the warnings of warning
}

// declared gives a bagit.txt.
func declared(version, encoding string) string {
	return "BagIt-Version: " + version + "\nTag-File-Character-Encoding: " + encoding + "\n"
}

// baggedBy makes a bag as bagit.py does: md5 manifests, with a bag-info.txt and a tag manifest.
func baggedBy(version string, payload ...string) bag {
	b := newBag(version, payload...).with("manifest-sha256.txt", "-", "bag-info.txt",
		"Bag-Software-Agent: test\nBagging-Date: 2016-02-26\nContact-Email: a@example.org\n")
	if version < "0.96" {
		b = b.with("package-info.txt", b["bag-info.txt"], "bag-info.txt", "-")
	}
	return b.retagged()
}

// retagged writes the tag manifest anew, with md5.
func (b bag) retagged() bag {
	text := ""
	for _, name := range b.names() {
		if !strings.HasPrefix(name, "data/") && !strings.HasPrefix(name, "tagmanifest-") {
			text += line("md5", b[name], name)
		}
	}
	return b.with("tagmanifest-md5.txt", text)
}

// listing replaces the manifest, and the tag manifest with it.
func (b bag) listing(manifest string) bag { return b.with("manifest-md5.txt", manifest).retagged() }

func suiteCases() []suiteCase {
	old := func(payload ...string) bag { return baggedBy("0.97", payload...) }
	basic := old("bare-filename", "x\n", "text-file.txt", "text\n")
	lists := basic["manifest-md5.txt"]
	v1 := newBag("1.0", "README", "A").tagged()
	cases := []suiteCase{
		{"valid/minimal-bag", old("a", "").with("bag-info.txt", "").retagged(), ""},
		{"valid/bag-with-space", old("a b", "A"), ""},
		{"valid/bag-with-escapable-characters", old("a@b&c=d;e+f", "A", "50% off", "B", "[x]{y}~z", "C"), ""},
		{"valid/bag-with-encoded-names", old("data%2Fx.txt", "A", "a%0Ab", "B"), ""},
		{"valid/bag-in-a-bag", old("bagit.txt", declared("0.97", "UTF-8"), "data/a", "A", "manifest-md5.txt", line("md5", "A", "data/a")), ""},
		{"valid/bag-with-leading-dot-slash-in-manifest", basic.listing(strings.ReplaceAll(lists, "  data", "  ./data")), ""},
		{"valid/duplicate-metadata-entries", basic.with("bag-info.txt", "Bagging-Date: 2016-02-26\nBagging-Date: 2016-03-10\nContact-Name: A\nContact-Name: B\n").retagged(), ""},
		{"valid/uncommon-metadata-separators", basic.with("bag-info.txt", "A : 1\nB:2\nC\t:\t3\nD   :   4\nE:\n").retagged(), ""},
		{"valid/holey-bag with all of its files", basic.with("fetch.txt", "http://localhost:8989/x - data/bare-filename\r\n").retagged(), ""},
		{"valid/local-fetch", basic.with("fetch.txt", "file:///home/someone/picture.png 42000 picture.png\n").retagged(), ""},
		{"valid/no tag manifest", basic.with("tagmanifest-md5.txt", "-"), ""},
		{"valid/no bag-info.txt", newBag("1.0", "a", "A"), ""},
		{"valid/upper-case hexadecimal", basic.listing(strings.ToUpper(digest("md5", "x\n")) + "  data/bare-filename\n" + line("md5", "text\n", "data/text-file.txt")), ""},
		{"valid/tabs and many spaces in manifest", basic.listing(strings.ReplaceAll(lists, "  ", " \t ")), ""},
		{"valid/one space in manifest", basic.listing(strings.ReplaceAll(lists, "  ", " ")), ""},
		{"valid/blank lines in manifest", basic.listing("\n" + strings.ReplaceAll(lists, "\n", "\n\n")), ""},
		{"valid/no end of the last line", basic.listing(strings.TrimSuffix(lists, "\n")), ""},
		{"valid/CRLF", basic.listing(strings.ReplaceAll(lists, "\n", "\r\n")), ""},
		{"valid/CR", basic.listing(strings.ReplaceAll(lists, "\n", "\r")).with("bagit.txt", strings.ReplaceAll(declared("0.97", "UTF-8"), "\n", "\r")).retagged(), ""},
		{"valid/continued values", basic.with("bag-info.txt", "External-Description: a\n  b\n\tc\r   d\r\nX: y\n").retagged(), ""},
		{"valid/tag files in folders", basic.with("meta/a.xml", "X", "meta/b/c.xml", "Y").retagged(), ""},
		{"valid/tag file that is not listed", basic.with("meta/a.xml", "X"), ""},
		{"valid/other bag-info in payload", old("bag-info.txt", "no tags here"), ""},

		{"invalid/baginfo-missing-encoding", basic.with("bagit.txt", "BagIt-Version: 0.97\n").retagged(), bagit.RuleDeclaration},
		{"invalid/no version", basic.with("bagit.txt", "Tag-File-Character-Encoding: UTF-8\n").retagged(), bagit.RuleDeclaration},
		{"invalid/bagit.txt is empty", basic.with("bagit.txt", "").retagged(), bagit.RuleDeclaration},
		{"invalid/bom-in-bagit.txt", basic.with("bagit.txt", "\ufeff"+declared("0.97", "UTF-8")).retagged(), bagit.RuleByteOrderMark},
		{"invalid/bagit.txt in UTF-16", basic.with("bagit.txt", "\xff\xfeB\x00a\x00g\x00").retagged(), bagit.RuleEncoding},
		{"invalid/bagit.txt in Latin-1", basic.with("bagit.txt", declared("0.97", "\xe9")).retagged(), bagit.RuleEncoding},
		{"invalid/encoding of nobody", basic.with("bagit.txt", declared("0.97", "KLINGON")).retagged(), bagit.RuleEncoding},
		{"invalid/invalid-version-number", basic.with("bagit.txt", declared(".97", "UTF-8")).retagged(), bagit.RuleVersion},
		{"invalid/version of the future", basic.with("bagit.txt", declared("1.1", "UTF-8")).retagged(), bagit.RuleVersion},
		{"invalid/bagit-with-invalid-whitespace", basic.with("bagit.txt", "BagIt-Version : 0.97\nTag-File-Character-Encoding : UTF-8\n").retagged(), bagit.RuleDeclaration},
		{"invalid/bagit-with-invalid-whitespace of 1.0", v1.with("bagit.txt", "BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n").tagged(), bagit.RuleDeclaration},
		{"invalid/space after the version", v1.with("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding:UTF-8\n").tagged(), bagit.RuleDeclaration},
		{"invalid/declaration in another order", v1.with("bagit.txt", "Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 1.0\n").tagged(), bagit.RuleDeclaration},
		{"invalid/missing-bagit.txt", basic.with("bagit.txt", "-"), bagit.RuleDeclaration},
		{"invalid/missing-baginfo", basic.with("bag-info.txt", "-"), bagit.RuleMissing},
		{"invalid/missing manifest", basic.with("manifest-md5.txt", "-"), bagit.RuleNoManifest},
		{"invalid/missing payload folder", bag{"bagit.txt": declared("1.0", "UTF-8"), "manifest-md5.txt": ""}, bagit.RulePayloadDir},
		{"invalid/missing data file", basic.with("data/text-file.txt", "-"), bagit.RuleMissing},
		{"invalid/corrupt-data-file", basic.with("data/text-file.txt", "TEXT\n"), bagit.RuleDigest},
		{"invalid/corrupt-tag-file", basic.with("bag-info.txt", "A: b\n"), bagit.RuleDigest},
		{"invalid/corrupt manifest", basic.with("manifest-md5.txt", lists+"\n"), bagit.RuleDigest},
		{"invalid/extra-file-in-bag", basic.with("data/bar", "B"), bagit.RuleUnlisted},
		{"invalid/Oxum of bytes", basic.with("bag-info.txt", "Payload-Oxum: 8.2\n").retagged(), bagit.RuleOxum},
		{"invalid/Oxum of files", basic.with("bag-info.txt", "Payload-Oxum: 7.3\n").retagged(), bagit.RuleOxum},
		{"invalid/line without a label", basic.with("bag-info.txt", "no label\n").retagged(), bagit.RuleBagInfo},
		{"invalid/value right after the colon", v1.with("bag-info.txt", "A:b\n").tagged(), bagit.RuleBagInfo},
		{"invalid/indented first line", basic.with("bag-info.txt", "  indented\n").retagged(), bagit.RuleBagInfo},
		{"invalid/bag-info.txt in another encoding", basic.with("bag-info.txt", "Contact-Name: Ren\xe9\n").retagged(), bagit.RuleEncoding},
		{"invalid/same-filename-listed-twice-with-different-hashes", basic.listing(lists + line("md5", "B", "data/bare-filename")), bagit.RuleListedTwice},
		{"invalid/same-filename-listed-twice-with-the-same-hash", v1.with("manifest-md5.txt", v1["manifest-md5.txt"]+v1["manifest-md5.txt"]).tagged(), bagit.RuleListedTwice},
		{"invalid/same file listed by two spellings", v1.with("manifest-md5.txt", v1["manifest-md5.txt"]+line("md5", "A", "data/./README")).tagged(), bagit.RuleListedTwice},
		{"invalid/missing-from-manifest", v1.with("data/missingFromManifest.txt", "x"), bagit.RuleUnlisted},
		{"invalid/notAllManifestsListAllFiles", newBag("1.0", "a", "A", "b", "B").with("manifest-md5.txt", line("md5", "A", "data/a")).tagged(), bagit.RuleUnlisted},
		{"invalid/folder in manifest", v1.with("manifest-md5.txt", v1["manifest-md5.txt"]+line("md5", "", "data")).tagged(), bagit.RuleOutsidePayload},
		{"invalid/tag file in manifest", v1.with("manifest-md5.txt", v1["manifest-md5.txt"]+line("md5", v1["bagit.txt"], "bagit.txt")).tagged(), bagit.RuleOutsidePayload},
		{"invalid/backslashes between folders", v1.with("data/d/x", "X", "manifest-md5.txt", v1["manifest-md5.txt"]+line("md5", "X", `data\d\x`)), bagit.RuleOutsidePayload},
		{"invalid/digest too short", basic.listing("abcd  data/bare-filename\n" + line("md5", "text\n", "data/text-file.txt")), bagit.RuleManifestLine},
		{"invalid/digest not hexadecimal", basic.listing(strings.Repeat("g", 32) + "  data/bare-filename\n" + line("md5", "text\n", "data/text-file.txt")), bagit.RuleManifestLine},
		{"invalid/algorithm of nobody", basic.with("manifest-crc32.txt", "00 data/bare-filename\n00 data/text-file.txt\n").retagged(), bagit.RuleAlgorithm},
		{"invalid/BOM in manifest", v1.with("manifest-md5.txt", "\ufeff"+v1["manifest-md5.txt"]).tagged(), bagit.RuleByteOrderMark},
		{"invalid/holes", basic.with("data/text-file.txt", "-", "fetch.txt", "http://example.org/t 5 data/text-file.txt\n").retagged(), bagit.RuleNotFetched},
		{"invalid/fetch.txt names what no manifest lists", v1.with("fetch.txt", "http://example.org/t 5 data/t\n").tagged(), bagit.RuleFetch},
		{"invalid/fetch.txt names a tag file", v1.with("fetch.txt", "http://example.org/t 5 bag-info.txt\n").tagged(), bagit.RuleFetch},
		{"invalid/fetch.txt without length", basic.with("fetch.txt", "http://example.org/t data/text-file.txt\n").retagged(), bagit.RuleFetch},
		{"invalid/fetch.txt with a relative address", basic.with("fetch.txt", "t.txt - data/text-file.txt\n").retagged(), bagit.RuleFetch},

		{"warning/duplicate-file-with-different-case", old("hello.txt", "A", "HELLO.txt", "A"), bagit.RuleCase},
		{"warning/duplicate-file-with-different-case, unpacked where case is not kept apart", old("hello.txt", "A", "HELLO.txt", "A").with("data/HELLO.txt", "-"), bagit.RuleCase},
		{"warning/relative-path", basic.listing(strings.ReplaceAll(lists, "  data", "  ./data")), bagit.RuleRelativePath},
		{"warning/filename-normalization", old(nfd, "").listing(line("md5", "", "data/"+nfc)), bagit.RuleNormalization},
		{"warning/same-filename-listed-twice-with-different-normalization", old(nfc, "", nfd, ""), bagit.RuleNormalization},
		{"warning/same-filename-listed-twice-with-different-normalization, on a Mac", old(nfc, "", nfd, "").with("data/"+nfc, "-"), bagit.RuleNormalization},
		{"warning/same-filename-listed-twice-with-the-same-hash", basic.listing(lists + lists), bagit.RuleListedTwice},
		{"warning/special-system-files", old("a", "A", ".DS_Store", "d", "Thumbs.db", "t", "d/._a", "r"), bagit.RuleSystemFile},
		{"warning/special-system-files, not copied", old("a", "A", ".DS_Store", "d", "Thumbs.db", "t").with("data/.DS_Store", "-", "data/Thumbs.db", "-"), bagit.RuleSystemFile},
		{"warning/made-with-md5sum-tools", basic.listing(strings.ReplaceAll(lists, "  ", " *")), bagit.RuleMD5Sum},
		{"warning/names that Windows reserves", old("aux", "A", "d/NUL.txt", "B", "a:b", "C", "ends.", "D"), bagit.RulePortableName},
		{"warning/encoding other than UTF-8", v1.with("bagit.txt", declared("1.0", "ISO-8859-1")).tagged(), bagit.RuleEncoding},
		{"warning/date and count that cannot be read", v1.with("bag-info.txt", "Bagging-Date: last week\nBag-Count: one of many\n").tagged(), bagit.RuleBagInfo},
	}
	for _, version := range []string{"0.93", "0.94", "0.95", "0.96", "0.97"} {
		b := baggedBy(version, "dir1/test3.txt", "test3", "test1.txt", "test1")
		cases = append(
			cases,
			suiteCase{"valid/basic-bag of " + version, b, ""},
			suiteCase{"invalid/corrupt-data-file of " + version, b.with("data/test1.txt", "TEST1"), bagit.RuleDigest},
			suiteCase{"invalid/corrupt-tag-file of " + version, b.with("bagit.txt", declared(version, "utf-8")), bagit.RuleDigest},
			suiteCase{"invalid/extra-file-in-bag of " + version, b.with("data/more", ""), bagit.RuleUnlisted},
		)
	}
	for _, alg := range []string{"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3-256"} {
		b := bag{"bagit.txt": declared("0.97", "UTF-8"), "data/a": "abc"}
		b["manifest-"+alg+".txt"] = abcDigests[alg] + "  data/a\n"
		cases = append(cases, suiteCase{"valid/basic-bag-" + alg, b, ""})
		cases = append(cases, suiteCase{"invalid/corrupt-data-file-" + alg, b.with("data/a", "abd"), bagit.RuleDigest})
	}
	for name, path := range map[string]string{
		"invalid/out-of-scope-file-paths-using-dot-notation":           "../../../README.md",
		"linux-only/out-of-scope-file-paths-using-absolute-path":       "/tmp/foo",
		"linux-only/out-of-scope-file-paths-using-shortcut":            "~/foo",
		"linux-only/out-of-scope-file-paths-using-shortcut-username":   "~root/foo",
		"windows-only/out-of-scope-file-paths-using-absolute-path":     `C:\Windows\System32\setx.exe`,
		"windows-only/out-of-scope-file-paths-using-shortcut":          `%HomeDrive%\Windows\System32\setx.exe`,
		"windows-only/out-of-scope-file-paths-using-unc":               `\\?\UNC\server\Windows\System32\setx.exe`,
		"invalid/out-of-scope-file-paths-using-dots-inside-of-payload": "data/x/../../y",
		"invalid/out-of-scope-file-paths-using-backslashes":            `data\..\..\y`,
	} {
		cases = append(
			cases,
			suiteCase{name, basic.listing(lists + line("md5", "", path)), bagit.RuleUnsafeName},
			suiteCase{name + "-for-fetch", basic.with("fetch.txt", "http://localhost:8989/x - "+path+"\r\n").retagged(), bagit.RuleUnsafeName},
			suiteCase{name + " in a tag manifest", basic.with("tagmanifest-md5.txt", basic["tagmanifest-md5.txt"]+line("md5", "", path)), bagit.RuleUnsafeName},
		)
	}
	return cases
}

// abcDigests are those of the text abc, as FIPS 180 and 202 and RFC 1321 print them.
var abcDigests = map[string]string{
	"md5":      "900150983cd24fb0d6963f7d28e17f72",
	"sha1":     "a9993e364706816aba3e25717850c26c9cd0d89d",
	"sha224":   "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
	"sha256":   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	"sha384":   "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
	"sha512":   "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
	"sha3-256": "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
}

// TestValidate_SuiteByName judges bags made after the names in the public conformance suite, of
// which only some are available as files, as a folder, a tar, a tar.gz and a zip. A bag that is
// invalid on one system only is invalid here, since bags are moved between systems.
func TestValidate_SuiteByName(t *testing.T) {
	t.Parallel()
	for _, tc := range suiteCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			folder, _, _ := strings.Cut(tc.name, "/")
			r := validateFS(t, tc.bag.fs())
			if want := folder == "valid" || folder == "warning"; r.Valid != want {
				t.Errorf("valid=%t, want %t: %v", r.Valid, want, r.Faults)
			}
			faults := r.Errors()
			if folder == "warning" {
				faults = r.Warnings()
			}
			found := map[bagit.Rule]bool{}
			for _, f := range faults {
				found[f.Rule] = true
				if f.File == "" || f.Clause == "" || f.Fix == "" {
					t.Errorf("fault %+v does not say where, why and what to do", f)
				}
			}
			if tc.rule != "" && !found[tc.rule] {
				t.Errorf("no %s among %v", tc.rule, r.Faults)
			}
			if _, ok := tc.bag["bagit.txt"]; !ok {
				return // where the bag begins is then a guess in an archive
			}
			raw := packTar(t, tc.bag, "top", payloadLast(tc.bag))
			sameFaults(t, "tar", validateTarBytes(t, raw), r)
			sameFaults(t, "tar.gz", validateTarBytes(t, zipped(t, raw)), r)
			sameFaults(t, "zip", validateZip(t, tc.bag, "top"), r)
		})
	}
}

// payloadLast orders the files so that rare algorithms are known before the payload comes.
func payloadLast(b bag) []string {
	tags, payload := []string{}, []string{}
	for _, name := range b.names() {
		if strings.HasPrefix(name, "data/") {
			payload = append(payload, name)
		} else {
			tags = append(tags, name)
		}
	}
	return append(tags, payload...)
}
