package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Submit implements registry.Submitting.
func (s *Store) Submit(ctx context.Context, sub registry.Submission) (registry.Receipt, error) {
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
	c, err := t.collectionOf(sub.Collection)
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
	if id, ok, err := t.keyed(sub.IdempotencyKey, args); err != nil || ok {
		return registry.Receipt{BatchID: id, Duplicate: ok, NoMail: t.noMail(sub)}, err
	}
	if err := t.accepting(); err != nil {
		return registry.Receipt{}, err
	}
	if id, ok, err := t.sameUpload(sub, c, content); err != nil {
		return registry.Receipt{}, err
	} else if ok {
		return registry.Receipt{BatchID: id, Duplicate: true, NoMail: t.noMail(sub)}, t.answer(sub.IdempotencyKey, args, id, registry.ActSubmit, sub.Actor)
	}
	needs := make([]need, len(sub.Requires))
	for i, r := range sub.Requires {
		if needs[i], err = t.needOf(r); err != nil {
			return registry.Receipt{}, err
		}
	}
	if err := t.mayMail(sub, c); err != nil {
		return registry.Receipt{}, err
	}
	it := t.batch(sub, c, content)
	it.blockers = openNeeds(needs)
	if err := t.insert(it); err != nil {
		return registry.Receipt{}, err
	}
	if err := t.require(it.id, needs); err != nil {
		return registry.Receipt{}, err
	}
	// Who comes later must not overtake it because it is expanded late. One that waits for others has no place yet: they may
	// need the same object.
	if it.blockers == 0 {
		if err := t.standInLine(it.id, t.now, keysOf(it.spec)); err != nil {
			return registry.Receipt{}, err
		}
	}
	if rules := it.spec.Profile.Mail; rules != nil && rules.Queued {
		batch, err := t.item(it.id)
		if err != nil {
			return registry.Receipt{}, err
		}
		if err := t.mailQueued(batch, it.spec); err != nil {
			return registry.Receipt{}, err
		}
	}
	return registry.Receipt{BatchID: it.id, NoMail: t.noMail(sub)}, t.answer(sub.IdempotencyKey, args, it.id, registry.ActSubmit, sub.Actor)
}

// noMail says that a submission names addresses to which nobody can send.
func (t *tx) noMail(sub registry.Submission) bool { return len(sub.Spec.Notify) > 0 && !t.store.mails }

func (t *tx) collectionOf(mnemonic string) (registry.Collection, error) {
	c, err := scanCollection(t.row(selectCollection+`WHERE mnemonic = $1`, mnemonic))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("collection %q: %w", mnemonic, registry.ErrNotFound)
	}
	return c, err
}

// named gives a submission without a name that of its payload.
func named(sub registry.Submission) registry.Submission {
	if sub.Name == "" {
		sub.Name = sub.Spec.Filename
	}
	return sub
}

// batch is the item that a submission to a collection becomes. description is what [tx.description] says of it.
func (t *tx) batch(sub registry.Submission, c registry.Collection, description string) newItem {
	route, _ := registry.RouteOf(registry.Batch)
	sub.Spec.Profile, sub.Spec.ProfileVersion, sub.Spec.RouteVersion, sub.Spec.SubmittedAt = c.Profile, c.Version, route.Version, fromMicros(t.now)
	sub.Spec.Priority, sub.Spec.Force = cmp.Or(sub.Priority, c.Profile.Priority), sub.Force
	priority := registry.DefaultPriority
	if sub.Spec.Priority != nil {
		priority = *sub.Spec.Priority
	}
	return newItem{
		id: newID(), tenant: c.Tenant, collection: c.Mnemonic, action: registry.Batch, stage: route.First(),
		status: registry.Pending, priority: priority, name: sub.Name, spec: sub.Spec, fingerprint: identityOf(sub.Spec, description), actor: sub.Actor,
		storages: c.Profile.StorageNames(), optional: c.Profile.Optional(), limits: sub.Limits,
	}
}

// withRequirements is a digest of a submission and what it requires: when it may start says nothing of its content, but
// an idempotency key that comes with other requirements comes with other arguments.
func withRequirements(content string, requires []registry.Requirement) (string, error) {
	if len(requires) == 0 {
		return content, nil
	}
	return fingerprint(struct {
		Content  string
		Requires []registry.Requirement
	}{content, requires})
}

// description is a digest of all that a submission says. An upload stands for its bytes, not for its id; what Submit
// fills in and what says nothing of the content is left out.
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
		if err := t.get(`SELECT retired_at IS NOT NULL FROM upload WHERE id = $1`, []any{id}, &retired); err != nil {
			return "", err
		} else if retired {
			return "", fmt.Errorf("upload %s, which nobody needed any more: %w", id, registry.ErrNotFound)
		}
		spec.URL, spec.SizeBytes = "digest:"+u.Digest.Algorithm+":"+u.Digest.Value, u.SizeBytes
	}
	return fingerprint(struct {
		Collection, Name string
		Spec             registry.Spec
		Priority         *int
	}{sub.Collection, sub.Name, spec, sub.Priority})
}
