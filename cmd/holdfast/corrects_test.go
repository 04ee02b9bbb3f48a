package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// TestSubmit_Corrects: what failed is submitted again, corrected: rows by their jobs or lines, a batch as
// a whole. What is corrected already is refused before anything is sent.
func TestSubmit_Corrects(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir, folder := up(t), t.TempDir()
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		clitest.WriteFile(t, path, text)
		return path
	}
	bad := file("plates.checkm", "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n"+
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n"+
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\n"+
		strings.Repeat("ftp://h.test/a | | | | | a.txt\n", 4)+"#%eof\n")
	s := in("submit", bad, "--wait", "--json").Wants(t, exit.Content).Summary(t)
	if len(s.Jobs) != 4 {
		t.Fatalf("%d jobs, want 4", len(s.Jobs))
	}
	job := func(i int) string { return s.Jobs[i].ItemID }
	if r := holdfast(t, "__complete", "submit", "--dir", dir, "--corrects", "").Wants(t, exit.OK); !strings.Contains(r.Out, s.BatchID) || !strings.Contains(r.Out, job(0)) {
		t.Errorf("--corrects is completed to %q", r.Out)
	}
	one := file("one.txt", "one")
	in("submit", one, "--corrects", job(1), "--corrects", job(0), "--wait").Wants(t, exit.OK)
	in("submit", file("two.txt", "two"), "--corrects", job(1)).Wants(t, exit.Refused).Says(t, "already submitted, corrected, as batch")
	if r := in("upload", "list", "--all", "--json").Wants(t, exit.OK); strings.Contains(r.Out, "two.txt") {
		t.Errorf("what is refused was sent: %s", r.Out)
	}
	for _, wrong := range [][]string{{s.BatchID + ":x"}, {s.BatchID + ":"}, {s.BatchID, job(2)}, {job(2) + ":7"}, {s.BatchID + ":9-8"}} {
		args := []string{"submit", one}
		for _, w := range wrong {
			args = append(args, "--corrects", w)
		}
		if r := in(args...); r.Code != exit.Usage && r.Code != exit.Content {
			t.Errorf("%v: exit %d, %s", wrong, r.Code, r.Err)
		}
	}
	in("submit", one, bad, "--corrects", s.BatchID).Wants(t, exit.Usage).Says(t, "one by one")
	in("submit", one, "--force", "--corrects", s.BatchID+":8").Wants(t, exit.OK)
	in("submit", one, "--force", "--corrects", s.BatchID).Wants(t, exit.OK)
	in("submit", one, "--force", "--corrects", s.BatchID).Wants(t, exit.Refused).Says(t, s.BatchID[:8], "see how that one stands")
}
