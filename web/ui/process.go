package ui

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
)

// Processes are what the pages of processes show to the caller. The context of the request identifies
// the caller, who sees the processes of their collections only.
type Processes interface {
	// MaySee reports whether the caller may list processes.
	MaySee(ctx context.Context) bool
	// List is Processes of registry.Processing.
	List(ctx context.Context, q registry.ProcessQuery) (registry.Page[registry.ProcessInfo], error)
	// Read is Process of registry.Processing.
	Read(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (registry.ProcessInfo, error)
}

// processesPage is the content of the list of processes.
type processesPage struct {
	Namespace, Text string
	Status          registry.ProcessStatus
	Statuses        []registry.ProcessStatus
	Rows            []processRow
	Next            string
}

// processRow is a process with the path of its page.
type processRow struct {
	registry.ProcessInfo

	URL string
}

func (p *pages) listProcesses(r *http.Request) (page, error) {
	if !p.processes.MaySee(r.Context()) {
		return page{}, errForbidden
	}
	query := r.URL.Query()
	content := processesPage{
		Namespace: query.Get("namespace"), Text: query.Get("text"), Status: registry.ProcessStatus(query.Get("status")),
		Statuses: []registry.ProcessStatus{registry.ProcessInit, registry.ProcessRunning, registry.ProcessFailed, registry.ProcessDone},
	}
	list, err := p.processes.List(r.Context(), registry.ProcessQuery{Namespace: content.Namespace, Status: content.Status, Text: content.Text, After: query.Get("after"), Limit: 50})
	if err != nil {
		return page{}, badCursor(r, err)
	}
	for _, info := range list.Rows {
		content.Rows = append(content.Rows, processRow{info, "/processes/" + url.PathEscape(info.Namespace) + "/" + url.PathEscape(info.ProcessID)})
	}
	content.Next = nextPage(r, list.Next)
	return page{Name: "processes", Title: "Processes", Section: "processes", Content: content}, nil
}

// newestEvents is how many events a process's page shows.
const newestEvents = 100

func (p *pages) process(r *http.Request) (page, error) {
	if !p.processes.MaySee(r.Context()) {
		return page{}, errForbidden
	}
	key := registry.ProcessKey{Namespace: r.PathValue("namespace"), ProcessID: r.PathValue("process")}
	info, err := p.processes.Read(r.Context(), key, registry.HistoryRange{Backward: true, Limit: newestEvents})
	if err != nil {
		return page{}, err
	}
	return page{Name: "process", Title: "Process " + key.String(), Section: "processes", Content: info}, nil
}
