package endpoint

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/web/wire"
)

// Document adds an operation that huma does not serve to the specification. Its answer has type O.
func Document[O any](s *Server, op *huma.Operation) {
	s.DocumentAs(op, "application/json", s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[O](), true, ""))
}

// DocumentEmpty is [Document] for an operation whose answer has no body.
func (s *Server) DocumentEmpty(op *huma.Operation) {
	s.DocumentAs(op, "", nil)
	op.Responses[strconv.Itoa(op.DefaultStatus)].Content = nil
}

// DocumentAs is [Document] for an answer of another content type than JSON.
func (s *Server) DocumentAs(op *huma.Operation, contentType string, schema *huma.Schema) {
	schemas := s.api.OpenAPI().Components.Schemas
	if op.DefaultStatus == 0 {
		op.DefaultStatus = http.StatusOK
	}
	op.Responses = map[string]*huma.Response{
		strconv.Itoa(op.DefaultStatus): {
			Description: http.StatusText(op.DefaultStatus),
			Content:     map[string]*huma.MediaType{contentType: {Schema: schema}},
		},
	}
	for _, status := range op.Errors {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: cmp.Or(http.StatusText(status), "Checksum Mismatch"), // the only status without a standard text, of tus
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[wire.Problem](), true, "")},
			},
		}
	}
	s.api.OpenAPI().AddOperation(op)
}

// tags group the operations by subject. The first part of an operation's path determines its group.
var tags = []struct {
	tag   *huma.Tag
	paths []string
}{
	{&huma.Tag{Name: "deposit", Description: "Submit payloads: uploads (tus), submissions, checks without a submission, graphs of submissions and tasks."}, []string{"uploads", "check", "graphs"}},
	{&huma.Tag{Name: "tasks", Description: "Functions, tasks, which call them, and schedules, which submit tasks."}, []string{"functions", "tasks", "schedules"}},
	{&huma.Tag{Name: "processes", Description: "Processes, which programs serve step by step."}, []string{"namespaces", "processes", "answers"}},
	{&huma.Tag{Name: "batches", Description: "Progress, jobs and reports of submissions."}, []string{"batches"}},
	{&huma.Tag{Name: "items", Description: "Jobs, batches and other items: lists, saved views of them, history, causes of failures, acts."}, []string{"items", "failures", "bulk", "views"}},
	{&huma.Tag{Name: "queue", Description: "Waiting and running items, holds, workers, storages."}, []string{"queue", "holds", "workers", "orphans", "storages", "storage-objects"}},
	{&huma.Tag{Name: "objects", Description: "Preserved objects: versions, files, content, PREMIS, receipts, checks, restores, deletions."}, []string{"objects", "deletions", "receipt-keys", "checkpoints"}},
	{&huma.Tag{Name: "collections", Description: "Collections with their profiles and credentials."}, []string{"collections"}},
	{&huma.Tag{Name: "events", Description: "The feed, live events, the audit list, evidence reports, subscriptions."}, []string{"events", "feed", "audit", "evidence-report", "subscriptions"}},
	{&huma.Tag{Name: "access", Description: "Tokens, browser sessions, sign-in links."}, []string{"token", "tokens", "sessions", "sign-in-links"}},
}

// tagOf returns the group of an operation. It panics on a path without a group, which is a
// programming error.
func tagOf(path string) string {
	first := strings.Split(path, "/")[1]
	for _, t := range tags {
		if slices.Contains(t.paths, first) {
			return t.tag.Name
		}
	}
	panic("endpoint: no group of operations has " + path)
}

func allTags() []*huma.Tag {
	out := make([]*huma.Tag, len(tags))
	for i, t := range tags {
		out[i] = t.tag
	}
	return out
}
