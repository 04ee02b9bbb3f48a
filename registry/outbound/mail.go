package outbound

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// mailing is a mail about a batch and its recipients.
type mailing struct {
	registry.DeliverySpec
	to []string
}

// mail adds an item for each recipient of a mail about a batch, in the transaction that makes the
// mail true. It returns their ids: none if there are no recipients or this Registry makes no mails.
func (t *Tx) mail(batch registry.WorkItem, m mailing, actor string) (ids []string, err error) {
	if !t.store.mails {
		return nil, nil
	}
	for _, to := range m.to {
		spec := m.DeliverySpec
		spec.Subject, spec.To = batch.ID, to
		id, err := t.queueMessage(batch, spec, actor)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// CheckMail refuses a submission that names addresses to which it may not send. It counts addresses
// of other people against the token's daily limit. The count is a row of the token and day, so
// neither other processes nor a restart nor a purge reset it.
func (t *Tx) CheckMail(sub registry.Submission, c registry.Collection) error {
	terms := sub.Mails
	if terms == nil {
		return nil
	}
	need, err := terms.Judge(c, sub.Spec.Notify)
	if err != nil || need == 0 {
		return err
	}
	day, token := sqldb.Day(t.Now), sqldb.Clean(terms.Token)
	var used int64
	if err := t.Get(`SELECT COALESCE((SELECT addresses FROM mail_named WHERE token = $1 AND day = $2), 0)`, []any{token, day}, &used); err != nil {
		return fmt.Errorf("count the addresses named by token %s: %w", terms.Token, err)
	}
	if terms.Daily > 0 && used+need > terms.Daily {
		return &registry.MailLimitError{Token: terms.Token, Daily: terms.Daily, Used: used, Need: need, Until: sqldb.FromDay(day + 1)}
	}
	if err := t.Do(`DELETE FROM mail_named WHERE day < $1`, day-1); err != nil {
		return fmt.Errorf("delete the counts of earlier days: %w", err)
	}
	return t.Do(`INSERT INTO mail_named (token, day, addresses) VALUES ($1, $2, $3)
		ON CONFLICT (token, day) DO UPDATE SET addresses = mail_named.addresses + $3`, token, day, need)
}

// MailQueued queues the mail that a batch was accepted, if its profile wants one.
func (t *Tx) MailQueued(batch registry.WorkItem, spec registry.Spec) error {
	if spec.Profile.Mail == nil || !spec.Profile.Mail.Queued {
		return nil
	}
	_, err := t.mail(batch, mailing{registry.DeliverySpec{Mail: registry.MailQueued, State: registry.StatePending}, spec.MailAddresses()}, work.ActorRegistry)
	return err
}

// MailReport queues the mails about a report, in the transaction that stores the report. So a
// repeat after a kill queues no second mail. Failures are always mailed, and so is what became of
// them in later reports.
func (t *Tx) MailReport(batch registry.WorkItem) error {
	spec, err := work.SpecOf(batch)
	if err != nil {
		return err
	}
	to, rules := spec.MailAddresses(), spec.Profile.Mail
	if rules == nil {
		rules = &registry.MailRules{}
	}
	if len(to) == 0 || !t.store.mails {
		return nil
	}
	var completed, failed, since int64
	err = t.Get(`SELECT completed, failed, since FROM report WHERE batch_id = $1 AND closing = $2`, []any{batch.ID, batch.Closing}, &completed, &failed, &since)
	if err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	message := registry.DeliverySpec{Mail: registry.MailReport, State: registry.StateCompleted, Closing: batch.Closing}
	if failed > 0 {
		message.State = registry.StateFailed
	}
	if failed > 0 || since > 0 || !rules.FailuresOnly {
		if _, err := t.mail(batch, mailing{message, to}, work.ActorRegistry); err != nil {
			return err
		}
	}
	var gone bool
	if err := t.Get(`SELECT `+JobDeleted+` FROM work_item i WHERE i.id = $1`, []any{batch.ID}, &gone); err != nil {
		return fmt.Errorf("look up deleted jobs: %w", err)
	}
	if rules.Safe && failed == 0 && completed > 0 && !gone {
		message.Mail = registry.MailSafe
		_, err = t.mail(batch, mailing{message, to}, work.ActorRegistry)
	}
	return err
}

// mailFailed queues the mail that a batch failed at expand, in the transaction that fails it. Such
// a batch gets no report.
func (t *Tx) mailFailed(s work.Shift) error {
	if s.Status != registry.Failed || s.Item.Action != registry.Batch || s.Stage != registry.Expand || !t.store.mails {
		return nil
	}
	batch, err := t.Item(s.Item.ID)
	if err != nil {
		return err
	}
	spec, err := work.SpecOf(batch)
	if err != nil {
		return err
	}
	_, err = t.mail(batch, mailing{failedMail(batch), spec.MailAddresses()}, work.ActorRegistry)
	return err
}

// mailStopped queues the mail that a batch was aborted or deleted, in the transaction that ends it,
// to the [Tx.EndRecipients].
func (t *Tx) mailStopped(s work.Shift) error {
	to, err := t.EndRecipients(s.Item, s.Status)
	if err != nil || len(to) == 0 {
		return err
	}
	_, err = t.mail(s.Item, mailing{stoppedMail(s.Status, s.Note, s.Reason), to}, work.ActorRegistry)
	return err
}

// EndRecipients returns the addresses to mail when a batch ends with a status. batch is as it was
// before. There are none if the recipients already know that nothing more comes: the batch was
// aborted before, failed at expand, or has a report.
func (t *Tx) EndRecipients(batch registry.WorkItem, status registry.Status) ([]string, error) {
	ended := status == registry.Aborted || status == registry.Deleted
	known := batch.Status == registry.Aborted || batch.Status == registry.Failed && batch.Stage == registry.Expand
	if !ended || known || batch.Action != registry.Batch || !t.store.mails {
		return nil, nil
	}
	if reported, err := t.HasReport(batch.ID); err != nil || reported {
		return nil, err
	}
	spec, err := work.SpecOf(batch)
	return spec.MailAddresses(), err
}

// HasReport says whether a batch has a report.
func (t *Tx) HasReport(batchID string) (yes bool, err error) {
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM report WHERE batch_id = $1)`, []any{batchID}, &yes)
	return yes, err
}

// stoppedMail is the mail that a batch was ended, with the reason given. It leaves out the note,
// which tells operators who did it and which other collection the batch waited for.
func stoppedMail(status registry.Status, note, reason string) registry.DeliverySpec {
	m := registry.DeliverySpec{Mail: registry.MailStopped, State: registry.StateAborted, Why: reason}
	if strings.HasPrefix(note, work.WaitedNote) {
		m.Why = "an item that it waited for was given up"
	}
	if status == registry.Deleted {
		m.State = registry.StateDeleted
	}
	return m
}

// endReason returns the reason that was given when a batch was aborted or deleted.
func (t *Tx) endReason(id string) (string, error) {
	var data string
	err := t.Get(`SELECT data FROM event WHERE item_id = $1 AND type IN ($2, $3) ORDER BY feed_seq DESC LIMIT 1`,
		[]any{id, string(registry.ActAbort), string(registry.ActDelete)}, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("look up why item %s was ended: %w", id, err)
	}
	var ended work.Moved
	if err := json.Unmarshal([]byte(data), &ended); err != nil {
		return "", fmt.Errorf("decode why item %s was ended: %w", id, err)
	}
	return ended.Reason, nil
}

func failedMail(batch registry.WorkItem) registry.DeliverySpec {
	return registry.DeliverySpec{Mail: registry.MailFailed, State: registry.StateFailed, Times: batch.RetryCount}
}

// mailAgain queues another mail with a batch's last report, or with why it failed or was ended, to
// the present recipients. It returns the id of the first item.
func (t *Tx) mailAgain(batch registry.WorkItem, profile registry.Profile, r registry.RedeliverRequest) (string, error) {
	spec, err := work.SpecOf(batch)
	if err != nil {
		return "", err
	}
	spec.Profile.Mail = profile.Mail
	again := registry.DeliverySpec{Mail: registry.MailReport, State: registry.StateCompleted}
	var failed int64
	err = t.Get(`SELECT closing, failed FROM report WHERE batch_id = $1 ORDER BY closing DESC LIMIT 1`, []any{batch.ID}, &again.Closing, &failed)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("look up the last report: %w", err)
	case again.Closing == 0 && (batch.Status == registry.Aborted || batch.Status == registry.Deleted):
		reason, err := t.endReason(batch.ID)
		if err != nil {
			return "", err
		}
		again = stoppedMail(batch.Status, batch.Note, reason)
	case again.Closing == 0 && (batch.Status != registry.Failed || batch.Stage != registry.Expand):
		return "", fmt.Errorf("%w: it is %v, and has no report yet", registry.ErrInvalid, batch.State)
	case again.Closing == 0:
		again = failedMail(batch)
	case failed > 0: // and there is a report
		again.State = registry.StateFailed
	}
	again.Again, again.Reason = true, r.Reason
	ids, err := t.mail(batch, mailing{again, spec.MailAddresses()}, r.Actor)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", registry.ErrNoMail
	}
	return ids[0], nil
}

// digestSetting is the setting that names the period of the last digest.
const digestSetting = "mail-digest"

// MakeDigest implements registry.Notifying.
func (s *Outbound) MakeDigest(ctx context.Context, r registry.DigestRequest) (made int, err error) {
	if err := r.Check(); err != nil {
		return 0, fmt.Errorf("make a digest: %w", err)
	}
	if len(r.To) == 0 || !s.mails {
		return 0, nil
	}
	err = s.write(ctx, func(t *Tx) error {
		made = 0
		begin, end := r.Period(sqldb.FromMicros(t.Now))
		// A stored period in the future comes from a wrong clock, and does not count.
		changed, err := t.Exec(`INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, '', $3, $4)
			ON CONFLICT (name) DO UPDATE SET value = $2, at = $4 WHERE CAST(setting.value AS BIGINT) < $5 OR CAST(setting.value AS BIGINT) >= $6`,
			digestSetting, strconv.FormatInt(begin.Unix(), 10), work.ActorRegistry, t.Now, begin.Unix(), end.Unix())
		if err != nil {
			return err
		}
		damaged, err := t.newDamage()
		if err != nil {
			return err
		}
		switch {
		case changed > 0:
		case damaged: // this cannot wait for the next period
			begin, end = sqldb.FromMicros(t.Now), sqldb.FromMicros(t.Now).Add(r.Every)
		default:
			return nil
		}
		for _, to := range r.To {
			m := registry.DeliverySpec{Subject: sqldb.NewID(), Mail: registry.MailDigest, To: to, Period: begin.Unix(), Until: end.Unix()}
			if err := t.queueDigest(m); err != nil {
				return err
			}
			made++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("make a digest: %w", err)
	}
	return made, nil
}

// damageSetting is the setting whose time is that of the last digest that told of damage.
const damageSetting = "mail-damage"

// damageEvery is the least time between two digests that are made because of damage.
const damageEvery = time.Hour

// newDamage reports whether a check has failed to mend a damaged file since it last said so, at most
// once in damageEvery.
func (t *Tx) newDamage() (bool, error) {
	changed, err := t.Exec(`INSERT INTO setting (name, value, reason, actor, at)
		SELECT CAST($1 AS TEXT), '', '', CAST($2 AS TEXT), CAST($3 AS BIGINT) WHERE EXISTS (SELECT 1 FROM stored_file s JOIN work_item i ON i.id = s.item_id
			WHERE s.damaged_at IS NOT NULL AND s.item_id <> '' AND i.status = 'failed'
			AND i.updated_at > COALESCE((SELECT CASE WHEN g.at > $3 THEN 0 ELSE g.at END FROM setting g WHERE g.name = $1), 0))
		ON CONFLICT (name) DO UPDATE SET at = $3 WHERE setting.at <= $4 OR setting.at > $3`,
		damageSetting, work.ActorRegistry, t.Now, t.Now-damageEvery.Microseconds())
	if err != nil {
		return false, fmt.Errorf("look for new damage: %w", err)
	}
	return changed > 0, nil
}

// undelivered selects the messages that were tried and are not delivered.
const undelivered = `WHERE d.sent_at IS NULL AND d.tries > 0 AND (` + itemOpen + ` OR ` + jobOpen + `)`

// OpenDeliveries counts the undelivered messages, up to a bound, by whether they are tried again.
func (s *Outbound) OpenDeliveries(ctx context.Context) (o registry.OpenDeliveries, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT COALESCE(SUM(1 - failed), 0), COALESCE(SUM(failed), 0) FROM (
		SELECT CASE WHEN COALESCE(c.status, (SELECT i.status FROM work_item i WHERE i.id = d.subject)) = 'failed' THEN 1 ELSE 0 END AS failed`+
		fromDelivery+undelivered+sqldb.Limit(registry.MostFailedCounted)+`) bounded`).Scan(&o.Retrying, &o.Failed)
	if err != nil {
		return o, fmt.Errorf("count undelivered messages: %w", err)
	}
	return o, nil
}

