package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// heard keeps the failures that a tab tells its test.
type heard struct {
	testing.TB
	failures []string
}

func (h *heard) Helper()        {}
func (h *heard) Cleanup(func()) {}
func (h *heard) Errorf(format string, args ...any) {
	h.failures = append(h.failures, fmt.Sprintf(format, args...))
}

// site serves each page's body at its path.
func site(t *testing.T, bodies map[string]string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		body, ok := bodies[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, `<!doctype html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"></head><body><main><h1>Page</h1>%s</main></body></html>`, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Each fault that a page can have fails its test, and a good page does not.
func TestTab_Faults(t *testing.T) {
	base := site(t, map[string]string{
		"/good":    `<p>All is well.</p>`,
		"/console": `<script>console.error("alas")</script>`,
		"/throws":  `<script>thereIsNone()</script>`,
		"/file":    `<img alt="" src="/missing.png">`,
		"/foreign": `<img alt="" src="http://example.com/x.png">`,
		"/wide":    `<p style="width: 900px">Wide</p>`,
		"/axe":     `<button></button>`,
		"/pale":    `<p style="color: #bbb; background: #fff">Pale</p>`,
	})
	for path, want := range map[string]string{
		"/good": "", "/console": "alas", "/throws": "thereIsNone", "/file": "404", "/foreign": "leaves the host", "/wide": "wider than the screen",
		"/axe": "button-name", "/pale": "color-contrast",
	} {
		t.Run(path[1:], func(t *testing.T) {
			h := &heard{TB: t}
			tab := Open(t, base, Mode{Phone: true})
			tab.For(h)
			tab.Go(path)
			tab.Axe()
			tab.Fits()
			tab.Check()
			if got := strings.Join(h.failures, "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("it tells %q, want %q", got, want)
			}
		})
	}
}

// A tab sees what people do, in the mode that they have.
func TestTab_Acts(t *testing.T) {
	base := site(t, map[string]string{
		"/": `<style>@media (prefers-color-scheme: dark) { p { font-weight: 900 } }</style><p id="p">Text</p>
<input id="name" aria-label="Name" value="before"><a href="/next">Next</a><noscript><p id="none">No scripts</p></noscript>
<script>document.getElementById("name").addEventListener("keydown", (e) => { if (e.key === "Enter") document.getElementById("p").textContent = e.target.value; });
document.addEventListener("drop", (e) => { e.preventDefault(); document.getElementById("p").textContent = e.dataTransfer.files[0].name; });
document.addEventListener("dragover", (e) => e.preventDefault());</script>`,
		"/next":  `<p>The next page</p>`,
		"/jumps": `<div id="late"></div><p style="height: 500px">Below</p><script>setTimeout(() => { document.getElementById("late").innerHTML = "<p style='height: 300px'>Late</p>"; window.done = true; }, 100)</script>`,
	})
	tab := Open(t, base, Mode{Dark: true})
	tab.Go("/")
	if got := Eval[string](tab, `getComputedStyle(document.getElementById("p")).fontWeight`); got != "900" {
		t.Errorf("a dark tab has the weight %s", got)
	}
	tab.Type("#name", "after")
	tab.Press("\r")
	tab.Await(`document.getElementById("p").textContent === "after"`)
	file := filepath.Join(t.TempDir(), "dropped.txt")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab.Drop("#p", file)
	tab.Await(`document.getElementById("p").textContent === "dropped.txt"`)
	tab.Follow("a")
	tab.AwaitText("The next page")
	if got, _ := tab.Shift(); got != 0 {
		t.Errorf("a still page shifts by %v", got)
	}
	tab.Go("/jumps")
	tab.Await("window.done")
	if got, what := tab.Shift(); got < 0.02 || len(what) == 0 {
		t.Errorf("a page that jumps shifts by %v: %v", got, what)
	}
	tab.Mode(Mode{NoScript: true})
	tab.Go("/")
	if n := tab.Count("#none"); n != 1 {
		t.Error("a tab without scripts runs them")
	}
}
