// Package ezidtest is an EZID for tests, on 127.0.0.1. It creates, reads and modifies names as
// EZID's API documentation says, and fails on demand.
package ezidtest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The account of the server.
const (
	User     = "apitest"
	Password = "p:w%/@ geheim" // what an address must escape
)

// Server is an EZID server.
type Server struct {
	t      testing.TB
	server *httptest.Server

	mu    sync.Mutex
	names map[string]map[string]string // elements by ARK
	asked []string                     // "METHOD ark" of all requests
	fault Fault
}

// Fault may answer a request instead of the server, or call serve with another writer, so that the
// server's answer is lost. It returns whether it answered.
type Fault func(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter)) bool

// New starts a server. It stops with the test.
func New(t testing.TB) *Server {
	s := &Server{t: t, names: map[string]map[string]string{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// URL returns the server's address with the account.
func (s *Server) URL() string { return s.With(User, Password) }

// With returns the server's address with another account.
func (s *Server) With(user, password string) string {
	u, err := url.Parse(s.server.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// Fail installs a fault for all further requests; nil removes it.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Put stores a name with these elements.
func (s *Server) Put(ark string, elements map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[ark] = elements
}

// Remove deletes a name.
func (s *Server) Remove(ark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, ark)
}

// Name returns a name's elements, or nil.
func (s *Server) Name(ark string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.names[ark])
}

// Names returns all names with their status, sorted.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for ark, elements := range s.names {
		names = append(names, ark+" "+elements["_status"])
	}
	slices.Sort(names)
	return names
}

// Asked returns all requests as "METHOD ark".
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/id/"))
	fault := s.fault
	s.mu.Unlock()
	serve := func(w http.ResponseWriter) { s.serve(w, r) }
	if fault == nil || !fault(w, r, serve) {
		serve(w)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	ark, ok := strings.CutPrefix(r.URL.Path, "/id/")
	body, err := io.ReadAll(r.Body)
	given, bad := parse(string(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	has, exists := s.names[ark]
	switch {
	case r.URL.Path == "/login" && r.Method == http.MethodGet && user == User && password == Password:
		answer(w, http.StatusOK, "success: session cookie returned")
	case !ok && r.URL.Path != "/login":
		s.t.Errorf("%s %s: not a request for a name", r.Method, r.URL.Path)
		answer(w, http.StatusBadRequest, "error: bad request - not here")
	case err != nil:
		answer(w, http.StatusBadRequest, "error: bad request - malformed or incomplete request body")
	case user != User || password != Password:
		answer(w, http.StatusUnauthorized, "error: unauthorized")
	case len(body) > 0 && r.Header.Get("Content-Type") != "text/plain; charset=UTF-8":
		answer(w, http.StatusBadRequest, "error: bad request - wrong type of content")
	case bad != "":
		answer(w, http.StatusBadRequest, "error: bad request - ANVL parse error ("+bad+")")
	case r.Method == http.MethodPut && !strings.HasPrefix(ark, "ark:/99999/"):
		answer(w, http.StatusForbidden, "error: forbidden")
	case r.Method == http.MethodPut && exists:
		answer(w, http.StatusBadRequest, "error: bad request - identifier already exists, cannot create")
	case r.Method == http.MethodPut:
		s.names[ark] = map[string]string{
			"_status": "public", "_export": "yes", "_owner": User, "_ownergroup": User, "_created": "1300812337", "_updated": "1300812337",
			"_target": s.server.URL + "/id/" + ark,
		}
		maps.Copy(s.names[ark], given)
		answer(w, http.StatusCreated, "success: "+ark)
	case !exists:
		answer(w, http.StatusBadRequest, "error: bad request - no such identifier")
	case r.Method == http.MethodGet:
		text := "success: " + ark + "\n"
		for label, value := range has {
			text += escape(label, "%:\r\n") + ": " + escape(value, "%\r\n") + "\n"
		}
		answer(w, http.StatusOK, text)
	case r.Method != http.MethodPost:
		answer(w, http.StatusMethodNotAllowed, "error: method not allowed")
	case has["_owner"] != User:
		answer(w, http.StatusForbidden, "error: forbidden")
	case given["_status"] == "reserved" && has["_status"] != "reserved",
		strings.HasPrefix(given["_status"], "unavailable") && has["_status"] == "reserved":
		answer(w, http.StatusBadRequest, "error: bad request - invalid identifier status transition")
	default:
		maps.Copy(has, given)
		maps.DeleteFunc(has, func(_, value string) bool { return value == "" })
		answer(w, http.StatusOK, "success: "+ark)
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may be gone
}

// parse parses a body as EZID does; bad says what is wrong with it.
func parse(text string) (elements map[string]string, bad string) {
	elements = map[string]string{}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' })
	for _, line := range lines {
		label, value, found := strings.Cut(line, ":")
		label, ok := unescape(strings.TrimSpace(label))
		value, ok2 := unescape(strings.TrimSpace(value))
		switch _, twice := elements[label]; {
		case !found:
			return nil, "no colon in line"
		case !ok || !ok2:
			return nil, "percent-decode error"
		case label == "":
			return nil, "empty label"
		case twice:
			return nil, "repeated label"
		}
		elements[label] = value
	}
	return elements, ""
}

// unescape decodes as EZID does: each escape is a character, not a byte of UTF-8.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		var c rune
		if len(after) < 2 {
			return "", false
		}
		if _, err := fmt.Sscanf(after[:2], "%02x", &c); err != nil {
			return "", false
		}
		b.WriteRune(c)
		s = after[2:]
	}
}

func escape(s, chars string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(chars, r) {
			fmt.Fprintf(&b, "%%%02X", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
