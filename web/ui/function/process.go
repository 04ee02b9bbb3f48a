package function

import (
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

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

func (p pages) listProcesses(r *http.Request) (page.Page, error) {
	query := r.URL.Query()
	content := processesPage{
		Namespace: query.Get("namespace"), Text: query.Get("text"), Status: registry.ProcessStatus(query.Get("status")),
		Statuses: []registry.ProcessStatus{registry.ProcessInit, registry.ProcessRunning, registry.ProcessFailed, registry.ProcessDone},
	}
	list, err := p.API.Processes(r.Context(), registry.ProcessQuery{Namespace: content.Namespace, Status: content.Status, Text: content.Text, After: query.Get("after"), Limit: 50})
	if err != nil {
		return page.Page{}, err
	}
	for _, info := range list.Rows {
		content.Rows = append(content.Rows, processRow{info, "/processes/" + url.PathEscape(info.Namespace) + "/" + url.PathEscape(info.ProcessID)})
	}
	content.Next = page.Next(r, list.Next)
	return page.Page{Name: "processes", Title: "Processes", Section: "processes", Content: content}, nil
}

// newestEvents is how many events a process's page shows.
const newestEvents = 100

func (p pages) process(r *http.Request) (page.Page, error) {
	key := registry.ProcessKey{Namespace: r.PathValue("namespace"), ProcessID: r.PathValue("process")}
	info, err := p.API.Process(r.Context(), key, registry.HistoryRange{Backward: true, Limit: newestEvents})
	if err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "process", Title: "Process " + key.String(), Section: "processes", Content: info}, nil
}
