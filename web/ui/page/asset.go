package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// static has style sheets, scripts and icons. The files in vendor are those of npm, unchanged;
// TestVendor compares them and names their versions and licences.
//
//go:embed static
var static embed.FS

// assets serves the static files, by their path below /static/.
type assets map[string]asset

type asset struct {
	text    []byte
	version string // a digest, so that a browser can keep a file for ever
}

func openAssets() (assets, error) {
	all := assets{}
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := static.ReadFile(name)
		sum := sha256.Sum256(text)
		all["/"+name] = asset{text, hex.EncodeToString(sum[:6])}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the static files: %w", err)
	}
	return all, nil
}

// url is the address of a static file, such as "app.js".
func (a assets) url(name string) (string, error) {
	f, ok := a["/static/"+name]
	if !ok {
		return "", fmt.Errorf("there is no static file %s", name)
	}
	return "/static/" + name + "?v=" + f.version, nil
}

// ServeHTTP implements http.Handler.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
	w.Header().Set("Content-Type", kinds[path.Ext(r.URL.Path)])
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.version {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	w.Header().Set("ETag", `"`+f.version+`"`)
	http.ServeContent(w, r, path.Base(strings.TrimSuffix(r.URL.Path, "/")), time.Time{}, bytes.NewReader(f.text))
}
