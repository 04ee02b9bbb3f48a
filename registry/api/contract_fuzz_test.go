package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/api"
	"github.com/holdfast/holdfast/registry/wire"
)

// contractSeeds are requests that get far: JOB and BATCH stand for items that run in their first attempt.
func contractSeeds() [][3]string {
	return [][3]string{
		{"POST", "/claims", `{"claims":[{"request_id":"r","stage":"expand","worker":"w","lease":1000000000},{"stage":"x"},{}]}`},
		{"POST", "/claims", `{"claims":null}`},
		{"POST", "/settlements", `{"settlements":[{"lease":{"item_id":"JOB","n":1},"outcome":"retry","delay":-1,"results":{"a":{"b":[1]},"":null},"priority_add":99,"size_bytes":-5,"events":[{"type":"x","data":{}}]},{"lease":{"item_id":"JOB","n":1},"outcome":"lost"}]}`},
		{"POST", "/renewals", `{"worker":{"id":"w","version":"1","capacity":{"expand":2,"":-1},"free":null,"seen_at":"0001-01-01T00:00:00Z"},"lease":9223372036854775807,"beats":[{"lease":{"item_id":"JOB","n":1},"progress":[{"title":"t","end":-1}],"advanced":true,"done_bytes":-1}]}`},
		{"GET", "/withdrawals?worker=w&after=-1&wait_ms=1", ``},
		{"POST", "/items/JOB/attempts/1/results", `{"name":"n","value":{"a":1e400}}`},
		{"POST", "/items/JOB/attempts/1/results", `{"name":"","value":null}`},
		{"POST", "/items/BATCH/attempts/1/jobs", `{"jobs":[{"row":1,"name":"a","priority":5,"spec":{"url":"http://h/a","submitted_at":"9999-12-31T23:59:59Z"}},{"row":2,"fault":"bad","class":"content"},{"row":-1}]}`},
		{"PUT", "/items/JOB/attempts/1/reservation", `{"volume":"v","bytes":-9223372036854775808,"used":1,"total":0,"threshold":1e308}`},
		{"POST", "/items/BATCH/attempts/1/report", ``},
		{"POST", "/items/JOB/attempts/1/applications", ``},
		{"POST", "/items/JOB/attempts/1/identity", `{"owner":"o","supplied":"","local_ids":["a","a",""],"proposed":"ark:/1/2"}`},
		{"POST", "/items/JOB/attempts/1/identity", `{"owner":"","supplied":"x","local_ids":null,"proposed":""}`},
		{"POST", "/items/JOB/attempts/1/intents", `{"object_id":"ark:/1/2","version":1,"plan":{}}`},
		{"POST", "/items/JOB/attempts/1/intents", `{"object_id":"ark:/1/2","version":-1}`},
		{"POST", "/items/JOB/attempts/1/files", `{"object_id":"ark:/1/2","version":1,"files":[{"path":"/w==","content_path":"AA==","digests":null},{"path":"!"}]}`},
		{"POST", "/items/JOB/attempts/1/versions", `{"object_id":"ark:/1/2","version":1,"local_ids":["a"],"created_at":"0001-01-01T00:00:00Z","events":[{"id":"","at":"9999-01-01T00:00:00Z"}]}`},
		{"POST", "/offers", `{"window":-1,"renudge":-1,"renudge_max":9223372036854775807}`},
		{"POST", "/offers/undo", `{"wakes":[{"item_id":"JOB"},{}]}`},
		{"POST", "/offers/repeat", ``},
		{"GET", "/offers/bell?wait_ms=1", ``},
		{"POST", "/sweeps", `{"lease":-1}`},
		{"POST", "/registry/submit", `{"collection":"default","spec":{"url":"upload:x"},"requires":[{"item_id":"JOB"}]}`},
		{"POST", "/registry/submit", `{"collection":"default","name":"\u0000","spec":{"url":"x","local_ids":["\ud800"]},"priority":-9223372036854775808,"idempotency_key":"k"}`},
		{"POST", "/registry/prepare", `{"nodes":[{"key":"a","submission":{"collection":"default","requires":[{"key":"a"}]}}]}`},
		{"POST", "/registry/seal", `{"graph_id":"","actor":""}`},
		{"POST", "/registry/begin-upload", `{"id":"","filename":"\u0000","size_bytes":-5,"metadata":"\ud800","keep":-9223372036854775808}`},
		{"POST", "/registry/take-upload", `{"id":"\u0000","offset":-1}`},
		{"POST", "/registry/save-upload", `{"id":"x","n":-1,"offset":-1,"size_bytes":-2,"state":{"a":1e400}}`},
		{"POST", "/registry/incoming-of", `{"name":"\u0000"}`},
		{"POST", "/registry/finish-upload", `{"id":"","filename":"\u0000","size_bytes":-1}`},
		{"POST", "/registry/command", `{"item_id":"JOB","act":"requeue","from":"x","priority":1}`},
		{"POST", "/registry/command", `{"item_id":"BATCH","act":"priority"}`},
		{"POST", "/registry/bulk", `{"match":{"terms":[{"field":"state","value":"x","not":true}]},"act":"cancel"}`},
		{"POST", "/registry/set-accepting", `{"on":true}`},
		{"POST", "/registry/add-hold", `{"scope":"batch","key":"","reason":"x"}`},
		{"POST", "/registry/add-hold", `{"scope":"nothing","key":"a"}`},
		{"POST", "/registry/remove-hold", `{"scope":"all","key":"x"}`},
		{"POST", "/registry/put-collection", `{"collection":{"mnemonic":"","profile":{"priority":-1}},"actor":"a"}`},
		{"POST", "/registry/put-collection", `{"collection":{"mnemonic":"default","version":-2,"profile":{"bag_profile":{"a":1}}},"actor":"\u0000"}`},
		{"POST", "/registry/profile-versions", `{"mnemonic":"default","before":-9223372036854775808,"limit":-1}`},
		{"POST", "/registry/add-token", `{"token":{"id":"","name":"x","role":"nobody"},"hash":""}`},
		{"POST", "/registry/add-token", `{"token":{"id":"admin","name":"x","role":"admin"},"hash":"x"}`},
		{"POST", "/registry/token", `{"hash":"x"}`},
		{"POST", "/registry/revoke-token", `{"id":"x"}`},
		{"POST", "/registry/refused", `{"actor":"a","status":-1}`},
		{"POST", "/registry/items", `{"action":"x","limit":-5,"after":"x","within":[],"text":"%_\\","match":{"terms":[{"field":"nothing","value":"older"}]}}`},
		{"POST", "/registry/count-items", `{"match":{"terms":null}}`},
		{"POST", "/registry/failures", `{"match":{"terms":[{"field":"cause","value":"x"}]},"after":"x","limit":-1}`},
		{"POST", "/registry/events", `{"item_id":"","after":-1,"limit":1000000}`},
		{"POST", "/registry/feed", `{"types":[],"limit":-1}`},
		{"POST", "/registry/await-feed", `{"after":-1,"wait_ms":1}`},
		{"POST", "/registry/report-jobs", `{"batch_id":"BATCH","closing":-1,"after_row":-1,"limit":-1}`},
		{"POST", "/registry/objects", `{"after":"x","limit":999999}`},
		{"POST", "/registry/files", `{"object_id":"ark:/1/2","version":-1,"after":"/w==","limit":-1}`},
		{"POST", "/registry/item", `{"id":"JOB"}`},
		{"POST", "/registry/why", `{"id":"\u0000"}`},
	}
}

