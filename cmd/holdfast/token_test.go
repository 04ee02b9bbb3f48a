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

	"github.com/holdfast/holdfast/registry"
)

func TestTokensEventsAndAudit(t *testing.T) {
	dir := up(t)
	made := holdfast(t, "token", "create", "--name", "ann", "--role", "depositor", "--collection", "default", "--expires", "90d", "--dir", dir).wants(t, exitOK)
	secret := strings.TrimSpace(made.out)
	if !strings.HasPrefix(secret, "hf_") || strings.Contains(made.err, secret) {
		t.Errorf("out %q, err %q, want the secret alone", made.out, made.err)
	}
	holdfast(t, "token", "create", "--name", "ann", "--role", "viewer", "--dir", dir).wants(t, exitRefused).says(t, "another token")
	holdfast(t, "token", "create", "--name", "bob", "--role", "boss", "--dir", dir).wants(t, exitUsage).says(t, "body.role")
	holdfast(t, "token", "create", "--name", "bob", "--role", "viewer", "--expires", "soon", "--dir", dir).wants(t, exitUsage).says(t, "--expires")
	var tokens []registry.Token
	for line := range strings.Lines(holdfast(t, "token", "list", "--json", "--dir", dir).wants(t, exitOK).out) {
		var tok registry.Token
		if err := json.Unmarshal([]byte(line), &tok); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, tok)
	}
	if len(tokens) != 2 || tokens[0].Role != registry.RoleAdmin || tokens[1].Name != "ann" || tokens[1].ExpiresAt == nil {
		t.Fatalf("tokens %+v", tokens)
	}
	holdfast(t, "token", "revoke", tokens[0].ID, "--dir", dir).wants(t, exitRefused).says(t, "last admin")
	holdfast(t, "token", "revoke", tokens[1].ID, "--dir", dir).wants(t, exitOK)
	holdfast(t, "token", "revoke", "none", "--dir", dir).wants(t, exitNotFound)
	if list := holdfast(t, "token", "list", "--dir", dir).wants(t, exitOK); !strings.Contains(list.out, "revoked") || strings.Contains(list.out, secret) {
		t.Errorf("list:\n%s", list.out)
	}

	audit := holdfast(t, "audit", "list", "--dir", dir).wants(t, exitOK)
	for _, want := range []string{"token-created", "token-revoked", "refused", "last-admin", "holdfast up"} {
		if !strings.Contains(audit.out, want) {
			t.Errorf("audit does not have %q:\n%s", want, audit.out)
		}
	}
	if only := holdfast(t, "audit", "list", "--types", "token-created", "--json", "--dir", dir).wants(t, exitOK); strings.Count(only.out, "\n") != 2 {
		t.Errorf("tokens made:\n%s", only.out)
	}

	events := holdfast(t, "events", "--types", "token-created,token-revoked", "--json", "--dir", dir).wants(t, exitOK)
	var first registry.Event
	if err := json.Unmarshal([]byte(strings.SplitN(events.out, "\n", 2)[0]), &first); err != nil || strings.Count(events.out, "\n") != 3 {
		t.Fatalf("events:\n%s", events.out)
	}
	if len(strings.Split(strings.TrimSpace(holdfast(t, "events", "--limit", "2", "--dir", dir).wants(t, exitOK).out), "\n")) != 3 {
		t.Error("a table of two events is not two rows and a head")
	}
	holdfast(t, "events", "--after", "-7", "--dir", dir).wants(t, exitUsage)
	holdfast(t, "events", "--item", "none", "--follow", "--dir", dir).wants(t, exitNotFound)

	// Followed until interrupted; what is printed then goes on where it was.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, errs := newBuffer(), &bytes.Buffer{}
	over := make(chan int, 1)
	go func() {
		over <- run(ctx, []string{"events", "--follow", "--after", "0", "--types", "token-revoked", "--dir", dir}, strings.NewReader(""), out, errs)
	}()
	for !strings.Contains(out.String(), "token-revoked") {
		select {
		case <-out.grew:
		case code := <-over:
			t.Fatalf("ended with %d: %s", code, errs)
		}
	}
	cancel()
	if code := <-over; code != int(exitInterrupted) || !strings.Contains(errs.String(), "holdfast events --follow --after ") {
		t.Errorf("interrupted: code %d, %s", code, errs)
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"12h": now.Add(12 * time.Hour), "90d": now.Add(90 * 24 * time.Hour), "2027-01-31T00:00:00Z": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := expiry(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1h", "0d", "-3d", "99999999d", "d", "tomorrow"} {
		if got, err := expiry(text, now); err == nil {
			t.Errorf("%s: %v, want an error", text, got)
		}
	}
	if got, err := expiry("", now); got != nil || err != nil {
		t.Errorf("nothing: %v %v, want never", got, err)
	}
}

// A browser signs in by the link that login prints; its session is listed, for its owner and for an admin, and ends by its id in short.
func TestSessions(t *testing.T) {
	dir := up(t)
	viewer := strings.TrimSpace(holdfast(t, "token", "create", "--name", "eve", "--role", "viewer", "--dir", dir).wants(t, exitOK).out)
	link, err := url.Parse(strings.TrimSpace(holdfast(t, "login", "--dir", dir).wants(t, exitOK).out))
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
	holdfast(t, "session", "list", "--dir", dir).wants(t, exitOK).says(t, "no sessions")
	form(link.Query())
	var mine registry.Session
	if err := json.Unmarshal([]byte(holdfast(t, "session", "list", "--json", "--dir", dir).wants(t, exitOK).out), &mine); err != nil {
		t.Fatal(err)
	}
	if table := holdfast(t, "session", "list", "--dir", dir).wants(t, exitOK).out; !strings.Contains(table, mine.ID) || !strings.Contains(table, "Lynx") {
		t.Errorf("list:\n%q", table)
	}
	// Others see and end their own.
	t.Setenv("HOLDFAST_URL", service)
	t.Setenv("HOLDFAST_TOKEN", viewer)
	holdfast(t, "session", "list").wants(t, exitOK).says(t, "no sessions")
	holdfast(t, "session", "revoke", mine.ID).wants(t, exitNotFound)
	if !signedIn() {
		t.Fatal("somebody else has ended the session")
	}
	holdfast(t, "session", "revoke", "none", mine.ID[:8], "--dir", dir).wants(t, exitPartly).says(t, "revoked: "+mine.ID[:8], `no session "none"`)
	if signedIn() {
		t.Error("the session goes on after it was revoked")
	}
	form(url.Values{"token": {viewer}})
	var own registry.Session
	if err := json.Unmarshal([]byte(holdfast(t, "session", "list", "--json").wants(t, exitOK).out), &own); err != nil || own.Name != "eve" {
		t.Fatalf("own session %+v (%v)", own, err)
	}
	holdfast(t, "session", "revoke", own.ID).wants(t, exitOK)
	if signedIn() {
		t.Error("one's own session goes on after it was revoked")
	}
}
