package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestPages_Processes: processes are listed and searched, and each has a page.
func TestPages_Processes(t *testing.T) {
	b := newBench(t, withPages)
	const hostile = `<script>alert(1)</script>`
	operator := newBrowser(t, b, registry.RoleOperator)
	get := func(path string, status int) string {
		t.Helper()
		answer, text := operator.send(t, http.MethodGet, path, nil)
		if answer.StatusCode != status {
			t.Fatalf("%s: %d: %s", path, answer.StatusCode, text)
		}
		return text
	}
	if text := get("/processes", http.StatusOK); !strings.Contains(text, "There is none yet") {
		t.Errorf("without processes: %s", text)
	}
	must(t, b.store.AnnounceNamespaces(t.Context(), []registry.Namespace{{Name: "curate"}}))
	payload, err := json.Marshal(hostile)
	must(t, err)
	_, err = b.store.PutProcess(t.Context(), registry.PutProcess{
		ProcessKey: registry.ProcessKey{Namespace: "curate", ProcessID: "ark:/99999/fk4 a?"}, History: []registry.ProcessEvent{{ID: 1, Payload: payload}},
	})
	must(t, err)
	const path = "/processes/curate/ark:%2F99999%2Ffk4%20a%3F"
	if text := get("/processes?status=running&namespace=curate", http.StatusOK); !strings.Contains(text, path) || !strings.Contains(text, `<a href="/processes" aria-current="true"`) {
		t.Errorf("the list: %s", text)
	}
	for _, query := range []string{"status=error", "namespace=other", "text=tape"} {
		if text := get("/processes?"+query, http.StatusOK); strings.Contains(text, path) {
			t.Errorf("%s finds it: %s", query, text)
		}
	}
	text := get(path, http.StatusOK)
	if !strings.Contains(text, "running</span> since") || !strings.Contains(text, "imported") || strings.Contains(text, hostile) {
		t.Errorf("its page: %s", text)
	}
	get("/processes/curate/none", http.StatusNotFound)
}
