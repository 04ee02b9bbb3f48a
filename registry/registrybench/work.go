package registrybench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Works is what the measurement of claims and settles needs of a Registry.
type Works interface {
	registry.Submitting
	registry.Batching
	registry.Working
}

// Owner owns all that is made here, and the collection that Work and Preserve submit to.
const Owner = "ark:/99999/bench"

// Work takes jobs through all their stages, one call after another, and returns how long claims and
// settles took. It submits a batch to the collection, which must exist. The store may also give it
// other items that come first.
func Work(ctx context.Context, s Works, collection string, jobs int) (claims, settles Figure, err error) {
	batch, err := submitJobs(ctx, s, collection, jobs)
	if err != nil {
		return claims, settles, err
	}
	w := worker{Works: s, batch: batch, took: map[string]*times{}}
	for _, stage := range stages() {
		if err := w.run(ctx, stage, jobs); err != nil {
			return claims, settles, err
		}
	}
	return w.took["claim"].figure("claim"), w.took["settle"].figure("settle"), nil
}

// Preserves is what the measurement of objects needs of a Registry.
type Preserves interface {
	Works
	registry.Preserving
}

// Preserve takes jobs through all their stages, with several callers at once. With each job it
// makes an object of ten files. It returns how long the calls took.
func Preserve(ctx context.Context, s Preserves, collection string, jobs, callers int) ([]Figure, error) {
	batch, err := submitJobs(ctx, s, collection, jobs)
	if err != nil {
		return nil, err
	}
	workers := make([]worker, callers)
	for i := range workers {
		w := &workers[i]
		*w = worker{Works: s, batch: batch, took: map[string]*times{}}
		w.object = func(ctx context.Context, c registry.Claim) error { return w.preserve(ctx, s, c) }
	}
	for _, stage := range stages() {
		group, ctx := errgroup.WithContext(ctx)
		for i := range workers {
			group.Go(func() error {
				return workers[i].run(ctx, stage, (jobs+i)/callers)
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	var figures []Figure
	for _, name := range []string{"claim", "settle", "identify", "announce", "record files", "record version"} {
		var all times
		for _, w := range workers {
			if one := w.took[name]; one != nil {
				all.took, all.used = append(all.took, one.took...), all.used+one.used
			}
		}
		figures = append(figures, all.figure(name))
	}
	return figures, nil
}

// stages are the stages of a job.
func stages() (all []registry.Stage) {
	route, _ := registry.RouteOf(registry.Ingest)
	for _, step := range route.With(nil).Steps {
		all = append(all, step.Stage)
	}
	return all
}

// submitJobs submits a batch and adds its jobs.
func submitJobs(ctx context.Context, s Works, collection string, jobs int) (batch string, err error) {
	r, err := s.Submit(ctx, registry.Submission{Collection: collection, Actor: "bench", Spec: registry.Spec{
		Type: registry.SingleFileBatch, Mode: registry.Add, URL: "https://example.org/batch", Filename: "batch",
	}})
	if err != nil {
		return "", err
	}
	w := worker{Works: s, batch: r.BatchID, took: map[string]*times{}}
	c, err := w.claim(ctx, registry.Expand)
	if err != nil {
		return "", err
	}
	const most = 500 // jobs a call
	var rows []registry.NewJob
	for i := range jobs {
		rows = append(rows, registry.NewJob{Line: int64(1_000_000 + i), Name: fmt.Sprintf("job %d", i), Priority: 5, Spec: registry.Spec{Type: registry.FileType, Mode: registry.Add}})
		if len(rows) == most || i == jobs-1 {
			if _, err := s.AddJobs(ctx, c.Lease, rows); err != nil {
				return "", err
			}
			rows = rows[:0]
		}
	}
	return r.BatchID, w.settle(ctx, c.Lease)
}

// times are how long calls of one kind took, and their processor time in all.
type times struct {
	took []time.Duration
	used time.Duration
}

func (t *times) figure(name string) Figure {
	f := figure(name, t.took)
	f.CPU = t.used / time.Duration(len(t.took))
	return f
}

// worker makes calls one after another.
type worker struct {
	Works
	object func(context.Context, registry.Claim) error // makes an item's object; nil: it makes none
	batch  string
	took   map[string]*times // by kind of call
}

// time measures a call.
func (w *worker) time(name string, call func() error) error {
	begun, used := time.Now(), cpu()
	err := call()
	if w.took[name] == nil {
		w.took[name] = &times{}
	}
	t := w.took[name]
	t.took, t.used = append(t.took, time.Since(begun)), t.used+cpu()-used
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// run takes jobs through a stage.
func (w *worker) run(ctx context.Context, stage registry.Stage, jobs int) error {
	for range jobs {
		c, err := w.claim(ctx, stage)
		if err == nil && w.object != nil && stage == registry.Record {
			err = w.object(ctx, c)
		}
		if err == nil {
			err = w.settle(ctx, c.Lease)
		}
		if err != nil {
			return fmt.Errorf("at %s: %w", stage, err)
		}
	}
	return nil
}

func (w *worker) claim(ctx context.Context, stage registry.Stage) (c registry.Claim, err error) {
	r := registry.ClaimRequest{
		RequestID: sqldb.NewID(), Stage: stage, Hint: w.batch, Worker: "bench", Version: "bench",
		Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Hour,
	}
	err = w.time("claim", func() error {
		c, err = w.Claim(ctx, r)
		return err
	})
	return c, err
}

func (w *worker) settle(ctx context.Context, l registry.Lease) error {
	return w.time("settle", func() error {
		_, err := w.Settle(ctx, registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, MaxAttempts: 5})
		return err
	})
}

// preserve records an item's object of ten files, as the steps of a job do.
func (w *worker) preserve(ctx context.Context, s registry.Preserving, c registry.Claim) error {
	const files, size = 10, 1 << 10
	l, now := c.Lease, time.Now()
	id := uuid.New()
	local := fmt.Sprintf("local-%x", id[:])
	ark := fmt.Sprintf("ark:/99999/fk4%x", id[:])
	rows := make([]registry.File, files)
	for i := range rows {
		path := fmt.Sprintf("producer/file-%d.tif", i)
		rows[i] = registry.File{
			Path: path, Version: 1, ContentPath: "v1/content/" + path, SizeBytes: size, MIMEType: "image/tiff",
			Digests: map[string]string{"sha512": fmt.Sprintf("%0124x%04x", id[:], i)},
		}
	}
	calls := []struct {
		name string
		call func() error
	}{
		{"identify", func() error {
			_, err := s.Identify(ctx, l, registry.IdentifyRequest{Owner: Owner, LocalIDs: []string{local}, Proposed: ark})
			return err
		}},
		{"announce", func() error {
			_, err := s.Intend(ctx, l, registry.Intent{ObjectID: ark, Version: 1, Plan: []byte(`{}`)})
			return err
		}},
		{"record files", func() error { return s.RecordFiles(ctx, l, ark, 1, rows) }},
		{"record version", func() error {
			return s.RecordVersion(ctx, l, registry.VersionRecord{
				ObjectID: ark, Version: 1, Collection: c.Item.Collection, Owner: Owner,
				Title: fmt.Sprintf("Glass plates, box %x", id[:2]), Creator: "Somebody", Date: "2026", Files: files, SizeBytes: files * size,
				CreatedAt: now, Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: now}},
				Events: []registry.Premis{{
					ID: id.String(), ObjectID: ark, Version: 1, ItemID: c.Item.ID, Type: "ingestion", At: now, Agent: "Holdfast bench", Outcome: "success", Detail: "stored",
				}},
			})
		}},
	}
	for _, one := range calls {
		if err := w.time(one.name, one.call); err != nil {
			return err
		}
	}
	return nil
}
