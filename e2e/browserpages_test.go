package e2e

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/ui/uitest"
	"github.com/holdfast/holdfast/web/wire"
)

// folderOfKinds is a folder with files of which the pages show previews, and some others.
func folderOfKinds(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "glass plates")
	picture := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for i := range 64 {
		picture.Set(i, i*48/64, color.RGBA{R: 40, G: 90, B: 160, A: 255})
	}
	var plate bytes.Buffer
	if err := png.Encode(&plate, picture); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"plate 1.png": plate.String(), "catalogue/notes.txt": strings.Repeat("The harbour in winter, from the north.\n", 40),
		"catalogue/data.json": `{"plates": [1, 2]}`, "reel.wav": "RIFF....WAVE", "catalogue/page.html": "<p>A page</p>",
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// furnish makes one of each thing that the pages show, beside someOfEverything, and returns addresses
// that no list leads to.
func (h *holdfast) furnish() []string {
	h.t.Helper()
	s, code := h.submit(folderOfKinds(h.t), "--title", "Glass plates of the harbour")
	if code != 0 {
		h.t.Fatalf("the folder's deposit ended with %d: %+v", code, s)
	}
	folder := s.Jobs[0].ObjectID
	paths := h.someOfEverything()
	_, token := h.address()
	p := &program{h: h, secret: token}
	must := func(method, path string, body any) {
		h.t.Helper()
		if status := p.ask(method, path, body, nil); status/100 != 2 {
			h.t.Fatalf("%s %s is answered with %d", method, path, status)
		}
	}
	worker, _ := h.token("--name", "harvester", "--role", "worker", "--stage", "run:harvest", "--stage", "step:loans")
	(&program{h: h, secret: worker}).good(http.MethodPost, "/functions", wire.FunctionsRequest{Functions: []wire.FunctionRequest{{Name: "harvest", Title: "Harvest the catalogue"}}}, nil)
	must(http.MethodPost, "/schedules", wire.NewScheduleRequest{Name: "nightly", ScheduleRequest: wire.ScheduleRequest{Cron: "@daily", Task: wire.ScheduleTask{Function: "harvest"}}})
	must(http.MethodPost, "/tasks", wire.TaskRequest{Function: "harvest", Title: "Harvest of November"})
	must(http.MethodPut, "/collections/survey", registry.Profile{
		Name: "Sheet maps, plans and field books of the survey of the northern provinces, 1880 to 1930, with <b>all</b> their corrections", Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/survey"},
	})
	must(http.MethodPut, "/subscriptions/catalogue", wire.SubscriptionRequest{Target: "https://catalogue.example.org/hook"})
	base, _ := h.address()
	stepping := protocol.NewClient(client.New(base, worker, client.Options{}))
	defer stepping.Close()
	if err := stepping.AnnounceNamespaces(h.t.Context(), []registry.Namespace{{Name: "loans", Title: "Loans"}}); err != nil {
		h.t.Fatal(err)
	}
	must(http.MethodPut, "/processes/loans/plate-1", wire.PutProcessRequest{State: []byte(`{"lent": true}`)})
	must(http.MethodPost, "/holds", wire.HoldRequest{Scope: "stage", Key: "scan", Reason: "the scanner is replaced"})
	graph := filepath.Join(h.t.TempDir(), "graph.json")
	if err := os.WriteFile(graph, []byte(`{"nodes": [{"key": "scans", "payload": "https://scans.example.org/1"}, {"key": "texts", "payload": "https://scans.example.org/2", "requires": [{"key": "scans"}]}]}`), 0o600); err != nil {
		h.t.Fatal(err)
	}
	paths = append(paths, "/graphs/"+strings.TrimSpace(h.must(0, "graph", "prepare", graph).stdout))
	var bulk struct{ ID string }
	if status := p.ask(http.MethodPost, "/bulk", wire.BulkRequest{Query: "state:failed", GraceSeconds: 3600, CommandRequest: wire.CommandRequest{Act: "requeue", Confirm: true}}, &bulk); status/100 != 2 {
		h.t.Fatalf("a bulk act is answered with %d", status)
	}
	paths = append(paths, "/bulk/"+bulk.ID, "/objects/"+folder, "/batches/"+s.BatchID+"/redeliver", "/deletions/"+folder+"?decision=ask")
	begun, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, base+"/api/v1/uploads", http.NoBody)
	if err != nil {
		h.t.Fatal(err)
	}
	begun.Header.Set("Authorization", "Bearer "+token)
	begun.Header.Set("Tus-Resumable", "1.0.0")
	begun.Header.Set("Upload-Length", "1000")
	begun.Header.Set("Upload-Metadata", "filename "+base64.StdEncoding.EncodeToString([]byte("reel 2.wav")))
	answer, err := http.DefaultClient.Do(begun)
	if err != nil {
		h.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		h.t.Fatalf("an upload is answered with %s", answer.Status)
	}
	for _, it := range h.list("state:failed", "action:ingest")[:1] {
		paths = append(paths, "/items/"+it.ID+"/redeliver", "/items/"+it.ID+"/acts?act=requeue")
	}
	return append(paths, "/items/act?q=state%3Afailed&all=yes&act=requeue", "/items?q=nothing%3Awrong", "/items?q=no-such-name")
}

