package function

import (
	"net/http"

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
		content.Rows = append(content.Rows, processRow{info, processURL(info.ProcessKey)})
	}
	content.Next = page.Next(r, list.Next)
	return page.Page{Name: "processes", Title: p.Texts(r).T("Processes"), Section: "processes", Content: content}, nil
}
