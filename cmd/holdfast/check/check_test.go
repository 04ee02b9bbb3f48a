package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

func TestCheck(t *testing.T) {
	clitest.NoEnvironment(t)
	dir := t.TempDir()
	const head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n"
	good := clitest.WriteFile(t, filepath.Join(dir, "good.checkm"), head+"http://h.test/a.checkm | | | | | a\n#%eof\n")
	bad := clitest.WriteFile(t, filepath.Join(dir, "bad.checkm"), head+"http://h.test/a.checkm | | | | | a\nftp://h.test/b | md5x | 00 | | | b\n#%eof\n")
	plain := filepath.Join(dir, "plain")
	clitest.WriteFile(t, filepath.Join(plain, "sub", "a.txt"), "alpha")
	bag := filepath.Join(dir, "bag")
	clitest.WriteFile(t, filepath.Join(bag, "bagit.txt"), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
	clitest.WriteFile(t, filepath.Join(bag, "data", "a.txt"), "alpha")
	clitest.WriteFile(t, filepath.Join(bag, "manifest-md5.txt"), "2c1743a391305fbf367df8e4f069f9f9  data/a.txt\n")

	r := runCheck(t, "check", good, plain, bag).Wants(t, exit.OK)
	for _, line := range []string{good + ": valid batch-manifest, 1 row", plain + ": valid container, 1 file, 5 B", bag + ": valid bag 1.0, 1 file, 5 B"} {
		if !strings.Contains(r.Out, line) {
			t.Errorf("%q is not in\n%s", line, r.Out)
		}
	}
	r = runCheck(t, "check", bad).Wants(t, exit.Content)
	for _, part := range []string{"INVALID batch-manifest, 2 rows", "2 errors", "would be accepted without 1 row", "line 4, column 1", "line 4, column 2", "md5x"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("%q is not in\n%s", part, r.Out)
		}
	}
	if r.Err != "" {
		t.Errorf("stderr: %s", r.Err)
	}
	// What is wrong outranks what is right and what is not there; JSON has a line for each that
	// could be judged.
	r = runCheck(t, "check", "--json", good, bad, filepath.Join(dir, "none")).Wants(t, exit.Content).Says(t, "none: no such file")
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
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
		t.Fatalf("stdout:\n%s", r.Out)
	}
	if second.Path != bad || second.Valid || !second.Accepted || second.ExitCode != 6 || len(second.Faults) < 2 || second.Faults[0].Line != 4 {
		t.Errorf("%+v", second)
	}

	runCheck(t, "check", "--type", "object-manifest", plain).Wants(t, exit.Usage).Says(t, "--type container or bag")
	runCheck(t, "check", "--type", "ocfl-object", good).Wants(t, exit.Usage).Says(t, "an OCFL object or storage root must be a folder")
	runCheck(t, "check", "--type", "ocfl-object", plain).Wants(t, exit.Content)
	if err := os.Symlink(good, filepath.Join(plain, "link")); err != nil {
		t.Fatal(err)
	}
	runCheck(t, "check", plain).Wants(t, exit.Content).Says(t, "link")
}

// A bag is also validated against a profile, and the files that describe an object are read.
func TestCheck_Profile(t *testing.T) {
	clitest.NoEnvironment(t)
	dir := t.TempDir()
	profile := clitest.WriteFile(t, filepath.Join(dir, "profile.json"), `{
		"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "http://h.test/p.json", "Source-Organization": "H", "External-Description": "d", "Version": "1", "BagIt-Profile-Version": "1.4.0"},
		"Bag-Info": {"Source-Organization": {"required": true}},
		"Manifests-Required": ["sha256"], "Serialization": "required", "Accept-Serialization": ["application/x-tar"], "Accept-BagIt-Version": ["1.0"]
	}`)
	bag := filepath.Join(dir, "bag")
	clitest.WriteFile(t, filepath.Join(bag, "bagit.txt"), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
	clitest.WriteFile(t, filepath.Join(bag, "data", "mrt-erc.txt"), "erc:\nwho: somebody\n")
	clitest.WriteFile(t, filepath.Join(bag, "manifest-md5.txt"), "f78174dd674e47bfd2888b87d84cef94  data/mrt-erc.txt\n")
	runCheck(t, "check", bag).Wants(t, exit.OK)
	r := runCheck(t, "check", "--profile", profile, bag).Wants(t, exit.Content)
	for _, part := range []string{"sha256", "Source-Organization"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("%q is not in\n%s", part, r.Out)
		}
	}
	if strings.Contains(r.Out, "serialization") {
		t.Errorf("a folder counts as the tar that it is sent as:\n%s", r.Out)
	}
	plain := filepath.Join(dir, "plain")
	clitest.WriteFile(t, filepath.Join(plain, "mrt-dc.xml"), "<not xml")
	clitest.WriteFile(t, filepath.Join(plain, "a.txt"), "alpha")
	clitest.WriteFile(t, filepath.Join(plain, "mrt-manifest.txt"), "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/store/manifest/mrt-object-manifest\na.txt | md5 | 00000000000000000000000000000000\n#%eof\n")
	r = runCheck(t, "check", plain).Wants(t, exit.Content)
	for _, part := range []string{"mrt-dc.xml: description", "listing-digest", "mrt-dc.xml (mrt-manifest.txt): listing-extra", "3 errors"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("%q is not in\n%s", part, r.Out)
		}
	}
	broken := clitest.WriteFile(t, filepath.Join(dir, "broken.json"), `{"Bag-Info": 7}`)
	runCheck(t, "check", "--profile", broken, bag).Wants(t, exit.Usage).Says(t, "Bag-Info")
	runCheck(t, "check", "--profile", filepath.Join(dir, "none"), bag).Wants(t, exit.NotFound)
}
