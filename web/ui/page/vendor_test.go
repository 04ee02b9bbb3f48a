package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/npmtest"
)

// vendored are the files of other projects that pages load, byte for byte as npm has them. Their
// licences are in static/vendor/LICENSES.txt.
var vendored = []struct{ file, name, version, path, licence, digest string }{
	{"htmx.js", "htmx.org", "2.0.11", "dist/htmx.min.js", "0BSD", "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"},
	{"sse.js", "htmx-ext-sse", "2.2.4", "dist/sse.min.js", "0BSD", "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136"},
	{"idiomorph.js", "idiomorph", "0.8.0", "dist/idiomorph.min.js", "0BSD", "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96"},
	{"tus.js", "tus-js-client", "4.3.1", "dist/tus.min.js", "MIT", "8cbb1b63fccc3bba0ae73ad1deb160ce046c3750851d0c3e94921ae3ef070eb8"},
}

// TestVendor: the files of other projects are unchanged, none is unknown, and each licence is there.
func TestVendor(t *testing.T) {
	const folder = "static/vendor"
	licences, err := os.ReadFile(filepath.Join(folder, "LICENSES.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"LICENSES.txt": true}
	for _, v := range vendored {
		known[v.file] = true
		text, err := os.ReadFile(filepath.Join(folder, v.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != v.digest {
			t.Errorf("%s has the digest %x, want %s", v.file, sum, v.digest)
		}
		if !strings.Contains(string(licences), v.name+" "+v.version+" ("+v.licence+")") {
			t.Errorf("LICENSES.txt lacks %s %s (%s)", v.name, v.version, v.licence)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			t.Errorf("nobody knows where %s is from", e.Name())
		}
	}
}

// TestVendor_NPM: npm's packages have these files.
func TestVendor_NPM(t *testing.T) {
	for _, v := range vendored {
		t.Run(v.name, func(t *testing.T) {
			theirs, err := os.ReadFile(filepath.Join(npmtest.Folder(t.Context(), t, v.name, v.version), filepath.FromSlash(v.path)))
			if err != nil {
				t.Fatal(err)
			}
			ours, err := os.ReadFile(filepath.Join("static/vendor", v.file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(ours, theirs) {
				t.Errorf("%s is not %s of %s %s", v.file, v.path, v.name, v.version)
			}
		})
	}
}
