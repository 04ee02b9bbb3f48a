package scope

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// UploadByID implements registry.Uploads. An upload is in no collection yet, so a depositor sees
// the uploads of its own token's name, which no other token ever has.
func (s scoped) UploadByID(ctx context.Context, id string) (registry.Upload, error) {
	v := s.sight(ctx)
	u, err := s.all.UploadByID(ctx, id)
	if errors.Is(err, registry.ErrNotFound) || err == nil && v.limited() && u.CreatedBy != v.token.Name {
		return registry.Upload{}, absent("upload", id)
	}
	return u, err
}

// RetireUpload implements registry.Receiving. No operation of depositors needs it.
func (s scoped) RetireUpload(ctx context.Context, uploadID string) (bool, error) {
	if s.sight(ctx).limited() {
		return false, absent("upload", uploadID)
	}
	return s.all.RetireUpload(ctx, uploadID)
}

// BatchesOf implements registry.Uploads.
func (s scoped) BatchesOf(ctx context.Context, uploadID string) ([]registry.WorkItem, error) {
	v := s.sight(ctx)
	all, err := s.all.BatchesOf(ctx, uploadID)
	if err != nil || !v.limited() {
		return all, err
	}
	all = slices.DeleteFunc(all, func(it registry.WorkItem) bool { return !v.sees(it.Collection) })
	for i := range all {
		if err := v.maskItem(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Submit implements registry.Submitting.
func (s scoped) Submit(ctx context.Context, sub registry.Submission) (registry.Submitted, error) {
	v := s.sight(ctx)
	if err := v.names(ctx, sub.Collection, sub.Requires); err != nil {
		return registry.Submitted{}, err
	}
	sub.IdempotencyKey = v.key(sub.IdempotencyKey)
	return s.all.Submit(ctx, sub)
}

// Prepare implements registry.Graphs.
func (s scoped) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	v := s.sight(ctx)
	for _, n := range g.Nodes {
		err := v.names(ctx, n.Submission.Collection, n.Submission.Requires)
		if n.Task != nil {
			err = v.names(ctx, n.Task.Collection, n.Task.Requires)
		}
		if err != nil {
			return registry.PreparedGraph{}, err
		}
	}
	if g.ID != "" {
		if err := v.graph(ctx, g.ID); err != nil {
			return registry.PreparedGraph{}, err
		}
	}
	g.IdempotencyKey = v.key(g.IdempotencyKey)
	return s.all.Prepare(ctx, g)
}

// Functions implements registry.Tasking. What functions take is no secret.
func (s scoped) Functions(ctx context.Context) ([]registry.Function, error) {
	return s.all.Functions(ctx)
}

// Steps implements registry.StepReader. The steps of a job belong to its collection.
func (s scoped) Steps(ctx context.Context, jobID string) ([]registry.StepRun, error) {
	v := s.sight(ctx)
	if _, err := v.item(ctx, jobID); err != nil {
		return nil, err
	}
	runs, err := s.all.Steps(ctx, jobID)
	for i := range runs {
		if err == nil {
			err = v.mask(ctx, &runs[i].Error)
		}
	}
	return runs, err
}

// Function implements registry.Tasking. What it takes is no secret.
func (s scoped) Function(ctx context.Context, name string) (registry.Function, error) {
	return s.all.Function(ctx, name)
}

// AddTask implements registry.Tasking.
func (s scoped) AddTask(ctx context.Context, t registry.NewTask) (registry.WorkItem, error) {
	v := s.sight(ctx)
	if err := v.names(ctx, t.Collection, t.Requires); err != nil {
		return registry.WorkItem{}, err
	}
	t.IdempotencyKey = v.key(t.IdempotencyKey)
	return s.all.AddTask(ctx, t)
}

// Schedules implements registry.Scheduling. Callers with limited sight see none.
func (s scoped) Schedules(ctx context.Context) ([]registry.Schedule, error) {
	if s.sight(ctx).limited() {
		return nil, nil
	}
	return s.all.Schedules(ctx)
}

// Schedule implements registry.Scheduling.
func (s scoped) Schedule(ctx context.Context, name string) (registry.Schedule, error) {
	if s.sight(ctx).limited() {
		return registry.Schedule{}, absent("schedule", name)
	}
	return s.all.Schedule(ctx, name)
}

// Firings implements registry.Scheduling.
func (s scoped) Firings(ctx context.Context, name, after string, limit int) (registry.Page[registry.Firing], error) {
	if s.sight(ctx).limited() {
		return registry.Page[registry.Firing]{}, absent("schedule", name)
	}
	return s.all.Firings(ctx, name, after, limit)
}

// RunSchedule implements registry.Scheduling.
func (s scoped) RunSchedule(ctx context.Context, r registry.ScheduleRun) (registry.Firing, error) {
	r.IdempotencyKey = s.sight(ctx).key(r.IdempotencyKey)
	return s.all.RunSchedule(ctx, r)
}

// Seal implements registry.Graphs.
func (s scoped) Seal(ctx context.Context, graphID, actor string) error {
	if err := s.sight(ctx).graph(ctx, graphID); err != nil {
		return err
	}
	return s.all.Seal(ctx, graphID, actor)
}

// RequestObject implements registry.Requesting for objects that the caller may see.
func (s scoped) RequestObject(ctx context.Context, r registry.ObjectRequest) (registry.WorkItem, error) {
	v := s.sight(ctx)
	if v.limited() {
		if _, err := v.object(ctx, r.Spec.ObjectID); err != nil {
			return registry.WorkItem{}, err
		}
	}
	r.IdempotencyKey = v.key(r.IdempotencyKey)
	return s.all.RequestObject(ctx, r)
}

// names returns an error unless the caller may see everything that a submission or task names.
func (v sight) names(ctx context.Context, collection string, requires []registry.Requirement) error {
	if !v.sees(collection) {
		return absent("collection", collection)
	}
	for _, r := range requires {
		if r.ItemID == "" || !v.limited() {
			continue
		}
		if _, err := v.item(ctx, r.ItemID); err != nil {
			return err
		}
	}
	return nil
}

// graph returns an error unless the caller may see everything in a graph, and so may add to it.
func (v sight) graph(ctx context.Context, id string) error {
	if !v.limited() {
		return nil
	}
	g, err := v.all.Graph(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return absent("graph", id)
	} else if err != nil {
		return err
	}
	theirs := func(it registry.WorkItem) bool { return !v.sees(it.Collection) }
	if len(g.Items) == 0 || slices.ContainsFunc(g.Items, theirs) {
		return absent("graph", id)
	}
	return nil
}

// key makes an idempotency key private to a depositor's token, so that no other depositor can find
// or use it. Callers who see everything share their keys.
func (v sight) key(key string) string {
	if key == "" || !v.limited() {
		return key
	}
	return v.token.ID + " " + key
}
