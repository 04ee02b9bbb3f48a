package deposit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Submit implements registry.Submitting.
func (s *Deposits) Submit(ctx context.Context, sub registry.Submission) (registry.Receipt, error) {
	if wrong := sub.Problems(); len(wrong) > 0 {
		return registry.Receipt{}, fmt.Errorf("submit to collection %s: %w", sub.Collection, wrong[0])
	}
	var r registry.Receipt
	err := s.write(ctx, func(t *tx) (err error) {
		r, err = t.submit(sub)
		return err
	})
	if err != nil {
		return registry.Receipt{}, fmt.Errorf("submit to collection %s: %w", sub.Collection, err)
	}
	return r, nil
}

func (t *tx) submit(sub registry.Submission) (registry.Receipt, error) {
	c, err := collection.Of(t.Tx, sub.Collection)
	if err != nil {
		return registry.Receipt{}, err
	}
	sub = named(sub)
	if err := registry.CheckPriority(sub.Priority); err != nil {
		return registry.Receipt{}, err
	}
	content, err := t.description(sub)
	if err != nil {
		return registry.Receipt{}, err
	}
	args, err := withRequirements(content, sub.Requires)
	if err != nil {
		return registry.Receipt{}, err
	}
	if id, ok, err := t.Keyed(sub.IdempotencyKey, args); err != nil || ok {
		return registry.Receipt{BatchID: id, Duplicate: ok, NoMail: t.noMail(sub)}, err
	}
	if err := t.Accepting(); err != nil {
		return registry.Receipt{}, err
	}
	if id, ok, err := t.sameUpload(sub, c, content); err != nil {
		return registry.Receipt{}, err
	} else if ok {
		return registry.Receipt{BatchID: id, Duplicate: true, NoMail: t.noMail(sub)}, t.Answer(sub.IdempotencyKey, args, id, registry.ActSubmit, sub.Actor)
	}
	needs := make([]work.Need, len(sub.Requires))
	for i, r := range sub.Requires {
		if needs[i], err = t.NeedOf(r); err != nil {
			return registry.Receipt{}, err
		}
	}
	if err := t.out.MayMail(sub, c); err != nil {
		return registry.Receipt{}, err
	}
	it := t.batch(sub, c, content)
	it.Blockers = work.OpenNeeds(needs)
	if err := t.take(it, sub.Limits); err != nil {
		return registry.Receipt{}, err
	}
	if err := t.Require(it.ID, needs); err != nil {
		return registry.Receipt{}, err
	}
	// Who comes later must not overtake it because it is expanded late. One that waits for others
	// has no place yet: they may need the same object.
	if it.Blockers == 0 {
		lines, err := catalog.LockKeys(t.Tx, it.Tenant, it.Spec)
		if err != nil {
			return registry.Receipt{}, err
		}
		if err := t.StandInLine(it.ID, t.Now, lines[0]); err != nil {
			return registry.Receipt{}, err
		}
	}
	if rules := it.Spec.Profile.Mail; rules != nil && rules.Queued {
		batch, err := t.Item(it.ID)
		if err != nil {
			return registry.Receipt{}, err
		}
		if err := t.out.MailQueued(batch, it.Spec); err != nil {
			return registry.Receipt{}, err
		}
	}
	return registry.Receipt{BatchID: it.ID, NoMail: t.noMail(sub)}, t.Answer(sub.IdempotencyKey, args, it.ID, registry.ActSubmit, sub.Actor)
}

// noMail says that a submission names addresses to which nobody can send.
func (t *tx) noMail(sub registry.Submission) bool {
	return len(sub.Spec.Notify) > 0 && !t.store.out.Mails()
}

// named gives a submission without a name that of its payload.
func named(sub registry.Submission) registry.Submission {
	if sub.Name == "" {
		sub.Name = sub.Spec.Filename
	}
	return sub
}

// batch is the item that a submission to a collection becomes. description is what [tx.description]
// says of it.
func (t *tx) batch(sub registry.Submission, c registry.Collection, description string) work.NewItem {
	route, _ := registry.RouteOf(registry.Batch)
	sub.Spec.Profile, sub.Spec.ProfileVersion, sub.Spec.RouteVersion, sub.Spec.SubmittedAt = c.Profile, c.Version, route.Version, sqldb.FromMicros(t.Now)
	sub.Spec.Priority, sub.Spec.Force = cmp.Or(sub.Priority, c.Profile.Priority), sub.Force
	priority := registry.DefaultPriority
	if sub.Spec.Priority != nil {
		priority = *sub.Spec.Priority
	}
	return work.NewItem{
		ID: sqldb.NewID(), Tenant: c.Tenant, Collection: c.Mnemonic, Action: registry.Batch, Stage: route.First(),
		Status: registry.Pending, Priority: priority, Name: sub.Name, Spec: sub.Spec, Fingerprint: identityOf(sub.Spec, description), Actor: sub.Actor,
		Storages: c.Profile.StorageNames(), Optional: c.Profile.Optional(),
	}
}

// take makes the item of a batch, to whose collection its upload belongs from now on.
func (t *tx) take(batch work.NewItem, limits []registry.UploadLimit) error {
	if id, ok := registry.UploadID(batch.Spec.URL); ok {
		if err := t.assign(id, batch.Collection, limits); err != nil {
			return err
		}
	}
	return t.Insert(batch)
}

// withRequirements is a digest of a submission and what it requires: when it may start says nothing
// of its content, but an idempotency key that comes with other requirements comes with other
// arguments.
func withRequirements(content string, requires []registry.Requirement) (string, error) {
	if len(requires) == 0 {
		return content, nil
	}
	return work.Fingerprint(struct {
		Content  string
		Requires []registry.Requirement
	}{content, requires})
}

// description is a digest of all that a submission says. An upload stands for its bytes, not for
// its id; what Submit fills in and what says nothing of the content is left out.
func (t *tx) description(sub registry.Submission) (string, error) {
	spec := sub.Spec
	spec.Profile, spec.Priority, spec.RouteVersion, spec.SubmittedAt, spec.UserAgent = registry.Profile{}, nil, 0, time.Time{}, ""
	spec.ProfileVersion, spec.Force = 0, false
	if id, ok := registry.UploadID(spec.URL); ok {
		u, err := t.upload(id)
		if err != nil {
			return "", err
		}
		var retired bool
		if err := t.Get(`SELECT retired_at IS NOT NULL FROM upload WHERE id = $1`, []any{id}, &retired); err != nil {
			return "", err
		} else if retired {
			return "", fmt.Errorf("upload %s, which nobody needed any more: %w", id, registry.ErrNotFound)
		}
		spec.URL, spec.SizeBytes = "digest:"+u.Digest.Algorithm+":"+u.Digest.Value, u.SizeBytes
	}
	return work.Fingerprint(struct {
		Collection, Name string
		Spec             registry.Spec
		Priority         *int
	}{sub.Collection, sub.Name, spec, sub.Priority})
}
