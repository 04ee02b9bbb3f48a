package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// FuzzSubmit checks that every submission is accepted or refused with a problem, and never with a
// 5xx status.
func FuzzSubmit(f *testing.F) {
	for _, seed := range []string{
		`{"url":"http://h.test/a"}`, `{"upload_id":"x","type":"auto"}`, `{}`, `[]`, `null`, `{"url":`, `{"url":null,"force":"x"}`,
		`{"url":"http://h.test/a","digest":{"algorithm":"sha256","value":"00"},"priority":1e99,"notify":["a@b"]}`,
		`{"url":"http://[::1","ark":"ark:/99999/fk4","local_ids":["a",""]}`, `{"url":"http://h/\u0000","title":"\ud800"}`,
	} {
		f.Add(seed, "key", "application/json")
	}
	f.Add(`{"url":"http://h.test/a"}`, strings.Repeat("k", 300), "text/plain; x=+")
	b := newBench(f)
	handler := b.server.Config.Handler
	f.Fuzz(func(t *testing.T, body, key, kind string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.Base+"/batches", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleDepositor))
		r.Header[wire.IdempotencyHeader] = []string{key}
		r.Header["Content-Type"] = []string{kind}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("answer is not UTF-8: %q", w.Body)
		}
		switch {
		case w.Code == http.StatusAccepted:
			var answer wire.SubmitResponse
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.BatchID == "" {
				t.Errorf("answer=%s (%v), want a batch", w.Body, err)
			}
		case w.Code < 400 || w.Code >= 500:
			t.Errorf("status=%d for %q: %s", w.Code, body, w.Body)
		default:
			var p wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Detail == "" || p.Status != w.Code {
				t.Errorf("problem=%s (%v), want a whole one", w.Body, err)
			}
		}
	})
}

// FuzzQuery checks that every list request is answered or refused with a problem.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"/items?limit=5", "/items?after=%ff", "/objects/%00", "/objects/ark:%2F1%2F2/content?path=%ff", "/holds?x", "/items/%2f/why", "/batches/../x", "/objects?text=%25_'", "/items?q=state:failed+-x", "/items?q=%22%00", "/items/count?q=x*+%22OR%22+id:0199f3c2", "/batches?q=held:yes+older:9999w", "/items?q=name:%22a%5C%22b%22&after=YWdlIDEgMQ"} {
		f.Add(seed)
	}
	b := newBench(f)
	handler := b.server.Config.Handler
	f.Fuzz(func(t *testing.T, path string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+wire.Base+"/"+strings.TrimPrefix(path, "/"), http.NoBody)
		if err != nil {
			t.Skip("no address")
		}
		r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleViewer))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("status=%d for %q: %s\n%s", w.Code, path, w.Body, b.log)
		}
	})
}