// Whatever a process of ours sends is taken, or refused by a problem: never a 500, in any part of an answer.
func FuzzContract(f *testing.F) {
	for _, s := range contractSeeds() {
		f.Add(s[0], s[1], s[2])
		f.Add(s[0], s[1], `{}`)
		f.Add(s[0], s[1], `[`)
	}
	for _, path := range contractPaths(f) {
		for _, text := range []string{``, `null`, `[]`, `{"id":5}`, `{"claims":[{"lease":"x"}]}`, `{"worker":{"capacity":[]}}`} {
			f.Add("POST", path, text)
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
	f.Fuzz(func(t *testing.T, method, path, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if strings.Contains(path, "bell") || strings.Contains(path, "withdrawals") || strings.Contains(path, "await") {
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		}
		r, err := http.NewRequestWithContext(ctx, method, "http://h"+wire.Base+"/"+strings.TrimPrefix(items.Replace(path), "/"), strings.NewReader(items.Replace(text)))
		if err != nil {
			t.Skip("no request")
		}
		r.Header.Set("Authorization", "Bearer "+secret(registry.RoleAdmin))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("answer is not UTF-8: %q", w.Body)
		}
		if w.Code == http.StatusInternalServerError || strings.Contains(w.Body.String(), `"status":500`) {
			t.Errorf("%s %s %s: %s", method, path, text, w.Body)
		}
		if w.Code >= 400 {
			var p wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Detail == "" || p.Status != w.Code {
				t.Errorf("problem=%s (%v), want a whole one", w.Body, err)
			}
		}
	})
}

// contractPaths are the addresses of everything that takes arguments of the contract.
func contractPaths(t testing.TB) (paths []string) {
	t.Helper()
	text, err := api.Specification()
	must(t, err)
	var spec specified
	must(t, json.Unmarshal(text, &spec))
	for path, methods := range spec.Paths {
		if op, ok := methods["post"]; ok && (strings.HasPrefix(op.OperationID, "registry-") || strings.Contains(path, "/attempts/{n}/")) {
			paths = append(paths, strings.NewReplacer("{id}", "JOB", "{n}", "1").Replace(path))
		}
	}
	if len(paths) < 40 {
		t.Fatalf("%d addresses, want all", len(paths))
	}
	return paths
}
