// Package help serves the pages that explain: help, the API, and finding a thing by what people know
// of it.
package help

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"sync"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// glossary has the concepts that pages show, from docs/glossary.md.
//
//go:embed glossary.json
var glossary []byte

// pages are the pages of this package.
type pages struct {
	*page.Site

	concepts []Section
	// operations are all operations of the API. The document is read at the first request.
	operations func() ([]tag, error)
}

// Section is a part of the glossary.
type Section struct {
	Title    string    `json:"title"`
	Concepts []Concept `json:"concepts"`
}

// Concept is a word of the glossary.
type Concept struct {
	Term    string `json:"term"`
	Meaning string `json:"meaning"`
}

// Add adds the pages to a site. It panics if the glossary cannot be read, which is a programming
// error.
func Add(s *page.Site) {
	p := pages{Site: s}
	if err := json.Unmarshal(glossary, &p.concepts); err != nil {
		panic(fmt.Errorf("help: read the glossary: %w", err))
	}
	p.operations = sync.OnceValues(func() ([]tag, error) {
		text, err := s.Specification()
		if err != nil {
			return nil, err
		}
		return read(text)
	})
	s.Add(files, template.FuncMap{"lower": lower}, "help", "api")
	s.Get("/help", p.help)
	s.Get("/api", p.api)
	s.Serve("GET /find", p.find)
}

// helpPage is the content of the help.
type helpPage struct {
	Role     registry.Role
	Deposits bool // the viewer may deposit
	Host     string
	States   []state
	Keys     []explained
	Glossary []Section
}

// state is a state with its meaning in the viewer's language.
type state struct {
	registry.State

	Meaning string
}

// explained is a word with its meaning in the viewer's language.
type explained struct {
	Word    string
	Meaning string
}

func (p pages) help(r *http.Request) (page.Page, error) {
	t := p.Texts(r)
	content := helpPage{
		Role: p.Caller(r.Context()).Role, Deposits: p.May(r.Context(), "submit-payload"), Host: baseOf(r), Glossary: p.concepts,
		Keys: []explained{
			{"Ctrl-K", t.T("Go to a page, an item, an object or a batch")},
			{"/", t.T("Search this list")},
			{"j k", t.T("The next and the previous row of a list")},
			{"?", t.T("This help")},
			{"Esc", t.T("Close what is open")},
		},
	}
	for _, one := range registry.States() {
		content.States = append(content.States, state{one, meaning(t, one)})
	}
	return page.Page{Name: "help", Title: t.T("Help"), Section: "help", Content: content}, nil
}

// meaning says what a state means.
func meaning(t lang.Texts, s registry.State) string {
	switch s {
	case registry.StatePrepare:
		return t.T("It belongs to a graph that is still being put together. It starts when the graph is sealed.")
	case registry.StatePending:
		return t.T("It waits for its turn.")
	case registry.StateHeld:
		return t.T("A hold keeps it from going on. Nothing is lost; it goes on when the hold is released.")
	case registry.StateEstimating:
		return t.T("Its size is being determined.")
	case registry.StateProvisioning:
		return t.T("Room for its files is being reserved.")
	case registry.StateDownloading:
		return t.T("Its files are being fetched and compared with their digests.")
	case registry.StateScanning:
		return t.T("Its files are being searched for malware.")
	case registry.StateProcessing:
		return t.T("The object's version is being made and stored. A batch is Processing while its jobs are at work.")
	case registry.StateReplicating:
		return t.T("The version is being copied to the other storages.")
	case registry.StateRecording:
		return t.T("The version is being recorded. From then on it counts as preserved.")
	case registry.StateNotify:
		return t.T("The outcome is being delivered to the collection's receiver.")
	case registry.StateReporting:
		return t.T("The batch's report is being made.")
	case registry.StateUpdateReport:
		return t.T("The batch's report is being made again, with what has changed since.")
	case registry.StateCompleted:
		return t.T("All is done. A job's version is preserved, and its receipt can be fetched.")
	case registry.StateFailed:
		return t.T("It cannot go on by itself. Its page names the cause and who must act.")
	case registry.StateCancelled:
		return t.T("Somebody stopped it. It can be requeued.")
	case registry.StateAborted:
		return t.T("Somebody ended it for good, with everything that waited for it.")
	case registry.StateDeleted:
		return t.T("Somebody gave it up. Preserved objects stay.")
	}
	return ""
}
