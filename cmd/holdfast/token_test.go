package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

func TestTokensEventsAndAudit(t *testing.T) {
	dir := up(t)
	made := holdfast(t, "token", "create", "--name", "ann", "--role", "depositor", "--collection", "default", "--expires", "90d", "--dir", dir).Wants(t, exit.OK)
	secret := strings.TrimSpace(made.Out)
	if !strings.HasPrefix(secret, "hf_") || strings.Contains(made.Err, secret) {
		t.Errorf("out %q, err %q, want the secret alone", made.Out, made.Err)
	}
	holdfast(t, "token", "create", "--name", "ann", "--role", "viewer", "--dir", dir).Wants(t, exit.Refused).Says(t, "another token")
	holdfast(t, "token", "create", "--name", "bob", "--role", "boss", "--dir", dir).Wants(t, exit.Usage).Says(t, "  --role: ")
	holdfast(t, "token", "create", "--name", "bob", "--role", "viewer", "--expires", "soon", "--dir", dir).Wants(t, exit.Usage).Says(t, "--expires")
	var tokens []registry.Token
	for line := range strings.Lines(holdfast(t, "token", "list", "--json", "--dir", dir).Wants(t, exit.OK).Out) {
		var tok registry.Token
		if err := json.Unmarshal([]byte(line), &tok); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, tok)
	}
	if len(tokens) != 2 || tokens[0].Role != registry.RoleAdmin || tokens[1].Name != "ann" || tokens[1].ExpiresAt == nil {
		t.Fatalf("tokens %+v", tokens)
	}
	holdfast(t, "token", "revoke", tokens[0].ID, "--dir", dir).Wants(t, exit.Refused).Says(t, "last valid admin")
	holdfast(t, "token", "revoke", tokens[1].ID, "--dir", dir).Wants(t, exit.OK)
	holdfast(t, "token", "revoke", "none", "--dir", dir).Wants(t, exit.NotFound)
	if list := holdfast(t, "token", "list", "--dir", dir).Wants(t, exit.OK); !strings.Contains(list.Out, "revoked") || strings.Contains(list.Out, secret) {
		t.Errorf("list:\n%s", list.Out)
	}

	audit := holdfast(t, "audit", "list", "--dir", dir).Wants(t, exit.OK)
	for _, want := range []string{"token-created", "token-revoked", "refused", "last-admin", "holdfast up"} {
		if !strings.Contains(audit.Out, want) {
			t.Errorf("audit does not have %q:\n%s", want, audit.Out)
		}
	}
	if only := holdfast(t, "audit", "list", "--types", "token-created", "--json", "--dir", dir).Wants(t, exit.OK); strings.Count(only.Out, "\n") != 2 {
		t.Errorf("tokens made:\n%s", only.Out)
	}

	events := holdfast(t, "events", "--types", "token-created,token-revoked", "--json", "--dir", dir).Wants(t, exit.OK)
	var first registry.Event
	if err := json.Unmarshal([]byte(strings.SplitN(events.Out, "\n", 2)[0]), &first); err != nil || strings.Count(events.Out, "\n") != 3 {
		t.Fatalf("events:\n%s", events.Out)
	}
	if len(strings.Split(strings.TrimSpace(holdfast(t, "events", "--limit", "2", "--dir", dir).Wants(t, exit.OK).Out), "\n")) != 3 {
		t.Error("a table of two events is not two rows and a head")
	}
	holdfast(t, "events", "--after", "-7", "--dir", dir).Wants(t, exit.Usage)
	holdfast(t, "events", "--item", "none", "--follow", "--dir", dir).Wants(t, exit.NotFound)

	// Followed until interrupted; what is printed then goes on where it was.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, errs := newBuffer(), &bytes.Buffer{}
	over := make(chan exit.Code, 1)
	go func() {
		over <- execute(ctx, []string{"events", "--follow", "--after", "0", "--types", "token-revoked", "--dir", dir}, strings.NewReader(""), out, errs)
	}()
	for !strings.Contains(out.String(), "token-revoked") {
		select {
		case <-out.grew:
		case code := <-over:
			t.Fatalf("ended with %d: %s", code, errs)
		}
	}
	cancel()
	if code := <-over; code != exit.Interrupted || !strings.Contains(errs.String(), "holdfast events --follow --after ") {
		t.Errorf("interrupted: code %d, %s", code, errs)
	}
}

// A browser signs in by the link of `login`. Its owner and an admin see the session, and end it by
// a shortened id.
func TestSessions(t *testing.T) {
	dir := up(t)
	viewer := strings.TrimSpace(holdfast(t, "token", "create", "--name", "eve", "--role", "viewer", "--dir", dir).Wants(t, exit.OK).Out)
	link, err := url.Parse(strings.TrimSpace(holdfast(t, "login", "--dir", dir).Wants(t, exit.OK).Out))
	if err != nil {
		t.Fatal(err)
	}
	service := link.Scheme + "://" + link.Host
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	form := func(values url.Values) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, service+"/login", strings.NewReader(values.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("User-Agent", "Lynx")
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("sign in: %d", answer.StatusCode)
		}
	}
	signedIn := func() bool {
		answer, err := browser.Get(service + "/sessions")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}
	holdfast(t, "session", "list", "--dir", dir).Wants(t, exit.OK).Says(t, "no sessions")
	form(link.Query())
	var mine registry.Session
	if err := json.Unmarshal([]byte(holdfast(t, "session", "list", "--json", "--dir", dir).Wants(t, exit.OK).Out), &mine); err != nil {
		t.Fatal(err)
	}
	if table := holdfast(t, "session", "list", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(table, mine.ID) || !strings.Contains(table, "Lynx") {
		t.Errorf("list:\n%q", table)
	}
	// Others see and end their own.
	t.Setenv("HOLDFAST_URL", service)
	t.Setenv("HOLDFAST_TOKEN", viewer)
	holdfast(t, "session", "list").Wants(t, exit.OK).Says(t, "no sessions")
	holdfast(t, "session", "revoke", mine.ID).Wants(t, exit.NotFound)
	if !signedIn() {
		t.Fatal("somebody else has ended the session")
	}
	holdfast(t, "session", "revoke", "none", mine.ID[:8], "--dir", dir).Wants(t, exit.Partly).Says(t, "revoked: "+mine.ID[:8], `session "none" was not found`)
	if signedIn() {
		t.Error("the session goes on after it was revoked")
	}
	form(url.Values{"token": {viewer}})
	var own registry.Session
	if err := json.Unmarshal([]byte(holdfast(t, "session", "list", "--json").Wants(t, exit.OK).Out), &own); err != nil || own.Name != "eve" {
		t.Fatalf("own session %+v (%v)", own, err)
	}
	holdfast(t, "session", "revoke", own.ID).Wants(t, exit.OK)
	if signedIn() {
		t.Error("one's own session goes on after it was revoked")
	}
}
