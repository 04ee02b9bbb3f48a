package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// publicHost is where the sample manifests say that their files are.
const publicHost = "https://raw.githubusercontent.com/CDLUC3/mrt-doc/main/sampleFiles"

// cases is the folder of real inputs.
func cases(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../shared/cases/merritt/sampleFiles")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the real inputs are absent: %v", err)
	}
	return folder
}

// serve serves a fixed set of answers by path.
func serve(t *testing.T, answers map[string]http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			answer(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// listen returns a server that is not started yet, and its address: what the handler reads can be
// written before.
func listen(t *testing.T, handler http.Handler) (*httptest.Server, string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	t.Cleanup(srv.Close)
	return srv, "http://" + srv.Listener.Addr().String()
}

// self is the address of the server that a request came to, for manifests that name it.
func self(r *http.Request) string { return "http://" + r.Host }

func content(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Unix(1_000_000_000, 0), strings.NewReader(text))
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// manifest writes a Checkm manifest of a profile from rows.
func manifest(profile string, rows ...string) string {
	return "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/" + profile + "\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\n" +
		strings.Join(rows, "\n") + "\n#%eof\n"
}
