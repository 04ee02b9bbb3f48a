package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	noEnvironment(t)
	dir := t.TempDir()
	const head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n"
	good := writeFile(t, filepath.Join(dir, "good.checkm"), head+"http://h.test/a.checkm | | | | | a\n#%eof\n")
	bad := writeFile(t, filepath.Join(dir, "bad.checkm"), head+"http://h.test/a.checkm | | | | | a\nftp://h.test/b | md5x | 00 | | | b\n#%eof\n")
	plain := filepath.Join(dir, "plain")
	writeFile(t, filepath.Join(plain, "sub", "a.txt"), "alpha")
	bag := filepath.Join(dir, "bag")
	writeFile(t, filepath.Join(bag, "bagit.txt"), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
	writeFile(t, filepath.Join(bag, "data", "a.txt"), "alpha")
	writeFile(t, filepath.Join(bag, "manifest-md5.txt"), "2c1743a391305fbf367df8e4f069f9f9  data/a.txt\n")

	r := holdfast(t, "check", good, plain, bag).wants(t, exitOK)
	for _, line := range []string{good + ": valid batch-manifest, 1 row", plain + ": valid container, 1 file, 5 B", bag + ": valid bag 1.0, 1 file, 5 B"} {
		if !strings.Contains(r.out, line) {
			t.Errorf("%q is not in\n%s", line, r.out)
		}
	}
	r = holdfast(t, "check", bad).wants(t, exitContent)
	for _, part := range []string{"INVALID batch-manifest, 2 rows", "2 errors", "would be taken without 1 row", "line 4, column 1", "line 4, column 2", "md5x"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("%q is not in\n%s", part, r.out)
		}
	}
	if r.err != "" {
		t.Errorf("stderr: %s", r.err)
	}
	// What is wrong outranks what is right and what is not there; JSON has a line for each that could be judged.
	r = holdfast(t, "check", "--json", good, bad, filepath.Join(dir, "none")).wants(t, exitContent).says(t, "none: no such file")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var second struct {
		Path     string `json:"path"`
		Valid    bool   `json:"valid"`
		Accepted bool   `json:"accepted"`
		ExitCode int    `json:"exit_code"`
		Faults   []struct {
			Line int    `json:"line"`
			Rule string `json:"rule"`
		} `json:"faults"`
	}
	if len(lines) != 2 || json.Unmarshal([]byte(lines[1]), &second) != nil {
		t.Fatalf("stdout:\n%s", r.out)
	}
	if second.Path != bad || second.Valid || !second.Accepted || second.ExitCode != 6 || len(second.Faults) < 2 || second.Faults[0].Line != 4 {
		t.Errorf("%+v", second)
	}

	holdfast(t, "check", "--type", "object-manifest", plain).wants(t, exitUsage).says(t, "--type container or bag")
	holdfast(t, "check", "--type", "ocfl-object", good).wants(t, exitUsage).says(t, "an OCFL object or storage root is a folder")
	holdfast(t, "check", "--type", "ocfl-object", plain).wants(t, exitContent)
	if err := os.Symlink(good, filepath.Join(plain, "link")); err != nil {
		t.Fatal(err)
	}
	holdfast(t, "check", plain).wants(t, exitContent).says(t, "link")
}

// A bag is judged by a profile, too, and what describes an object is read.
func TestCheck_Profile(t *testing.T) {
	noEnvironment(t)
	dir := t.TempDir()
	profile := writeFile(t, filepath.Join(dir, "profile.json"), `{
		"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "http://h.test/p.json", "Source-Organization": "H", "External-Description": "d", "Version": "1", "BagIt-Profile-Version": "1.4.0"},
		"Bag-Info": {"Source-Organization": {"required": true}},
		"Manifests-Required": ["sha256"], "Serialization": "required", "Accept-Serialization": ["application/x-tar"], "Accept-BagIt-Version": ["1.0"]
	}`)
	bag := filepath.Join(dir, "bag")
	writeFile(t, filepath.Join(bag, "bagit.txt"), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
	writeFile(t, filepath.Join(bag, "data", "mrt-erc.txt"), "erc:\nwho: somebody\n")
	writeFile(t, filepath.Join(bag, "manifest-md5.txt"), "f78174dd674e47bfd2888b87d84cef94  data/mrt-erc.txt\n")
	holdfast(t, "check", bag).wants(t, exitOK)
	r := holdfast(t, "check", "--profile", profile, bag).wants(t, exitContent)
	for _, part := range []string{"sha256", "Source-Organization"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("%q is not in\n%s", part, r.out)
		}
	}
	if strings.Contains(r.out, "serialization") {
		t.Errorf("a folder counts as the tar that it is sent as:\n%s", r.out)
	}
	plain := filepath.Join(dir, "plain")
	writeFile(t, filepath.Join(plain, "mrt-dc.xml"), "<not xml")
	writeFile(t, filepath.Join(plain, "a.txt"), "alpha")
	writeFile(t, filepath.Join(plain, "mrt-manifest.txt"), "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/store/manifest/mrt-object-manifest\na.txt | md5 | 00000000000000000000000000000000\n#%eof\n")
	r = holdfast(t, "check", plain).wants(t, exitContent)
	for _, part := range []string{"mrt-dc.xml: description", "listing-digest", "mrt-dc.xml (mrt-manifest.txt): listing-extra", "3 errors"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("%q is not in\n%s", part, r.out)
		}
	}
	broken := writeFile(t, filepath.Join(dir, "broken.json"), `{"Bag-Info": 7}`)
	holdfast(t, "check", "--profile", broken, bag).wants(t, exitUsage).says(t, "Bag-Info")
	holdfast(t, "check", "--profile", filepath.Join(dir, "none"), bag).wants(t, exitNotFound)
}
