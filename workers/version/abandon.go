package version

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/identity"
	"github.com/holdfast/holdfast/workers/result"
)

// abandonedError is the error of a step that abandoned an announced version: people must decide
// about the job.
type abandonedError struct {
	what string // version N of ID
	who  registry.Abandonment
}

// ErrorCode says so in one word, which failures are grouped by.
func (e *abandonedError) ErrorCode() string { return registry.CodeAbandoned }

// Error names the version and who decided.
func (e *abandonedError) Error() string {
	return fmt.Sprintf("%s was abandoned (%s): nothing of it is stored", e.what, e.who.Text())
}

// Abandon abandons the announced version, as two people have decided, unless a storage has it
// complete: then it exists and can only be rolled forward. Since the announcement the item holds
// the locks of the object and its folders. Abandon always returns an error: the job has not done
// its work.
func (w *Maker) Abandon(ctx context.Context, item *base.Item, who registry.Abandonment) error {
	if who.DoneAt != nil { // the attempt that did it could not settle
		return base.Fatal(&abandonedError{"its version", who})
	}
	id, err := result.Of[registry.Identity](item, registry.ResultARK, "no object is recorded for this item; requeue the item")
	if err != nil {
		return err
	}
	if id, err = w.Registry.Identify(ctx, item.Lease(), registry.IdentifyRequest{Folders: identity.Folders(w.Objects, item.Storages, id.Stored())}); err != nil {
		return err
	}
	version := id.Head + 1
	what := fmt.Sprintf("version %d of %s", version, id.ARK)
	in, err := w.Registry.Intend(ctx, item.Lease(), registry.Intent{ObjectID: id.ARK, Version: version})
	if err != nil {
		return err
	}
	var p result.Plan
	if err := json.Unmarshal(in.Plan, &p); err != nil {
		return base.Fatal(fmt.Errorf("read the plan of %s: %w", what, err))
	}
	complete := func(storage string) error {
		return base.Fatal(fmt.Errorf("%s is complete in storage %q, so it was not abandoned: requeue the item, which rolls it forward", what, storage))
	}
	// Check all storages before removing anything from one.
	roots := make([]ocfl.Named, 0, len(item.Storages))
	for _, name := range item.Storages {
		root, err := w.Objects.Of(name)
		if err != nil {
			return fmt.Errorf("abandon %s: %w", what, err)
		}
		shows, err := root.Shows(ctx, id.Stored(), version, p.Algorithm, p.Digest)
		if err != nil {
			return fmt.Errorf("abandon %s: check storage %q: %w", what, name, err)
		}
		if shows {
			return complete(name)
		}
		roots = append(roots, root)
	}
	space := roots[0].Spill()
	defer space.Close() //nolint:errcheck // nothing depends on a temporary file
	var planned *ocfl.Addition
	if p.Small {
		var small *smallPlan
		if small, err = readSmall(p, in.Staged); err == nil {
			planned = small.adds
		}
	} else {
		planned, err = w.announced(ctx, p, space)
	}
	if err != nil && !unusable(p, err) {
		return err
	}
	for i, root := range roots {
		if err := item.Writable(ctx); err != nil {
			return err
		}
		err := root.Abandon(ctx, id.Stored(), version, p.Algorithm, p.Digest, planned)
		var foreign *ocfl.ForeignError
		switch {
		case errors.Is(err, ocfl.ErrComplete): // completed since the check
			return complete(root.Name)
		case errors.As(err, &foreign):
			emptied := ""
			if i > 0 {
				emptied = fmt.Sprintf(" (storages %v no longer contain the version)", registry.AllOf(item.Storages[:i]))
			}
			return base.Fatal(fmt.Errorf("%s was not abandoned: storage %q: %w; nothing was removed there%s: find out what these files are, move them out of the storage, and abandon the version again", what, root.Name, err, emptied))
		case err != nil:
			return fmt.Errorf("storage %q: %w", root.Name, err)
		}
	}
	_, err = w.Registry.Intend(ctx, item.Lease(), registry.Intent{
		ObjectID: id.ARK, Version: version, Abandon: true, Forget: registry.VersionResults(item.Storages),
	})
	if err != nil {
		return err
	}
	return base.Fatal(&abandonedError{what, who})
}
