package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// holdings are what the deposits of the pictures are about.
var holdings = []struct {
	title, creator, name string
	n, bad               int
}{
	{"Glass negatives of the harbour, 1890–1912", "Lindqvist, Ada", "negative", 24, 0},
	{"Letters from the lighthouse keepers", "Harbour Authority", "letter", 18, 0},
	{"Oral histories of the shipyard, tapes 1–12", "Shipyard Museum", "tape", 12, 2},
	{"Nautical charts of the northern coast", "Hydrographic Office", "chart", 16, 0},
	{"Herbarium sheets, seaweeds", "Okonkwo, Chidi", "sheet", 20, 3},
}

// library serves the files of the holdings, of which some are missing. Those of the last one come
// only after open has been called.
func library(t *testing.T) (url string, open func()) {
	t.Helper()
	gate := make(chan struct{})
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		folder, name := path.Split(r.URL.Path)
		var n int
		_, _ = fmt.Sscanf(strings.Trim(folder, "/"), "%d", &n) // 0 otherwise
		h := holdings[n]
		if name == "batch.checkm" {
			var rows []string
			for i := range h.n {
				file := fmt.Sprintf("%s-%02d.txt", h.name, i+1)
				rows = append(rows, fmt.Sprintf("%s/%d/%s | | | | | %s | | %s | %s | %s %d", self(r), n, file, file, strings.TrimSuffix(file, ".txt"), h.creator, h.title, i+1))
			}
			text := manifest("mrt-single-file-batch-manifest", rows...)
			content(strings.Replace(text, "nfo:fileName\n", "nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title\n", 1))(w, r)
			return
		}
		for i := range h.bad {
			if strings.HasSuffix(name, fmt.Sprintf("-%02d.txt", 3+4*i)) {
				w.WriteHeader(http.StatusNotFound)
				return
			}
		}
		if n == len(holdings)-1 {
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		content(strings.Repeat(r.URL.Path+"\n", 200))(w, r)
	}))
	server.Start()
	return url, func() { close(gate) }
}

// chooseFolder puts a folder and a title into the form that deposits.
func chooseFolder(tab *browsertest.Tab) {
	tab.Await(`window.tus && !document.getElementById("files").closest("[hidden]")`)
	browsertest.Eval[bool](tab, `(() => {
		const all = new DataTransfer();
		for (let i = 1; i <= 24; i++) {
			const file = new File(["x".repeat(180000 + 7000 * i)], "negative-" + i + ".tif", { lastModified: 1e12 });
			Object.defineProperty(file, "webkitRelativePath", { value: "harbour/1890s/" + file.name });
			all.items.add(file);
		}
		const input = document.getElementById("folder-input");
		Object.defineProperty(input, "files", { value: [...all.files].map((file, i) => Object.defineProperty(file, "webkitRelativePath", { value: "harbour/1890s/negative-" + (i + 1) + ".tif" })) });
		input.dispatchEvent(new Event("change"));
		return true;
	})()`)
	tab.Await(`document.querySelector("#payloads li")`)
	tab.Type("#title", holdings[0].title)
}

// TestScreenshots makes the pictures of README and docs, if SCREENSHOTS is 1.
func TestScreenshots(t *testing.T) {
	if os.Getenv("SCREENSHOTS") != "1" {
		t.Skip("SCREENSHOTS=1 makes the pictures in docs/images")
	}
	h := up(t)
	base, _ := h.address()
	url, open := library(t)
	defer open()
	var batches []string
	for i, one := range holdings {
		batches = append(batches, h.begin(fmt.Sprintf("%s/%d/batch.checkm", url, i), "--title", one.title))
		if i < len(holdings)-1 {
			h.until("it has ended", func() bool {
				state := h.item(batches[i]).State
				return state == "Completed" || state == "Failed"
			})
		}
	}
	h.until("jobs are running", func() bool { return len(h.list("batch:"+batches[len(batches)-1], "state:downloading")) > 0 })
	object := rows[struct {
		ID string `json:"object_id"`
	}](h, "object", "list", "--limit", "1")[0].ID
	folder := filepath.Join("..", "docs", "images")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.SignIn(h.link())
	for _, picture := range []struct {
		name, path string
		mode       browsertest.Mode
	}{
		{"operations", "/operations", browsertest.Mode{}},
		{"batch", "/batches/" + batches[2], browsertest.Mode{}},
		{"batch-dark", "/batches/" + batches[4], browsertest.Mode{Dark: true}},
		{"object", "/objects/" + object, browsertest.Mode{}},
		{"items", "/items?q=action:ingest", browsertest.Mode{}},
		{"deposits", "/deposits", browsertest.Mode{}},
		{"deposits-phone", "/deposits", browsertest.Mode{Phone: true}},
		{"correct", "/deposits/" + batches[2] + "/rows", browsertest.Mode{}},
		{"deposit", "/deposit", browsertest.Mode{}},
	} {
		tab.Mode(picture.mode)
		tab.Go(picture.path)
		if picture.name == "deposit" {
			chooseFolder(tab)
		}
		tab.Screenshot(filepath.Join(folder, picture.name+".png"), false)
	}
}
