package deposit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Submit implements registry.Submitting.
func (s *Deposits) Submit(ctx context.Context, sub registry.Submission) (registry.Submitted, error) {
	if wrong := registry.RequirementProblems(sub.Requires); len(wrong) > 0 {
		return registry.Submitted{}, fmt.Errorf("submit to collection %s: %w", sub.Collection, wrong[0])
	}
	var r registry.Submitted
	defer metrics.Submit.Since(time.Now(), "deposit")
	err := s.write(ctx, func(t *tx) (err error) {
		r, err = t.submit(sub)
		return err
	})
	if err != nil {
		return registry.Submitted{}, fmt.Errorf("submit to collection %s: %w", sub.Collection, err)
	}
	return r, nil
}

func (t *tx) submit(sub registry.Submission) (registry.Submitted, error) {
	c, err := collection.Of(t.Tx, sub.Collection)
	if err != nil {
		return registry.Submitted{}, err
	}
	sub = withDefaultName(sub)
	if err := registry.CheckPriority(sub.Priority); err != nil {
		return registry.Submitted{}, err
	}
	content, err := t.fingerprint(sub)
	if err != nil {
		return registry.Submitted{}, err
	}
	args, err := withRequirements(content, sub.Requires)
	if err != nil {
		return registry.Submitted{}, err
	}
	if id, ok, err := t.Keyed(sub.IdempotencyKey, args); err != nil || ok {
		return registry.Submitted{BatchID: id, Duplicate: ok, NoMail: t.noMail(sub)}, err
	}
	if err := t.Accepting(); err != nil {
		return registry.Submitted{}, err
	}
	if id, ok, err := t.duplicateUpload(sub, c, content); err != nil {
		return registry.Submitted{}, err
	} else if ok {
		return registry.Submitted{BatchID: id, Duplicate: true, NoMail: t.noMail(sub)}, t.Answer(sub.IdempotencyKey, args, id, registry.ActSubmit, sub.Actor)
	}
	needs, err := t.NeedsOf(sub.Requires)
	if err != nil {
		return registry.Submitted{}, err
	}
	if err := t.out.CheckMail(sub, c); err != nil {
		return registry.Submitted{}, err
	}
	it := t.newBatch(sub, c, content)
	it.Blockers = work.OpenNeeds(needs)
	if err := t.insertBatch(it, sub.Limits); err != nil {
		return registry.Submitted{}, err
	}
	if err := t.Require(it.ID, needs); err != nil {
		return registry.Submitted{}, err
	}
	// It gets its place now, so that later submissions do not overtake it because it is expanded
	// late. A batch that waits for others gets none yet: they may need the same object.
	if it.Blockers == 0 {
		lines, err := catalog.LockKeys(t.Tx, it.Tenant, it.Spec)
		if err != nil {
			return registry.Submitted{}, err
		}
		if err := t.StandInLine(it.ID, t.Now, lines[0]); err != nil {
			return registry.Submitted{}, err
		}
	}
	if rules := it.Spec.Profile.Mail; rules != nil && rules.Queued {
		batch, err := t.Item(it.ID)
		if err != nil {
			return registry.Submitted{}, err
		}
		if err := t.out.MailQueued(batch, it.Spec); err != nil {
			return registry.Submitted{}, err
		}
	}
	return registry.Submitted{BatchID: it.ID, NoMail: t.noMail(sub)}, t.Answer(sub.IdempotencyKey, args, it.ID, registry.ActSubmit, sub.Actor)
}

// noMail says whether a submission names addresses although this Registry sends no mail.
func (t *tx) noMail(sub registry.Submission) bool {
	return len(sub.Spec.Notify) > 0 && !t.store.out.SendsMail()
}

// withDefaultName names an unnamed submission after its payload.
func withDefaultName(sub registry.Submission) registry.Submission {
	if sub.Name == "" {
		sub.Name = sub.Spec.Filename
	}
	return sub
}

// newBatch returns the item of a submission to a collection. content is its [tx.fingerprint].
func (t *tx) newBatch(sub registry.Submission, c registry.Collection, content string) work.NewItem {
	route, _ := registry.RouteOf(registry.Batch)
	sub.Spec.Profile, sub.Spec.ProfileVersion, sub.Spec.RouteVersion, sub.Spec.SubmittedAt = c.Profile, c.Version, route.Version, sqldb.FromMicros(t.Now)
	sub.Spec.Priority, sub.Spec.Force = cmp.Or(sub.Priority, c.Profile.Priority), sub.Force
	priority := registry.DefaultPriority
	if sub.Spec.Priority != nil {
		priority = *sub.Spec.Priority
	}
	return work.NewItem{
		ID: sqldb.NewID(), Tenant: c.Tenant, Collection: c.Mnemonic, Action: registry.Batch, Stage: route.First(),
		Status: registry.Pending, Priority: priority, Name: sub.Name, Spec: sub.Spec, Fingerprint: initialFingerprint(sub.Spec, content), Actor: sub.Actor,
		Storages: c.Profile.StorageNames(), Optional: c.Profile.Optional(),
	}
}

// insertBatch inserts the item of a batch. Its upload counts for the quota of the batch's
// collection from now on, and must keep the digest that it had when it arrived.
func (t *tx) insertBatch(batch work.NewItem, limits []registry.UploadLimit) error {
	if id, ok := registry.UploadID(batch.Spec.URL); ok {
		u, err := t.upload(id)
		if err != nil {
			return err
		}
		batch.Spec.Received = &u.Digest
		if err := t.assignCollection(id, batch.Collection, limits); err != nil {
			return err
		}
	}
	if err := t.Insert(batch); err != nil {
		return err
	}
	return t.correct(batch)
}

// withRequirements is a fingerprint of a submission and its requirements. Requirements are no
// content, but an idempotency key covers them.
func withRequirements(content string, requires []registry.Requirement) (string, error) {
	if len(requires) == 0 {
		return content, nil
	}
	return work.Fingerprint(struct {
		Content  string
		Requires []registry.Requirement
	}{content, requires})
}

// fingerprint is a digest of what a submission says. The bytes of an upload count, not its id. It
// leaves out what Submit fills in, and what does not describe the content.
func (t *tx) fingerprint(sub registry.Submission) (string, error) {
	spec := sub.Spec
	spec.Profile, spec.Priority, spec.RouteVersion, spec.SubmittedAt, spec.UserAgent = registry.Profile{}, nil, 0, time.Time{}, ""
	spec.ProfileVersion, spec.Force, spec.Received, spec.Trace = 0, false, nil, nil
	if id, ok := registry.UploadID(spec.URL); ok {
		u, err := t.upload(id)
		if err != nil {
			return "", err
		}
		var retired bool
		if err := t.Get(`SELECT retired_at IS NOT NULL FROM upload WHERE id = $1`, []any{id}, &retired); err != nil {
			return "", err
		} else if retired {
			return "", fmt.Errorf("upload %s was already removed: %w", id, registry.ErrNotFound)
		}
		spec.URL, spec.SizeBytes = "digest:"+u.Digest.Algorithm+":"+u.Digest.Value, u.SizeBytes
	}
	return work.Fingerprint(struct {
		Collection, Name string
		Spec             registry.Spec
		Priority         *int
	}{sub.Collection, sub.Name, spec, sub.Priority})
}
