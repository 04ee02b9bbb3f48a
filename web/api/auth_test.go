package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/wire"
)

// specified is what the tests read of the specification.
type specified struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Description string `json:"description"`
	} `json:"paths"`
}

// TestAccess_ByRole checks that every operation accepts the roles that its description names, and
// refuses all others.
func TestAccess_ByRole(t *testing.T) {
	text, err := api.Specification()
	must(t, err)
	var spec specified
	must(t, json.Unmarshal(text, &spec))
	b := newBench(t)
	n := 0
	for path, methods := range spec.Paths {
		for method, op := range methods {
			said, _, _ := strings.Cut(strings.TrimPrefix(op.Description, "Roles: "), ".")
			allowed := strings.Split(said, ", ")
			if len(allowed) == 0 || allowed[0] == "" {
				t.Errorf("%s is nobody's", op.OperationID)
			}
			for _, role := range []registry.Role{
				registry.RoleAdmin, registry.RoleDepositor, registry.RoleOperator, registry.RoleViewer, registry.RoleWorker,
			} {
				n++
				address := "/api/v1" + strings.NewReplacer("{id}", "none", "{name}", "none").Replace(path)
				if op.OperationID == "events" {
					address += "?item=none" // a stream would not end
				}
				answer, text := b.send(t, strings.ToUpper(method), address, "", "Authorization", "Bearer "+tokenText(role))
				if refused := answer.StatusCode == http.StatusForbidden; refused == slices.Contains(allowed, string(role)) {
					t.Errorf("%s %s as %s: status %d, allowed are %v: %s", method, address, role, answer.StatusCode, allowed, text)
				} else if refused && method != "head" {
					wantProblem(t, answer, text, http.StatusForbidden, wire.CodeForbidden)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("%d combinations were tried, want them all", n)
	}
	if !strings.Contains(b.log.String(), `"code":"forbidden","actor":"the viewer"`) {
		t.Error("refusals are not in the log")
	}
}

func TestAccess_Unauthenticated(t *testing.T) {
	b := newBench(t)
	for name, header := range map[string]string{
		"nothing": "", "another scheme": "Basic eHg6eXk=", "no token": "Bearer ", "an unknown token": "Bearer hf_unknown",
	} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/batches", `{"url":"http://h/a"}`, "Authorization", header)
		wantProblem(t, answer, text, http.StatusUnauthorized, wire.CodeUnauthenticated)
		if answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate header", name)
		}
	}
	if strings.Contains(b.log.String(), "hf_unknown") {
		t.Error("a token is in the log")
	}
}

func TestCrossOrigin(t *testing.T) {
	b := newBench(t)
	answer, text := b.send(t, http.MethodPost, "/api/v1/batches", `{}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test")
	wantProblem(t, answer, text, http.StatusForbidden, wire.CodeCrossOrigin)
}

func TestHealth(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		answer, text := b.send(t, http.MethodGet, path, "", "Authorization", "")
		if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"status":"ok"`) {
			t.Errorf("%s: %d %s, want ok", path, answer.StatusCode, text)
		}
	}
	must(t, b.store.Close())
	answer, text := b.send(t, http.MethodGet, "/readyz", "", "Authorization", "")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, `"registry":"failing`) || strings.Contains(text, "sql") {
		t.Errorf("readyz: %d %s, want the registry failing, without its reasons", answer.StatusCode, text)
	}
}
