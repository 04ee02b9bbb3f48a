package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

// failingRegistry fails what is read of items, as it is told to.
type failingRegistry struct {
	scope.Registry
	err    error
	panics bool
}

func (f *failingRegistry) Item(context.Context, string) (registry.WorkItem, error) {
	if f.panics {
		panic("a fault of ours")
	}
	return registry.WorkItem{}, fmt.Errorf("read item x: %w", f.err)
}

func TestProblem_Table(t *testing.T) {
	f := &failingRegistry{}
	b := newBench(t, func(b *bench, o *api.Options) { f.Registry, o.Registry, b.anyRefusal = o.Registry, f, true })
	for _, c := range []struct {
		err    error
		status int
		code   wire.Code
	}{
		{registry.ErrNotFound, 404, wire.CodeNotFound},
		{registry.ErrIdempotencyConflict, 409, wire.CodeIdempotency},
		{registry.ErrIntentOpen, 409, wire.CodeConflict},
		{registry.ErrJobsOpen, 409, wire.CodeConflict},
		{registry.ErrTaken, 409, wire.CodeConflict},
		{registry.ErrClaimLost, 409, wire.CodeConflict},
		{&registry.LockedError{Key: "k", ItemID: "y"}, 409, wire.CodeConflict},
		{&registry.IdentifierMismatch{LocalID: "l", Known: "a", Given: "b"}, 409, wire.CodeConflict},
		{&registry.NoObject{ARK: "ark:/1/2"}, 409, wire.CodeConflict},
		{&registry.TransitionError{From: registry.StateFailed, To: registry.StateCancelled, Allowed: []registry.Act{registry.ActRequeue}}, 409, wire.CodeTransition},
		{&registry.ConfirmationNeeded{ItemID: "i", Act: registry.ActDelete, Consequences: []string{"much"}}, 409, wire.CodeConfirm},
		{&registry.PastNoReturn{ItemID: "i", Act: registry.ActCancel, ObjectID: "o", Version: 1}, 409, wire.CodePastNoReturn},
		{registry.ErrEmptyQuery, 422, wire.CodeInvalid},
		{&registry.NoSpaceError{Volume: "v"}, 507, wire.CodeNoSpace},
		{storage.ErrNoSpace, 507, wire.CodeNoSpace},
		{wire.NewProblem(507, wire.CodeNoSpace, "staging is full"), 507, wire.CodeNoSpace},
		{wire.NewProblem(503, wire.CodeJudging, "a check goes on"), 503, wire.CodeJudging},
		{&registry.NotAccepting{Accepting: registry.Accepting{Reason: "storage moves"}}, 503, wire.CodeNotAccepting},
		{context.DeadlineExceeded, 503, wire.CodeUnavailable},
		{context.Canceled, 503, wire.CodeUnavailable},
		{errors.New("password=hunter2"), 500, wire.CodeInternal},
	} {
		f.err = c.err
		answer, text := b.send(t, http.MethodGet, "/api/v1/items/x", "")
		p := wantProblem(t, answer, text, c.status, c.code)
		if strings.Contains(text, "hunter2") {
			t.Errorf("an internal error is shown: %s", text)
		}
		if c.code == wire.CodeTransition && len(p.AllowedActs) != 1 {
			t.Errorf("allowed acts=%v, want what is allowed", p.AllowedActs)
		}
	}
	if !strings.Contains(b.log.String(), "hunter2") {
		t.Error("the cause of an internal error is not in the log")
	}
	for line := range strings.Lines(b.log.String()) {
		for about, level := range map[string]string{"hunter2": "ERROR", storage.ErrNoSpace.Error(): "ERROR", "; volume v is ": "DEBUG", "staging is full": "INFO", "a check goes on": "INFO", "storage moves": "INFO"} {
			if strings.Contains(line, about) && !strings.Contains(line, `"level":"`+level+`"`) {
				t.Errorf("not at level %s: %s", level, line)
			}
		}
	}
	_, measured := b.send(t, http.MethodGet, "/metrics", "", "Authorization", "Bearer "+tokenText(registry.RoleOperator))
	for _, status := range []string{"507", "503", "5xx"} { // what waits is no failure, and a database that does not answer is one
		if !strings.Contains(measured, `holdfast_http_request_duration_seconds_count{method="GET",route="/api/v1/items/{id}",status="`+status+`"} `) {
			t.Errorf("no request is measured with status %s", status)
		}
	}
	f.panics = true
	answer, text := b.send(t, http.MethodGet, "/api/v1/items/x", "")
	wantProblem(t, answer, text, http.StatusInternalServerError, wire.CodeInternal)
	if !strings.Contains(b.log.String(), "a fault of ours") {
		t.Error("the panic is not in the log")
	}
}

