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

// mailing is a mail about a batch, to everybody who is told of it.
type mailing struct {
	registry.DeliverySpec
	to []string
}

// mail makes an item for each address that a batch is told of by mail, in the transaction that
// makes true what they tell. It returns the ids; none when nobody is to be told or nobody can be.
func (t *Tx) mail(batch registry.WorkItem, m mailing, actor string) (ids []string, err error) {
	if !t.store.mails {
		return nil, nil
	}
	for _, to := range m.to {
		spec := m.DeliverySpec
		spec.Subject, spec.To = batch.ID, to
		id, err := t.carry(batch, spec, actor)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// MayMail refuses a submission that names addresses to which mails may not go, and counts those of
// others: in a row of its token's day, so that neither other processes nor a restart nor a purge
// begin anew.
func (t *Tx) MayMail(sub registry.Submission, c registry.Collection) error {
	terms := sub.Mails
	if terms == nil {
		return nil
	}
	need, err := terms.Judge(c, sub.Spec.Notify)
	if err != nil || need == 0 {
		return err
	}
	const aDay = int64(24 * time.Hour / time.Microsecond)
	day, token := t.Now/aDay, sqldb.Clean(terms.Token)
	var used int64
	if err := t.Get(`SELECT COALESCE((SELECT addresses FROM mail_named WHERE token = $1 AND day = $2), 0)`, []any{token, day}, &used); err != nil {
		return fmt.Errorf("count the addresses that token %s has named: %w", terms.Token, err)
	}
	if terms.Daily > 0 && used+need > terms.Daily {
		return &registry.MailLimitError{Token: terms.Token, Daily: terms.Daily, Used: used, Need: need, Until: sqldb.FromMicros((day + 1) * aDay)}
	}
	if err := t.Do(`DELETE FROM mail_named WHERE day < $1`, day-1); err != nil {
		return fmt.Errorf("remove what was counted on earlier days: %w", err)
	}
	return t.Do(`INSERT INTO mail_named (token, day, addresses) VALUES ($1, $2, $3)
		ON CONFLICT (token, day) DO UPDATE SET addresses = mail_named.addresses + $3`, token, day, need)
}

// MailQueued has it told that a batch was taken in.
func (t *Tx) MailQueued(batch registry.WorkItem, spec registry.Spec) error {
	if spec.Profile.Mail == nil || !spec.Profile.Mail.Queued {
		return nil
	}
	_, err := t.mail(batch, mailing{registry.DeliverySpec{Mail: registry.MailQueued, State: registry.StatePending}, spec.MailAddresses()}, work.ActorRegistry)
	return err
}

// MailReport has a report told, in the transaction that stores it: from then on it is what is to be
// told, whatever becomes of the worker that made it, and a repeat finds it there. What failed is
// told in any case, and so is what came of that later.
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
	told := registry.DeliverySpec{Mail: registry.MailReport, State: registry.StateCompleted, Closing: batch.Closing}
	if failed > 0 {
		told.State = registry.StateFailed
	}
	if failed > 0 || since > 0 || !rules.FailuresOnly {
		if _, err := t.mail(batch, mailing{told, to}, work.ActorRegistry); err != nil {
			return err
		}
	}
	var gone bool
	if err := t.Get(`SELECT `+JobDeleted+` FROM work_item i WHERE i.id = $1`, []any{batch.ID}, &gone); err != nil {
		return fmt.Errorf("look for deleted jobs: %w", err)
	}
	if rules.Safe && failed == 0 && completed > 0 && !gone {
		told.Mail = registry.MailSafe
		_, err = t.mail(batch, mailing{told, to}, work.ActorRegistry)
	}
	return err
}

// mailFailed has it told, in the transaction in which a batch fails while it is expanded, that it
// did: it will not report.
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

// mailStopped has it told, in the transaction in which a batch is ended for good, that it was: see
// tellsEnd.
func (t *Tx) mailStopped(s work.Shift) error {
	to, err := t.TellsEnd(s.Item, s.Status)
	if err != nil || len(to) == 0 {
		return err
	}
	_, err = t.mail(s.Item, mailing{stoppedMail(s.Status, s.Note, s.Reason), to}, work.ActorRegistry)
	return err
}

// TellsEnd are the addresses that are told that a batch, which is as it was before, ends in a
// status; none when nobody is, or its people know already that nothing more comes: it was aborted
// before it was deleted, could not be expanded, or has reported.
func (t *Tx) TellsEnd(batch registry.WorkItem, status registry.Status) ([]string, error) {
	ended := status == registry.Aborted || status == registry.Deleted
	told := batch.Status == registry.Aborted || batch.Status == registry.Failed && batch.Stage == registry.Expand
	if !ended || told || batch.Action != registry.Batch || !t.store.mails {
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

// stoppedMail tells that a batch was ended, and the reason that was given. The note tells operators
// more: who did it, and what of which other collection it had waited for.
func stoppedMail(status registry.Status, note, reason string) registry.DeliverySpec {
	m := registry.DeliverySpec{Mail: registry.MailStopped, State: registry.StateAborted, Why: reason}
	if strings.HasPrefix(note, work.WaitedNote) {
		m.Why = "what it waited for was given up"
	}
	if status == registry.Deleted {
		m.State = registry.StateDeleted
	}
	return m
}

// endedFor is the reason that was given when a batch was ended for good.
func (t *Tx) endedFor(id string) (string, error) {
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

// mailAgain has a batch's last report, or why it failed or was ended, told once more, to whom it
// would be told now. It returns the id of the first of the items.
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
		return "", fmt.Errorf("look for reports: %w", err)
	case again.Closing == 0 && (batch.Status == registry.Aborted || batch.Status == registry.Deleted):
		reason, err := t.endedFor(batch.ID)
		if err != nil {
			return "", err
		}
		again = stoppedMail(batch.Status, batch.Note, reason)
	case again.Closing == 0 && (batch.Status != registry.Failed || batch.Stage != registry.Expand):
		return "", fmt.Errorf("%w: it is %s, and has no report yet", registry.ErrInvalid, batch.State)
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

// digestSetting is the row that says which period's digest was made last.
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
		// A period that is yet to come was made when the clock was wrong.
		there, err := t.Exec(`INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, '', $3, $4)
			ON CONFLICT (name) DO UPDATE SET value = $2, at = $4 WHERE CAST(setting.value AS BIGINT) < $5 OR CAST(setting.value AS BIGINT) >= $6`,
			digestSetting, strconv.FormatInt(begin.Unix(), 10), work.ActorRegistry, t.Now, begin.Unix(), end.Unix())
		if err != nil || there == 0 {
			return err
		}
		for _, to := range r.To {
			m := registry.DeliverySpec{Subject: sqldb.NewID(), Mail: registry.MailDigest, To: to, Period: begin.Unix(), Until: end.Unix()}
			if err := t.carryDigest(m); err != nil {
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

// Attention implements registry.Mailing.
func (s *Outbound) Attention(ctx context.Context) (a registry.Attention, err error) {
	const most, untold = 20, `WHERE d.sent_at IS NULL AND d.tries > 0 AND (` + itemGoesOn + ` OR ` + jobGoesOn + `)`
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*)`+fromDelivery+untold).Scan(&a.Undelivered); err != nil {
		return a, fmt.Errorf("count what was not delivered: %w", err)
	}
	a.Messages, err = sqldb.Collect(s.db.Read.Ask(ctx, selectDelivery+untold+` ORDER BY d.tried_at DESC, d.id`+sqldb.Limit(most)),
		"list what was not delivered", scanDelivery)
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
	if errors.Is(err, registry.ErrNotFound) { // it was purged just now
		return a, nil
	} else if err != nil {
		return a, err
	}
	it.Spec, it.Results = nil, nil
	a.Oldest = &it
	return a, nil
}

// JobDeleted is true for the batches i of whose jobs one was deleted: whatever is reported of the
// others, they do not have all that was submitted.
const JobDeleted = `EXISTS (SELECT 1 FROM work_item d WHERE d.parent_id = i.id AND d.status = 'deleted')`
