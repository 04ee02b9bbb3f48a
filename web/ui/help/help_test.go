package help_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// The help says what each state means, how to deposit to those who may, and what words mean.
func TestHelp(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	text := s.Get(t, "/help", http.StatusOK)
	for _, state := range registry.States() {
		_, after, found := strings.Cut(text, string(state)+"</span></dt><dd>")
		if !found || strings.HasPrefix(after, "</dd>") {
			t.Errorf("the help does not say what %s means", state)
		}
	}
	for _, want := range []string{`id="keys"`, "<kbd>Ctrl-K</kbd>", "<dt>job</dt><dd>The item that makes one version of one object.</dd>", "Your role does not deposit."} {
		if !strings.Contains(text, want) {
			t.Errorf("the help lacks %s", want)
		}
	}
	s.Token = s.TokenOf(t, "a depositor", registry.RoleDepositor)
	if text := s.Get(t, "/help", http.StatusOK); !strings.Contains(text, "holdfast submit") || !strings.Contains(text, `href="/deposit"`) {
		t.Error("a depositor does not learn how to deposit")
	}
}

// Each role sees the operations that it may call, with a command for each; the page stays light.
func TestAPI(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	last := 0
	for _, tt := range []struct {
		role      registry.Role
		has, lack []string
	}{
		{registry.RoleDepositor, []string{`id="submit-payload"`, `id="list-batches"`}, []string{`id="add-hold"`, `id="create-token"`, `id="list-audit"`}},
		{registry.RoleViewer, []string{`id="list-items"`}, []string{`id="submit-payload"`, `id="add-hold"`}},
		{registry.RoleOperator, []string{`id="add-hold"`, `id="command-item"`}, []string{`id="create-token"`}},
		{registry.RoleAdmin, []string{
			`id="create-token"`, `-X POST`, `&#39;http://example.com/api/v1/items/ID/commands&#39;`, `<strong>required</strong>`,
			`<code>Idempotency-Key</code>`, `&#34;reason&#34;: &#34;REASON&#34;`,
		}, []string{"$ref"}},
	} {
		s.Token = s.TokenOf(t, "one "+string(tt.role), tt.role)
		text := s.Get(t, "/api", http.StatusOK)
		for _, want := range tt.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page lacks %s", tt.role, want)
			}
		}
		for _, other := range tt.lack {
			if strings.Contains(text, other) {
				t.Errorf("%s: the page has %s", tt.role, other)
			}
		}
		const most = 300 << 10
		if len(text) > most {
			t.Errorf("%s: the page weighs %d KiB", tt.role, len(text)>>10)
		}
		last = strings.Count(text, `class="operation"`)
	}
	const fewest = 100
	if last < fewest {
		t.Errorf("an admin sees only %d operations", last)
	}
}

// A text leads to the item, batch or object that it names, or to a search for it.
func TestFind(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	submitted, err := s.Store.Submit(t.Context(), registry.Submission{
		Collection: "default", Spec: registry.Spec{URL: "https://example.com/a.txt", Type: registry.FileType},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := submitted.BatchID
	find := func(q string) string {
		t.Helper()
		w := s.Send(t, http.MethodGet, "/find?q="+q, nil)
		if w.Code != http.StatusSeeOther {
			t.Errorf("%q is answered with %d: %s", q, w.Code, w.Body)
		}
		return w.Header().Get("Location")
	}
	for q, want := range map[string]string{
		id: "/batches/" + id, "+" + id + "+": "/batches/" + id, id[:12]: "/batches/" + id,
		"": "/items", "harbour+master": "/items?q=harbour+master", "zzzz": "/items?q=zzzz", "ark:99999/none": "/items?q=ark%3A99999%2Fnone",
		"state:failed": "/items?q=state%3Afailed", "//example.com": "/items?q=%2F%2Fexample.com",
	} {
		if got := find(q); got != want {
			t.Errorf("%q leads to %s, want %s", q, got, want)
		}
	}
	s.Token = s.TokenOf(t, "a depositor", registry.RoleDepositor)
	if got := find("harbour"); got != "/deposits?q=harbour" {
		t.Errorf("a depositor is led to %s", got)
	}
}
