package api_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/npmtest"
	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/wire"
)

// specificationAt is where docs has the specification that others generate clients from.
func specificationAt(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "openapi.json"))
	must(t, err)
	return path
}

// TestSpecification_GoClient generates a Go client from the specification with oapi-codegen, and
// calls a server with it.
func TestSpecification_GoClient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	folder := t.TempDir()
	must(t, os.CopyFS(folder, os.DirFS(filepath.Join("..", "..", "tools", "openapi"))))
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = folder
		c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("go", "mod", "download"); err != nil {
		t.Log(out)
		proctest.Absent(t, "oapi-codegen", err)
	}
	if out, err := run("go", "tool", "oapi-codegen", "-package", "main", "-generate", "types,client", "-o", "client.go", specificationAt(t)); err != nil {
		t.Fatalf("generate a client: %v\n%s", err, out)
	}
	if out, err := run("go", "build", "-o", "openapi", "."); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	b := newBench(t)
	s, err := b.as(t, registry.RoleDepositor).Submit(ctx, wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	if out, err := run("./openapi", b.server.URL+wire.Base, tokenText(registry.RoleDepositor)); err != nil || strings.TrimSpace(out) != s.BatchID+" Pending" {
		t.Errorf("the generated client says %q, %v; want batch %s, which is Pending", out, err, s.BatchID)
	}
	if out, err := run("./openapi", b.server.URL+wire.Base, "wrong"); err == nil || !strings.Contains(out, string(wire.CodeUnauthenticated)) {
		t.Errorf("with a wrong token the generated client says %q, %v", out, err)
	}
}

//go:embed testdata/openapi_typescript.js
var openapiTypeScript string

// TestSpecification_TypeScript generates types from the specification with openapi-typescript, and
// compiles code that uses them.
func TestSpecification_TypeScript(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := npmtest.Node(ctx, t, "openapi-typescript", "7.13.0", openapiTypeScript, specificationAt(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "compiles") {
		t.Errorf("%v: %s", err, out)
	}
}

// declared says which refusals the specification declares, by the mux's pattern of the operation.
var declared = sync.OnceValues(func() (*http.ServeMux, map[string][]string) {
	text, err := api.Specification()
	if err != nil {
		panic(err)
	}
	var spec struct {
		Paths map[string]map[string]struct {
			Responses map[string]any `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		panic(err)
	}
	mux, statuses := http.NewServeMux(), map[string][]string{}
	for path, methods := range spec.Paths {
		for method, op := range methods {
			pattern := strings.ToUpper(method) + " " + wire.Base + path
			mux.Handle(pattern, http.NotFoundHandler())
			statuses[pattern] = slices.Collect(maps.Keys(op.Responses))
		}
	}
	return mux, statuses
})

// declaredOnly fails a test in which an operation refuses something by a status that the
// specification does not declare for it.
func declaredOnly(t testing.TB, next http.Handler) http.Handler {
	mux, statuses := declared()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noted := &noting{ResponseWriter: w}
		next.ServeHTTP(noted, r)
		if _, pattern := mux.Handler(r); noted.status >= 400 && statuses[pattern] != nil && !slices.Contains(statuses[pattern], strconv.Itoa(noted.status)) {
			t.Errorf("%s answers %d, which the specification does not declare: give it to its operation", pattern, noted.status)
		}
	})
}

// noting notes the status of an answer.
type noting struct {
	http.ResponseWriter
	status int
}

func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }
