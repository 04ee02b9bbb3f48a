package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// workSeeds are requests of workers that get far: JOB and BATCH stand for items that run in their
// first attempt.
func workSeeds() [][2]string {
	lease := `"lease":{"item_id":"JOB","n":1}`
	return [][2]string{
		{"calls", `[{"method":"claim","in":{"request_id":"r","stage":"expand","worker":"w","lease":1000000000}},{"method":"claim","in":{"stage":"x"}},{"method":"claim"},{"method":"withdrawn","in":{}},{}]`},
		{"calls", `null`},
		{"claim", `{"request_id":"r","stage":"expand","worker":"w","lease":1000000000}`},
		{"settle", `{` + lease + `,"outcome":"retry","delay":-1,"results":{"a":{"b":[1]},"":null},"priority_add":99,"size_bytes":-5,"events":[{"type":"x","data":{}}]}`},
		{"settle", `{` + lease + `,"outcome":"lost"}`},
		{"renew", `{"worker":{"id":"w","version":"1","capacity":{"expand":2,"":-1},"free":null,"seen_at":"0001-01-01T00:00:00Z"},"lease":9223372036854775807,"beats":[{` + lease + `,"progress":[{"title":"t","end":-1}],"advanced":true,"done_bytes":-1}]}`},
		{"withdrawn", `{"worker":"w","after":-1,"wait":-9223372036854775808}`},
		{"save-result", `{` + lease + `,"name":"n","value":{"a":1e400}}`},
		{"save-result", `{` + lease + `,"name":"","value":null}`},
		{"add-jobs", `{"lease":{"item_id":"BATCH","n":1},"value":[{"row":1,"name":"a","priority":5,"spec":{"url":"http://h/a","submitted_at":"9999-12-31T23:59:59Z"}},{"row":2,"fault":"bad","class":"content"},{"row":-1}]}`},
		{"first-of", `{"lease":{"item_id":"BATCH","n":1},"value":"\u0000"}`},
		{"reserve", `{` + lease + `,"value":{"volume":"v","bytes":-9223372036854775808,"used":1,"total":0,"threshold":1e308}}`},
		{"close-report", `{"lease":{"item_id":"BATCH","n":1}}`},
		{"apply-next", `{` + lease + `}`},
		{"identify", `{` + lease + `,"value":{"owner":"o","supplied":"","local_ids":["a","a",""],"proposed":"ark:/1/2"}}`},
		{"identify", `{` + lease + `,"value":{"owner":"","supplied":"x","local_ids":null,"proposed":""}}`},
		{"intend", `{` + lease + `,"value":{"object_id":"ark:/1/2","version":1,"plan":{}}}`},
		{"intend", `{` + lease + `,"value":{"object_id":"ark:/1/2","version":-1}}`},
		{"record-files", `{` + lease + `,"object_id":"ark:/1/2","version":1,"files":[{"path":"/w==","content_path":"AA==","digests":null},{"path":"!"}]}`},
		{"record-version", `{` + lease + `,"value":{"object_id":"ark:/1/2","version":1,"local_ids":["a"],"created_at":"0001-01-01T00:00:00Z","events":[{"id":"","at":"9999-01-01T00:00:00Z"}]}}`},
		{"items", `{"action":"x","limit":-5,"after":"x","within":[],"text":"%_\\","match":{"terms":[{"field":"nothing","value":"older"}]}}`},
		{"count-items", `{"match":{"terms":null}}`},
		{"failures", `{"match":{"terms":[{"field":"cause","value":"x"}]},"after":"x","limit":-1}`},
		{"events", `{"item_id":"","after":-1,"limit":1000000}`},
		{"report-jobs", `{"batch_id":"BATCH","closing":-1,"after_row":-1,"limit":-1}`},
		{"files", `{"object_id":"ark:/1/2","version":-1,"after":"/w==","limit":-1}`},
		{"item", `{"id":"JOB"}`},
		{"why", `{"id":"\u0000"}`},
	}
}

// FuzzWork checks that everything a worker sends is accepted or refused with a problem, never with
// a 500 status in any part of an answer.
func FuzzWork(f *testing.F) {
	for _, seed := range workSeeds() {
		f.Add(seed[0], seed[1])
		f.Add(seed[0], `{}`)
		f.Add(seed[0], `[`)
	}
	for name := range protocol.Stages() {
		for _, text := range []string{``, `null`, `[]`, `{"id":5}`, `[{"lease":"x"}]`, `{"worker":{"capacity":[]}}`, `{"lease":{"item_id":"JOB","n":1}}`} {
			f.Add(name, text)
		}
	}
	b := newBench(f)
	handler := b.server.Config.Handler
	batch, job := b.batchOf(f, "fuzzed")
	b.claim(f, registry.Estimate)
	second, err := b.store.Submit(f.Context(), registry.Submission{Collection: "default", Spec: registry.Spec{URL: "http://h/a"}, Actor: "a"})
	must(f, err)
	b.claim(f, registry.Expand)
	_ = batch
	items := strings.NewReplacer("JOB", job, "BATCH", second.BatchID)
	f.Fuzz(func(t *testing.T, method, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if method == "withdrawn" {
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://h"+wire.Base+protocol.Path+url.PathEscape(method), strings.NewReader(items.Replace(text)))
		if err != nil {
			t.Skip("no request")
		}
		r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleAdmin))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("answer is not UTF-8: %q", w.Body)
		}
		if w.Code == http.StatusInternalServerError || strings.Contains(w.Body.String(), `"status":500`) {
			t.Errorf("%s %s: %s", method, text, w.Body)
		}
		if w.Code >= 400 {
			var p wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Detail == "" || p.Status != w.Code {
				t.Errorf("problem=%s (%v), want a whole one", w.Body, err)
			}
		}
	})
}