func TestProblem_Routing(t *testing.T) {
	b := newBench(t)
	large := `{"url":"http://h/` + strings.Repeat("a", 2<<20) + `"}`
	for _, c := range []struct {
		name, method, path, body, kind string
		status                         int
		code                           wire.Code
	}{
		{"no such address", "GET", "/api/v1/nothing", "", "", 404, wire.CodeNotFound},
		{"no such page", "GET", "/nothing", "", "", 404, wire.CodeNotFound},
		{"another method", "PATCH", "/api/v1/batches", "", "", 405, wire.CodeMethodNotAllowed},
		{"another method of an upload", "PUT", "/api/v1/uploads", "", "", 405, wire.CodeMethodNotAllowed},
		{"too large", "POST", "/api/v1/batches", large, "application/json", 413, wire.CodeTooLarge},
		{"a large graph", "POST", "/api/v1/graphs", large, "application/json", 413, wire.CodeTooLarge},
		{"a large task", "POST", "/api/v1/tasks", large, "application/json", 413, wire.CodeTooLarge},
		{"nested too deep", "POST", "/api/v1/tasks", `{"function":"x","args":` + strings.Repeat(`{"a\"]":[`, 250) + strings.Repeat("]}", 250) + `}`, "application/json", 422, wire.CodeInvalid},
		{"not UTF-8", "POST", "/api/v1/tasks", `{"function":"x","args":"` + "\xff" + `"}`, "application/json", 400, wire.CodeBadRequest},
		{"brackets in a text", "POST", "/api/v1/tasks", `{"function":"x","args":"\"` + strings.Repeat(`[`, 1000) + `"}`, "application/json", 404, wire.CodeNotFound},
		{"no JSON", "POST", "/api/v1/batches", "url=x", "application/x-www-form-urlencoded", 415, wire.CodeUnsupportedMedia},
		{"a limit", "GET", "/api/v1/items?limit=501", "", "", 422, wire.CodeInvalid},
		{"a limit in words", "GET", "/api/v1/items?limit=many", "", "", 422, wire.CodeInvalid},
		{"a misspelt filter", "GET", "/api/v1/items?stauts=failed", "", "", 422, wire.CodeInvalid},
		{"a status", "GET", "/api/v1/items?status=broken", "", "", 422, wire.CodeInvalid},
		{"a stage", "GET", "/api/v1/items?stage=lunch", "", "", 422, wire.CodeInvalid},
		{"an action", "GET", "/api/v1/items?action=dance", "", "", 422, wire.CodeInvalid},
		{"a cursor", "GET", "/api/v1/items?after=zzz", "", "", 422, wire.CodeInvalid},
		{"a cursor of objects", "GET", "/api/v1/objects?after=%00", "", "", 422, wire.CodeInvalid},
		{"no ARK", "GET", "/api/v1/objects/nonsense", "", "", 422, wire.CodeInvalid},
		{"no object", "GET", "/api/v1/objects/ark:%2F99999%2Ffk4none", "", "", 404, wire.CodeNotFound},
		{"no batch", "GET", "/api/v1/batches/none/progress", "", "", 404, wire.CodeNotFound},
		{"no item", "GET", "/api/v1/items/none/why", "", "", 404, wire.CodeNotFound},
		{"no history", "GET", "/api/v1/items/none/history", "", "", 404, wire.CodeNotFound},
		{"no attempts", "GET", "/api/v1/items/none/attempts", "", "", 404, wire.CodeNotFound},
		{"no collection", "GET", "/api/v1/collections/none", "", "", 404, wire.CodeNotFound},
		{"no hold", "DELETE", "/api/v1/holds?scope=all", "", "", 404, wire.CodeNotFound},
		{"a hold without reason", "POST", "/api/v1/holds", `{"scope":"all","reason":" "}`, "application/json", 422, wire.CodeInvalid},
		{"a hold of an unknown scope", "POST", "/api/v1/holds", `{"scope":"moon","reason":"r"}`, "application/json", 422, wire.CodeInvalid},
		{"a hold on no collection", "POST", "/api/v1/holds", `{"scope":"collection","key":"x","reason":"r"}`, "application/json", 404, wire.CodeNotFound},
		{"a hold on a stage", "POST", "/api/v1/holds", `{"scope":"stage","key":"x","reason":"r"}`, "application/json", 422, wire.CodeInvalid},
		{"a hold on no volume", "POST", "/api/v1/holds", `{"scope":"volume","key":"x","reason":"r"}`, "application/json", 404, wire.CodeNotFound},
		{"a hold on a nameless worker", "POST", "/api/v1/holds", `{"scope":"worker","reason":"r"}`, "application/json", 422, wire.CodeInvalid},
		{"a hold with a control character", "POST", "/api/v1/holds", `{"scope":"worker","key":"a\u0000","reason":"r"}`, "application/json", 422, wire.CodeInvalid},
		{"not accepting without a reason", "PUT", "/api/v1/queue/accepting", `{"on":false,"reason":" "}`, "application/json", 422, wire.CodeInvalid},
		{"an unknown storage", "POST", "/api/v1/storages/nowhere", `{"act":"retire","dry_run":true}`, "application/json", 422, wire.CodeInvalid},
		{"accepting perhaps", "PUT", "/api/v1/queue/accepting", `{"on":"perhaps","reason":"r"}`, "application/json", 422, wire.CodeInvalid},
		{"a collection's owner", "PUT", "/api/v1/collections/x", `{"owner":"me"}`, "application/json", 422, wire.CodeInvalid},
		{"a collection's name", "PUT", "/api/v1/collections/a%20b", `{"owner":"ark:/99999/o"}`, "application/json", 422, wire.CodeInvalid},
		{"a collection without ARKs", "PUT", "/api/v1/collections/x", `{"owner":"ark:/99999/o"}`, "application/json", 422, wire.CodeInvalid},
		{"a collection's digest", "PUT", "/api/v1/collections/x", `{"owner":"ark:/99999/o","digest_algorithm":"md5"}`, "application/json", 422, wire.CodeInvalid},
		{"a collection's minting", "PUT", "/api/v1/collections/x", `{"owner":"ark:/99999/o","collections":["ark:/99999/c"],"minting":"doi"}`, "application/json", 422, wire.CodeInvalid},
		{"a collection's template", "PUT", "/api/v1/collections/x", `{"owner":"ark:/99999/o","noid_template":"fk4{.seedk}"}`, "application/json", 422, wire.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, text := b.send(t, c.method, c.path, c.body, "Content-Type", c.kind)
			p := wantProblem(t, answer, text, c.status, c.code)
			if deep := strings.HasPrefix(c.name, "nested"); deep != strings.Contains(p.Detail, "levels deep") {
				t.Errorf("it says %s", p.Detail)
			}
			if c.status == http.StatusUnprocessableEntity && !strings.HasPrefix(c.name, "nested") && (len(p.Faults) == 0 || p.Faults[0].Location == "") {
				t.Errorf("errors=%+v, want the field's name", p.Faults)
			}
			if c.status == http.StatusRequestEntityTooLarge && strings.Contains(p.Detail, "/uploads") == strings.HasSuffix(c.path, "/tasks") {
				t.Errorf("only payloads can be uploaded: %s", p.Detail)
			}
			if c.status == http.StatusMethodNotAllowed && answer.Header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
		})
	}
}

