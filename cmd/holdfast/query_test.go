package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry/query"
)

// The words of a list and its flags reach the service as one query.
func TestList_Query(t *testing.T) {
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("q")+"|"+r.URL.Query().Get("action"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"rows":[]}`)
	}))
	defer service.Close()
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_URL", service.URL)
	t.Setenv("HOLDFAST_TOKEN", "t")
	holdfast(t, "item", "list").Wants(t, exit.OK)
	holdfast(t, "item", "list", "STATE:failed,held", `name:"field notes"`, "--collection", "a b", "--text", "-x", "--batch", "B", "--action", "ingest", "--stage", "download", "--status", "failed").Wants(t, exit.OK)
	holdfast(t, "item", "list", "--limit", "1", "--", "-state:completed", "two words").Wants(t, exit.OK)
	holdfast(t, "batch", "list", "older:2h", "--status", "failed").Wants(t, exit.OK)
	want := []string{
		"|", `state:failed,held name:"field notes" collection:"a b" "-x" batch:B action:ingest stage:download status:failed|`,
		"-state:completed two words|", "older:2h status:failed|batch",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	asked = nil
	holdfast(t, "item", "list", "x", "state:faild").Wants(t, exit.Usage).Says(t, "character 9", "did you mean failed?", "known are", "holdfast item list --help")
	holdfast(t, "item", "list", "--stage", "lunch").Wants(t, exit.Usage).Says(t, `unknown stage "lunch"`, "download")
	if asked != nil {
		t.Errorf("a bad query was sent: %q", asked)
	}
	help := holdfast(t, "item", "list", "--help").Wants(t, exit.OK).Out
	for _, f := range query.Fields() {
		if !strings.Contains(help, f.Name+":"+f.Example) || !strings.Contains(help, f.Means) {
			t.Errorf("the help does not explain %s:\n%s", f.Name, help)
		}
	}
}
