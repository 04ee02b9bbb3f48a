package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// mayServe refuses a worker's token for a stage that it is not valid for.
func (s *Server) mayServe(ctx context.Context, stage registry.Stage) error {
	t := s.Token(ctx)
	if t.Role != registry.RoleWorker || t.Serves([]registry.Stage{stage}) {
		return nil
	}
	return forbidden("token %q is valid for the stages %v, not for %s; create one with: holdfast token create --role worker --stage %s", t.Name, registry.AllOf(t.Stages), stage, stage)
}

func forbidden(format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf(format, args...))
}

// mayAsk refuses a worker's question unless it concerns an item that the worker has claimed. If
// collection is not "", only items of that collection count.
func (s *Server) mayAsk(ctx context.Context, what, collection string, concerns func(registry.WorkItem) (bool, error)) error {
	id := s.worker(ctx)
	if id == "" {
		return nil
	}
	q := registry.ClaimedQuery{Token: id, Collection: collection}
	for {
		items, err := s.Registry.Claimed(ctx, q)
		if err != nil {
			return err
		}
		for _, it := range items {
			if ok, err := concerns(it); ok || err != nil {
				return err
			}
			q.After = it.ID
		}
		if len(items) == 0 {
			return forbidden("a worker may ask about %s only while it works on an item that concerns it", what)
		}
	}
}

// mayAskOfUpload is mayAsk for an upload. Three kinds of items concern it: a batch of the upload,
// the tidy item of such a batch, and a search for orphaned data.
func (s *Server) mayAskOfUpload(ctx context.Context, id string) error {
	return s.mayAsk(ctx, "upload "+id, "", func(it registry.WorkItem) (bool, error) {
		if it.Action == registry.Tidy {
			var tidy registry.TidySpec
			if err := json.Unmarshal(it.Spec, &tidy); err != nil {
				return false, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
			}
			if tidy.Orphans != nil {
				return true, nil
			}
			subject, err := s.Registry.Item(ctx, tidy.Subject)
			if errors.Is(err, registry.ErrNotFound) {
				return false, nil
			} else if err != nil {
				return false, err
			}
			it = subject
		}
		if it.Action != registry.Batch {
			return false, nil
		}
		var spec registry.Spec
		if err := json.Unmarshal(it.Spec, &spec); err != nil {
			return false, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
		}
		upload, ok := registry.UploadID(spec.URL)
		return ok && upload == id, nil
	})
}
