package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// asWorker is the id of a worker's token, by which what it writes is fenced; "" for who is none.
func asWorker(ctx context.Context) string {
	if t := callOf(ctx).token; t.Role == registry.RoleWorker {
		return t.ID
	}
	return ""
}

// by makes a lease one of the token that asks.
func by(ctx context.Context, l registry.Lease) registry.Lease {
	l.Token = asWorker(ctx)
	return l
}

// mayServe refuses a worker's token the work of a stage that it is not good for.
func mayServe(ctx context.Context, stage registry.Stage) error {
	t := callOf(ctx).token
	if t.Role != registry.RoleWorker || t.Serves([]registry.Stage{stage}) {
		return nil
	}
	return forbidden("token %q is good for the stages %v, not for %s; make one by: holdfast token create --role worker --stage %s", t.Name, t.Stages, stage, stage)
}

func forbidden(format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf(format, args...))
}

// mayAsk refuses a worker what none of the items that it has claimed at this moment concerns.
func (s *server) mayAsk(ctx context.Context, what string, concerns func(registry.WorkItem) (bool, error)) error {
	id := asWorker(ctx)
	if id == "" {
		return nil
	}
	items, err := s.registry.Claimed(ctx, id)
	if err != nil {
		return err
	}
	for _, it := range items {
		if ok, err := concerns(it); ok || err != nil {
			return err
		}
	}
	return forbidden("a worker may ask about %s only while it works at an item that concerns it", what)
}

// mayAskOfCollection is mayAsk about the secrets of a collection.
func (s *server) mayAskOfCollection(ctx context.Context, mnemonic string) error {
	return s.mayAsk(ctx, "the credentials of collection "+mnemonic, func(it registry.WorkItem) (bool, error) { return it.Collection == mnemonic, nil })
}

// mayAskOfUpload is mayAsk about an upload: a batch that was submitted as it, whatever tidies up after that, and a search for orphans
// concern it.
func (s *server) mayAskOfUpload(ctx context.Context, id string) error {
	return s.mayAsk(ctx, "upload "+id, func(it registry.WorkItem) (bool, error) {
		if it.Action == registry.Tidy {
			var tidy registry.TidySpec
			if err := json.Unmarshal(it.Spec, &tidy); err != nil {
				return false, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
			}
			if tidy.Orphans != nil {
				return true, nil
			}
			subject, err := s.registry.Item(ctx, tidy.Subject)
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

// ofUpload makes a handler of a method that is about an upload.
func ofUpload[O any](s *server, do func(Registry, context.Context, string) (O, error)) func(Registry, context.Context, wire.ByID) (O, error) {
	return func(r Registry, ctx context.Context, in wire.ByID) (out O, err error) {
		if err := s.mayAskOfUpload(ctx, in.ID); err != nil {
			return out, err
		}
		return do(r, ctx, in.ID)
	}
}