// kindOf is the same for addresses whose pages show things of one kind: by their route, by which
// fields the query has, and by the ending of a file's name.
func kindOf(route, address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return address
	}
	return route + " " + strings.Join(slices.Sorted(maps.Keys(at.Query())), " ") + path.Ext(at.Query().Get("file"))
}

// TestBrowser_Pages opens every page that an admin can reach, of each kind one, in four modes:
// everybody can use them, nothing is wider than the screen, nothing leaves the host, and the browser
// finds no fault. A page that it does not reach fails it.
func TestBrowser_Pages(t *testing.T) {
	t.Parallel()
	h := up(t)
	start := append([]string{"/help"}, h.furnish()...)
	next := slices.Clone(start)
	base, token := h.address()
	routes := uitest.New(t, uitest.Options{}).Site.Routes()
	pattern := uitest.Patterns(routes)
	guide := uitest.NewVisitor(t, base, token)
	missing := map[string]bool{}
	for _, route := range routes {
		if strings.HasPrefix(route, "GET ") {
			missing[route] = true
		}
	}
	for _, served := range []string{"GET /live", "GET /static/", "GET /find", "GET /items/suggest", "GET /audit.csv", "GET /evidence.zip", "GET /{$}"} { // which are no pages
		delete(missing, served)
	}
	var paths []string
	met := map[string]bool{}
	for len(next) > 0 {
		address := next[0]
		next = next[1:]
		route := pattern(http.MethodGet, address)
		kind := kindOf(route, address)
		if route == "" || met[kind] && !slices.Contains(start, address) || slices.Contains(paths, address) {
			continue
		}
		page := guide.Open(address)
		if page.Status != http.StatusOK && !slices.Contains(start, address) || !strings.Contains(page.Text, "<main ") {
			continue // a download, or a form that needs something chosen first
		}
		delete(missing, route)
		met[kind] = true
		paths = append(paths, address)
		next = append(next, uitest.Reached(t, page)...)
	}
	for route := range missing {
		t.Errorf("no page leads to %s: give the test something that it shows", route)
	}
	tab := browsertest.Open(t, base, browsertest.Mode{})
	for _, status := range []string{"404 (Not Found)", "409 (Conflict)", "400 (Bad Request)"} {
		tab.Allow(status) // of error pages
	}
	tab.SignIn(h.link())
	for _, address := range append(paths, "/no-such-page") {
		tab.Mode(browsertest.Modes[0])
		tab.Go(address)
		if tab.Text("h1") == "" {
			t.Errorf("%s has no heading", address)
		}
		for _, mode := range browsertest.Modes {
			tab.Mode(mode)
			if mode.Dark {
				tab.Axe(browsertest.Contrast)
			} else {
				tab.Axe()
				tab.Fits()
			}
			tab.Check()
		}
		tab.Mode(browsertest.Mode{Narrow: true})
		tab.Fits()
	}
}