// TestProblem_LongPath checks that log lines about a request are bounded, however long its path or
// its quotes in errors are.
func TestProblem_LongPath(t *testing.T) {
	f := &failingRegistry{}
	b := newBench(t, func(_ *bench, o *api.Options) { f.Registry, o.Registry = o.Registry, f })
	long := strings.Repeat("%C3%A4", 20_000)
	f.err = errors.New(long)
	for _, r := range []struct {
		method, path string
		status       int
		header       []string
	}{
		{http.MethodGet, "/api/v1/" + long, http.StatusNotFound, nil},
		{http.MethodGet, "/api/v1/collections/" + long[:600], http.StatusNotFound, nil},
		{http.MethodGet, "/api/v1/items/x", http.StatusInternalServerError, nil},
		{http.MethodPatch, "/api/v1/items/" + long, http.StatusMethodNotAllowed, nil},
		{http.MethodGet, "/api/v1/items/" + long, http.StatusUnauthorized, []string{"Authorization", ""}},
		{http.MethodPost, "/api/v1/" + long, http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		answer, text := b.send(t, r.method, r.path, "{}", r.header...)
		if answer.StatusCode != r.status {
			t.Errorf("%s %.40s: %d %.300s, want %d", r.method, r.path, answer.StatusCode, text, r.status)
		}
	}
	n := 0
	for line := range strings.Lines(b.log.String()) {
		n++
		if len(line) > 4_000 || !utf8.ValidString(line) {
			t.Errorf("a line of %d bytes: %.500s", len(line), line)
		}
	}
	if n < 6 {
		t.Errorf("%d lines, want one for each request", n)
	}
}