// Attention implements registry.Mailing.
func (s *Outbound) Attention(ctx context.Context) (a registry.Attention, err error) {
	const most = 20
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*)`+fromDelivery+undelivered).Scan(&a.Undelivered); err != nil {
		return a, fmt.Errorf("count undelivered messages: %w", err)
	}
	a.Messages, err = sqldb.Collect(s.db.Read.Ask(ctx, selectDelivery+undelivered+` ORDER BY d.tried_at DESC, d.id`+sqldb.Limit(most)),
		"list undelivered messages", scanDelivery)
	if err != nil {
		return a, err
	}
	var id string
	err = s.db.Read.QueryRowContext(ctx, `SELECT COALESCE((SELECT id FROM work_item WHERE status = 'pending' AND action IN ('batch', 'ingest')
		ORDER BY created_at, seq LIMIT 1), '')`).Scan(&id)
	if err != nil || id == "" {
		return a, err
	}
	it, err := s.work.Item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) { // purged meanwhile
		return a, nil
	} else if err != nil {
		return a, err
	}
	it.Name, it.Spec, it.Results = it.Heading(), nil, nil // a mail needs no more of them
	a.Oldest = &it
	return a, nil
}

// JobDeleted is true for a batch i with a deleted job. Such a batch never has all that was
// submitted, whatever its report says.
const JobDeleted = `EXISTS (SELECT 1 FROM work_item d WHERE d.parent_id = i.id AND d.status = 'deleted')`
