package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/registry"
)

// maxListed is how many causes, holds and deletions a digest lists.
const maxListed = 10

// SendDigest sends the operators' digest of the present state. It does not send a late one: the
// next contains more.
func (w *Mails) SendDigest(ctx context.Context, item *base.Item, m registry.DeliverySpec) error {
	return w.send(ctx, item, m, func() (mail.Kind, any, []mail.Attachment, error) {
		if !m.Again && item.Now().After(time.Unix(m.Until, 0)) {
			return "", nil, nil, unsent("the time of the next digest has come")
		}
		data, err := w.digest(ctx, item.Now())
		return mail.KindDigest, data, nil, err
	})
}

func (w *Mails) digest(ctx context.Context, at time.Time) (d mail.Digest, err error) {
	d = mail.Digest{At: at, Link: w.Link}
	for _, part := range []func(context.Context, *mail.Digest) error{w.failures, w.held, w.deletions, w.queue, w.damages, w.attention} {
		if err := part(ctx, &d); err != nil {
			return d, err
		}
	}
	d.Needs = d.Failed+d.Held+int64(len(d.Deletes))+d.Damaged+d.Untold > 0 || d.Accept != nil
	return d, nil
}

// failures adds the failed items, except batches whose jobs are among them.
func (w *Mails) failures(ctx context.Context, d *mail.Digest) error {
	q := registry.ItemQuery{Limit: 500}
	for {
		page, err := w.Registry.Failures(ctx, q)
		if err != nil {
			return err
		}
		for _, g := range page.Rows {
			if g.Class == registry.JobsFault {
				continue
			}
			d.Failed += g.Count
			if len(d.Failures) == maxListed {
				d.More++
				continue
			}
			d.Failures = append(d.Failures, mail.Cause{Items: g.Count, Stage: string(g.Stage), Fault: faultOf(g.Class), Error: g.Note, Fix: g.Act})
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// held adds the number of held batches, and the holds.
func (w *Mails) held(ctx context.Context, d *mail.Digest) error {
	match := registry.Query{Terms: []registry.Term{{Field: "state", Value: "held"}}}
	counts, err := w.Registry.CountItems(ctx, registry.ItemQuery{Action: registry.Batch, Match: match})
	if err != nil {
		return err
	}
	for _, n := range counts {
		d.Held += n
	}
	holds, err := w.Registry.Holds(ctx)
	for _, h := range holds[:min(len(holds), maxListed)] {
		on := string(h.Scope)
		if h.Key != "" {
			on += " " + h.Key
		}
		d.Holds = append(d.Holds, mail.Hold{On: on, Reason: h.Reason, Actor: h.Actor, Since: h.CreatedAt})
	}
	return err
}

func (w *Mails) deletions(ctx context.Context, d *mail.Digest) error {
	page, err := w.Registry.Deletions(ctx, registry.DeletionQuery{Limit: maxListed})
	for _, del := range page.Rows {
		d.Deletes = append(d.Deletes, mail.Deletion{Object: del.ObjectID, Reason: del.Reason, Actor: del.AskedBy, Since: del.AskedAt})
	}
	return err
}

func (w *Mails) queue(ctx context.Context, d *mail.Digest) error {
	q, err := w.Registry.QueueStatus(ctx)
	d.Damaged = q.Damaged
	if a := q.Accepting; err == nil && !a.On {
		d.Accept = &mail.NoAccept{Reason: a.Reason, Actor: a.Actor, Since: a.Since}
	}
	return err
}

// damages adds the checks of damaged files that failed: the newest first.
func (w *Mails) damages(ctx context.Context, d *mail.Digest) error {
	if d.Damaged == 0 {
		return nil
	}
	failed := registry.Query{Terms: []registry.Term{{Field: "state", Value: "failed"}}}
	page, err := w.Registry.Items(ctx, registry.ItemQuery{Action: registry.FixityCheck, Match: failed, Limit: maxListed})
	for _, it := range page.Rows {
		d.Damages = append(d.Damages, mail.Damage{Check: it.Name, Error: it.Note, Link: w.link(it.ID)})
	}
	return err
}

func (w *Mails) attention(ctx context.Context, d *mail.Digest) error {
	a, err := w.Registry.Attention(ctx)
	if err != nil {
		return err
	}
	d.Untold = a.Undelivered
	for _, m := range a.Messages[:min(len(a.Messages), maxListed)] {
		carrier, err := w.Registry.Item(ctx, m.ItemID)
		d.Messages = append(d.Messages, mail.Untold{
			To: m.Target, About: m.Subject, Tries: m.Tries, Error: m.Error, Over: m.ItemID != "" && (err != nil || carrier.Status.Settled()),
		})
	}
	if o := a.Oldest; o != nil {
		d.Waiting = &mail.Waiting{ID: o.ID, Name: o.Heading(), State: string(o.State), Since: o.CreatedAt, Link: w.link(o.ID)}
		if why, err := w.Registry.Why(ctx, o.ID); err == nil {
			d.Waiting.Why = why.Sentence
		} else {
			d.Waiting.Why = fmt.Sprintf("the reason is unknown: %v", err)
		}
	}
	return nil
}
