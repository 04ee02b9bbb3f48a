package payload

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/internal/proctest"
)

// packing packs a folder as the page's script does.
const packing = `
const fs = require("fs"), path = require("path");
const tar = require(process.argv[2]);
const root = process.argv[3], files = [], folders = [];
const walk = (at) => {
	for (const name of fs.readdirSync(path.join(root, at)).reverse()) {
		const under = at + name, s = fs.statSync(path.join(root, under));
		if (s.isDirectory()) { folders.push(under); walk(under + "/"); continue; }
		files.push({ path: under, file: new File([fs.readFileSync(path.join(root, under))], name, { lastModified: Math.round(s.mtimeMs) }) });
	}
};
walk("");
tar.pack(files, folders).arrayBuffer().then((b) => fs.writeSync(1, Buffer.from(b)));
`

// TestFolderTar_OfPage: the page's script makes the same tar of a folder, so that both are recognised
// as the same content.
func TestFolderTar_OfPage(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		proctest.Absent(t, "node", err)
	}
	dir := t.TempDir()
	clitest.WriteDeposit(t, dir)
	clitest.WriteFile(t, filepath.Join(dir, "sub.txt"), strings.Repeat("x", 513))
	clitest.WriteFile(t, filepath.Join(dir, strings.Repeat("long/", 25)+"name.txt"), "long")
	clitest.WriteFile(t, filepath.Join(dir, "größe", strings.Repeat("ü", 60), "日本.txt"), "names")
	for i, name := range []string{"a.txt", "sub.txt", "b.txt"} {
		at := time.UnixMilli([]int64{1_700_000_000_000, 1_700_000_000_120, 1_123}[i])
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at := info.ModTime().Truncate(time.Millisecond) // the precision of a browser
		if err := os.Chmod(path, 0o644); err != nil {
			return err
		}
		return os.Chtimes(path, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../../web/ui/page/static/tar.js")
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "-", script, dir)
	node.Stdin = strings.NewReader(packing)
	var stderr strings.Builder
	node.Stderr = &stderr
	got, err := node.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	want, _ := tarOf(t, dir)
	if !bytes.Equal(got, want) {
		at := 0
		for at < len(got) && at < len(want) && got[at] == want[at] {
			at++
		}
		t.Errorf("the tars have %d and %d bytes, and differ from byte %d on (%q, %q)", len(got), len(want), at, got[at:min(at+40, len(got))], want[at:min(at+40, len(want))])
	}
}
