package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
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
	noEnvironment(t)
	t.Setenv("HOLDFAST_URL", service.URL)
	t.Setenv("HOLDFAST_TOKEN", "t")
	holdfast(t, "item", "list").wants(t, exitOK)
	holdfast(t, "item", "list", "STATE:failed,held", `name:"field notes"`, "--collection", "a b", "--text", "-x", "--batch", "B", "--action", "ingest", "--stage", "download", "--status", "failed").wants(t, exitOK)
	holdfast(t, "item", "list", "--limit", "1", "--", "-state:completed", "two words").wants(t, exitOK)
	holdfast(t, "batch", "list", "older:2h", "--status", "failed").wants(t, exitOK)
	want := []string{
		"|", `state:failed,held name:"field notes" collection:"a b" "-x" batch:B action:ingest stage:download status:failed|`,
		"-state:completed two words|", "older:2h status:failed|batch",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	asked = nil
	holdfast(t, "item", "list", "x", "state:faild").wants(t, exitUsage).says(t, "character 9", "did you mean failed?", "known are", "holdfast item list --help")
	holdfast(t, "item", "list", "--stage", "lunch").wants(t, exitUsage).says(t, `"lunch" is no stage`, "download")
	if asked != nil {
		t.Errorf("a bad query was sent: %q", asked)
	}
	help := holdfast(t, "item", "list", "--help").wants(t, exitOK).out
	for _, f := range registry.QueryFields() {
		if !strings.Contains(help, f.Name+":"+f.Example) || !strings.Contains(help, f.Means) {
			t.Errorf("the help does not explain %s:\n%s", f.Name, help)
		}
	}
}

// Whoever sends a token to another machine by plain HTTP is told once, unless this is meant.
func TestService_PlainHTTP(t *testing.T) {
	for _, c := range []struct {
		address, meant string
		want           int
	}{
		{"http://holdfast.test:8080", "", 1}, {"http://holdfast.test:8080", "yes", 0}, {"https://holdfast.test", "", 0}, {"http://127.0.0.1:8080", "", 0},
	} {
		noEnvironment(t)
		t.Setenv("HOLDFAST_URL", c.address)
		t.Setenv("HOLDFAST_TOKEN", "t")
		t.Setenv("HOLDFAST_PLAIN_HTTP", c.meant)
		var errs strings.Builder
		a := &app{err: &errs}
		for range 2 {
			if _, err := a.service(); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(errs.String(), "plain HTTP"); got != c.want {
			t.Errorf("%s, meant %q: %d warnings, want %d:\n%s", c.address, c.meant, got, c.want, &errs)
		}
	}
}
