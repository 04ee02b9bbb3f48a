package workers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/mail/mailtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/workers/delivery"
)

// office is a rig that mails, and the server that it mails by.
type office struct {
	*rig
	server *mailtest.Server
	mails  *delivery.Mails
}

func newOffice(t *testing.T, rules registry.MailRules) *office {
	t.Helper()
	o := &office{rig: newRig(t, nil), server: mailtest.Start(t, mailtest.Options{Security: "starttls", User: "holdfast", Password: "secret"})}
	sender, err := mail.New(mail.Options{URL: o.server.URL(), From: "holdfast@example.org", RootCAs: o.server.Roots(), Timeout: 20 * time.Second})
	must(t, err)
	templates, err := mail.LoadTemplates("")
	must(t, err)
	o.mails = &delivery.Mails{
		Registry: o.registry, Sender: sender, Templates: templates, Link: "https://holdfast.example.org/",
	}
	o.deps.Mails, o.deps.Callbacks = o.mails, &delivery.Callbacks{Registry: o.registry}
	o.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Mail: &rules})
	return o
}

// manifest submits a batch of files, of which those whose name begins with "bad" have a wrong
// digest.
func (o *office) manifest(notify []string, names ...string) string {
	o.t.Helper()
	text := "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n"
	for i, name := range names {
		content := "what is in " + name
		digest := sha256Of(content)
		if strings.HasPrefix(name, "bad") {
			digest = sha256Of("something else")
		}
		text += fmt.Sprintf("%s | sha256 | %s | | | %s | | loc-%d | | Title of %s |\n", o.site.put(name, content), digest, name, i+1, name)
	}
	text += "#%eof\n"
	return o.submit(registry.Spec{Type: registry.SingleFileBatch, URL: o.site.put("batch.checkm", text), Filename: "bätch.checkm", Title: "<b>Größe</b>\r\nBcc: eve@example.org", Notify: notify})
}

// settle brings a batch's jobs to their ends and the batch through its report.
func (o *office) settle(batch string) {
	o.t.Helper()
	for _, j := range o.expand(batch) {
		o.end(j.ID)
	}
	o.close(batch)
}

// end brings a job to its end, whatever that is.
func (o *office) end(id string) {
	o.t.Helper()
	for range 40 {
		if o.item(id).Status.Settled() {
			return
		}
		_, _ = o.run(id)
		o.wait(2 * time.Hour)
	}
	o.t.Fatalf("job %s does not end: %+v", id, o.item(id))
}

func (o *office) close(batch string) {
	o.t.Helper()
	if v, err := o.run(batch); err != nil || !v.Status.Settled() {
		o.t.Fatalf("report: %+v, %v", v, err)
	}
}

// carriers are the items that have something to deliver still.
func (o *office) carriers() []string {
	o.t.Helper()
	page, err := o.registry.Items(o.t.Context(), registry.ItemQuery{Action: registry.DeliverMessage, Status: registry.Pending, Limit: 500})
	must(o.t, err)
	ids := make([]string, len(page.Rows))
	for i, it := range page.Rows {
		ids[len(ids)-1-i] = it.ID
	}
	return ids
}

// deliver tries everything once that is to be delivered, and returns what came.
func (o *office) deliver() []mailtest.Mail {
	o.t.Helper()
	for _, id := range o.carriers() {
		_, _ = o.run(id)
	}
	return o.server.Got()
}

func (o *office) told(batch string) map[string]registry.Delivery {
	o.t.Helper()
	all, err := o.registry.Deliveries(o.t.Context(), batch)
	must(o.t, err)
	out := map[string]registry.Delivery{}
	for _, d := range all {
		out[d.Kind+" "+d.Target+" "+string(d.State)] = d
	}
	return out
}

func has(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not say %q:\n%s", what, want, text)
		}
	}
}

// TestMailTruth: if a batch is deleted before the mail about its submission is sent, the mail is
// recorded as not sent.
func TestMailTruth(t *testing.T) {
	t.Parallel()
	for _, act := range []registry.Act{registry.ActCancel, registry.ActAbort, registry.ActDelete} {
		o := newOffice(t, registry.MailRules{To: []string{"curator@example.org"}, Queued: true})
		batch := o.manifest(nil, "a.txt")
		if act == registry.ActDelete {
			o.command(batch, registry.ActCancel, "")
		}
		o.command(batch, act, "")
		for _, m := range o.deliver() {
			if !strings.Contains(m.Subject, "STOPPED") {
				t.Errorf("%s: told %q", act, m.Subject)
			}
		}
		if d := o.told(batch)["mail-queued curator@example.org Pending"]; d.SentAt != nil || !strings.Contains(d.Error, "not sent: the batch is ") {
			t.Errorf("%s: %+v", act, d)
		}
	}
}

// TestMail_Stopped: the submitter of a batch that an admin ends for good learns who ended it, why,
// and the outcome of each job: preserved, past the point of no return, or ended. The mail waits
// until that is final.
func TestMail_Stopped(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{})
	batch := o.manifest([]string{"ann@example.org"}, "a.txt", "bad.txt", "c.txt", "d.txt")
	jobs := o.expand(batch)
	o.end(jobs[0].ID)
	o.end(jobs[1].ID)
	_, err := o.registry.Command(t.Context(), registry.Command{ItemID: batch, Act: registry.ActAbort, Actor: "eve", Reason: "the <wrong> folder", Confirmed: true})
	must(t, err)
	if sent := o.deliver(); len(sent) != 0 {
		t.Fatalf("told %q while jobs are still to be stopped", sent[0].Subject)
	}
	_, err = o.run(o.only(registry.Bulk).ID)
	must(t, err)
	o.wait(time.Minute)
	sent := o.deliver()
	if len(sent) != 1 || sent[0].To != "ann@example.org" || sent[0].Subject != "Holdfast STOPPED: batch <b>Größe</b> Bcc: eve@example.org (test) was aborted" {
		t.Fatalf("mails %+v", sent)
	}
	has(t, "text", sent[0].Text, "Why:        the <wrong> folder", "no further report", "should still be preserved", "Jobs:       4", "1 object is preserved and stays",
		"1 job had failed or was cancelled: it stays with the operators", "2 jobs are ended: nothing of them is preserved")
	has(t, "HTML", sent[0].HTML, "the &lt;wrong&gt; folder", "2 jobs are ended", "1 job had failed")
	if strings.Contains(sent[0].Text+sent[0].HTML, "by eve") {
		t.Errorf("it names the admin:\n%s", sent[0].Text)
	}
	if len(o.carriers()) != 0 {
		t.Errorf("%d mails are left", len(o.carriers()))
	}
}

// TestMail: a batch's people hear that it was taken in, what became of it with both lists attached,
// and what changed.
func TestMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{To: []string{"curator@example.org"}, Queued: true})
	batch := o.manifest([]string{"ann@example.org"}, "a.txt", "bad.txt", "ö.txt")
	queued := o.deliver()
	if len(queued) != 2 || queued[0].Subject != "Holdfast: batch <b>Größe</b> Bcc: eve@example.org (test) was received" || !queued[0].TLS || queued[0].User != "holdfast" {
		t.Fatalf("queued: %+v", queued)
	}
	o.settle(batch)
	report := o.deliver()
	if len(report) != 2 {
		t.Fatalf("%d reports", len(report))
	}
	m := report[1]
	if m.To != "ann@example.org" || m.Subject != "Holdfast FAILED: batch <b>Größe</b> Bcc: eve@example.org (test) - 2 completed, 1 failed" || m.Header.Get("Bcc") != "" {
		t.Errorf("to %s: %s", m.To, m.Subject)
	}
	has(t, "text", m.Text, batch, "Title:      <b>Größe</b> Bcc: eve@example.org", "Jobs:       3, 2 completed, 1 failed", "row 2, line 7: ", "(loc-2): Failed", "error: ", "fault of: the deposit",
		"fix: the producer compares the file with the original", "https://holdfast.example.org/items/"+batch, "Attached: failed.json, failed.csv, completed.json, completed.csv")
	has(t, "HTML", m.HTML, "&lt;b&gt;Größe&lt;/b&gt;")
	if strings.Contains(m.HTML, "<b>") {
		t.Error("a title is markup")
	}
	var list struct {
		Closing   int64                `json:"closing"`
		Failed    []registry.JobResult `json:"failed_jobs"`
		Completed []registry.JobResult `json:"completed_jobs"`
	}
	must(t, json.Unmarshal(m.Files["failed.json"], &list))
	if list.Closing != 1 || len(list.Failed) != 1 || list.Failed[0].Line != 7 || list.Failed[0].Row != 2 || list.Completed != nil {
		t.Errorf("failed.json: %+v", list)
	}
	must(t, json.Unmarshal(m.Files["completed.json"], &list))
	if len(list.Completed) != 2 || list.Completed[0].ARK == "" {
		t.Errorf("completed.json: %+v", list)
	}
	for name, lines := range map[string]int{"failed.csv": 2, "completed.csv": 3} {
		if got := strings.Count(string(m.Files[name]), "\n"); got != lines {
			t.Errorf("%s has %d lines, want %d: %s", name, got, lines, m.Files[name])
		}
	}
	// What is mended is told as a difference.
	bad := list.Completed[0].ItemID
	for _, j := range o.jobs(batch) {
		if j.Status == registry.Failed {
			bad = j.ID
		}
	}
	o.site.put("bad.txt", "something else")
	_, err := o.registry.Command(t.Context(), registry.Command{ItemID: bad, Act: registry.ActRequeue, From: registry.Estimate, Actor: "admin"})
	must(t, err)
	o.complete(bad)
	_, err = o.registry.Command(t.Context(), registry.Command{ItemID: batch, Act: registry.ActUpdateReport, Actor: "admin"})
	must(t, err)
	o.close(batch)
	update := o.deliver()
	if len(update) != 2 || update[0].Subject != "Holdfast UPDATED: batch <b>Größe</b> Bcc: eve@example.org (test) - 3 completed, 0 failed" {
		t.Fatalf("update: %+v", update)
	}
	has(t, "update", update[0].Text, "the changes since report 1", "All of it is preserved now", "Since report 1: 1 now completed, 0 still failed, 0 newly failed", "row 2, line 7: ")
	ids := map[string]bool{}
	for _, m := range append(append(queued, report...), update...) {
		ids[m.Header.Get("Message-Id")] = true
	}
	if len(ids) != 6 || len(o.carriers()) != 0 {
		t.Errorf("%d Message-IDs, want one a mail and address; %d items left", len(ids), len(o.carriers()))
	}
	for key, d := range o.told(batch) {
		if d.SentAt == nil || d.Tries != 1 || d.Error != "" || !ids["<"+d.ID+"@example.org>"] {
			t.Errorf("%s: %+v", key, d)
		}
	}
}

// TestMail_ServerDown: an unsent mail is visible and sent later. A refused address is recorded and
// not tried again, and delays no other mail.
func TestMail_ServerDown(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{})
	batch := o.manifest([]string{"ann@example.org", "nobody@example.org"}, "a.txt")
	o.settle(batch)
	o.server.Down()
	if got := o.deliver(); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	for _, d := range o.told(batch) {
		if d.SentAt != nil || d.Tries != 1 || !strings.Contains(d.Error, "connect to the mail server 127.0.0.1") || !strings.Contains(d.Text(), "not delivered, 1 try") {
			t.Errorf("while the server is down: %+v, %s", d, d.Text())
		}
	}
	a, err := o.registry.Attention(t.Context())
	must(t, err)
	if a.Undelivered != 2 {
		t.Errorf("%d undelivered, want 2", a.Undelivered)
	}
	o.server.Up()
	o.server.Refuse("nobody@example.org", 550)
	o.server.Refuse("ann@example.org", 451)
	o.wait(2 * time.Hour)
	o.deliver()
	o.server.Refuse("ann@example.org", 0)
	o.wait(2 * time.Hour)
	if got := o.deliver(); len(got) != 1 || got[0].To != "ann@example.org" {
		t.Fatalf("%+v", got)
	}
	told := o.told(batch)
	if d := told["mail-report ann@example.org Completed"]; d.SentAt == nil || d.Tries != 3 || d.Error != "" {
		t.Errorf("greylisted: %+v", d)
	}
	d := told["mail-report nobody@example.org Completed"]
	carrier := o.item(d.ItemID)
	if d.SentAt != nil || d.Tries != 2 || !strings.Contains(d.Error, "550") || carrier.Status != registry.Failed || carrier.ErrorClass != registry.SystemFault {
		t.Errorf("refused: %+v, item %s %s", d, carrier.Status, carrier.Note)
	}
	events, err := o.registry.Events(t.Context(), "", 0, 500)
	must(t, err)
	for _, e := range events {
		if e.ItemID != batch && e.ItemID != "test" && strings.Contains(string(e.Data), "nobody@") {
			t.Errorf("event %s of %s keeps the address: %s", e.Type, e.ItemID, e.Data)
		}
	}
	// A person asks for it once the address works.
	o.server.Refuse("nobody@example.org", 0)
	it, err := o.registry.Redeliver(t.Context(), registry.RedeliverRequest{ItemID: batch, Actor: "admin"})
	must(t, err)
	got := o.deliver()
	if it.Action != registry.DeliverMessage || len(got) != 2 || got[1].Header.Get("Message-Id") != "<"+d.ID+"@example.org>" {
		t.Errorf("told again: %d mails", len(got))
	}
}

// TestMail_NoServer: a worker without a mail server says what to set.
func TestMail_NoServer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{})
	o.mails.Sender = nil
	batch := o.manifest([]string{"ann@example.org"}, "a.txt")
	o.settle(batch)
	o.deliver()
	for _, d := range o.told(batch) {
		why, err := o.registry.Why(t.Context(), d.ItemID)
		must(t, err)
		if d.SentAt != nil || !strings.Contains(d.Error, "no mail server") || !strings.Contains(why.Sentence+why.Act, "HOLDFAST_SMTP_URL") {
			t.Errorf("%+v, why %+v", d, why)
		}
	}
}

// TestMail_Unread: a batch that cannot be read is reported, since it will never make a report.
func TestMail_Unread(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{To: []string{"ann@example.org"}, FailuresOnly: true})
	batch := o.submit(registry.Spec{Type: registry.SingleFileBatch, URL: o.site.put("batch.checkm", "no manifest"), Filename: "batch.checkm"})
	o.fails(batch)
	got := o.deliver()
	if len(got) != 1 || got[0].Subject != "Holdfast FAILED: batch batch.checkm (test) - it could not be read" {
		t.Fatalf("%+v", got)
	}
	has(t, "text", got[0].Text, batch, "Fault of:   the deposit", "Fix:        the producer")
}

// TestMail_Safe waits until every replica is verified and none is known to be damaged, however long
// that takes.
func TestMail_Safe(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{To: []string{"ann@example.org"}, Safe: true, FailuresOnly: true})
	batch := o.manifest(nil, "a.txt", "b.txt")
	o.settle(batch)
	watch := &damaged{Store: o.registry, missing: 1}
	o.mails.Registry = watch
	for _, missing := range []int64{1, 0} {
		watch.missing, watch.damaged = missing, 1-missing
		if got := o.deliver(); len(got) != 0 {
			t.Fatalf("with %d missing and %d damaged it says %q", watch.missing, watch.damaged, got[0].Subject)
		}
		id := o.carriers()[0]
		why, err := o.registry.Why(t.Context(), id)
		must(t, err)
		if it := o.item(id); it.Tries != 0 || why.Reason != registry.ReasonNotDue || !strings.Contains(why.Sentence, "2 objects") {
			t.Errorf("it waits with %d tries because %+v", it.Tries, why)
		}
		o.wait(time.Hour)
	}
	watch.damaged = 0
	object := o.stored(batch)[0]
	_, err := o.registry.AskDeletion(t.Context(), object, "the donor wants it back", "curator")
	must(t, err)
	if got := o.deliver(); len(got) != 0 || len(o.carriers()) != 1 {
		t.Fatalf("%d mails while somebody asks to delete an object, %d wait", len(got), len(o.carriers()))
	}
	_, err = o.registry.WithdrawDeletion(t.Context(), object, "curator")
	must(t, err)
	o.wait(time.Hour)
	got := o.deliver()
	if len(got) != 1 || got[0].Subject != "Holdfast: batch <b>Größe</b> Bcc: eve@example.org (test) is safe, you can delete your own copy" {
		t.Fatalf("%+v", got)
	}
	has(t, "text", got[0].Text, "Objects:    2, each in storage", "Read back:  all since 20")
	if d := o.told(batch)["mail-safe ann@example.org Completed"]; d.Tries != 1 || d.SentAt == nil {
		t.Errorf("%+v", d)
	}
	// Of what was deleted nobody is told that it is safe.
	again, err := o.registry.Submit(t.Context(), registry.Submission{Collection: collection, Force: true, Actor: "tester", Spec: o.specOf(batch)})
	must(t, err)
	o.settle(again.BatchID)
	watch.gone = 1
	if got := o.deliver(); len(got) != 0 || len(o.carriers()) != 0 {
		t.Errorf("%d mails of a deleted object, %d items wait", len(got), len(o.carriers()))
	}
	if d := o.told(again.BatchID)["mail-safe ann@example.org Completed"]; d.SentAt != nil || !strings.Contains(d.Error, "not sent: an object of the batch was deleted") {
		t.Errorf("%+v", d)
	}
	a, err := o.registry.Attention(t.Context())
	must(t, err)
	if a.Undelivered != 0 {
		t.Errorf("what is not to be sent any more counts as not delivered: %+v", a)
	}
}

// TestMail_SafePurged: a batch that is purged job by job is never reported as safe, since a fault
// may have gone with its jobs.
func TestMail_SafePurged(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{To: []string{"ann@example.org"}, Safe: true, FailuresOnly: true})
	batch := o.manifest(nil, "a.txt", "b.txt")
	o.settle(batch)
	o.mails.Registry = &damaged{Store: o.registry, purged: 1}
	if got := o.deliver(); len(got) != 0 || len(o.carriers()) != 0 {
		t.Fatalf("%d mails of what is left, %d wait", len(got), len(o.carriers()))
	}
	d := o.told(batch)["mail-safe ann@example.org Completed"]
	if d.SentAt != nil || !strings.Contains(d.Error, "not sent: report 1 says that 2 jobs completed, and there are 1 now") {
		t.Errorf("%+v", d)
	}
}

// stored are the objects that a batch's jobs made.
func (o *office) stored(batch string) (arks []string) {
	o.t.Helper()
	jobs, err := o.registry.ReportJobs(o.t.Context(), registry.ReportQuery{BatchID: batch, Closing: 1, List: registry.ListCompleted, Limit: 500})
	must(o.t, err)
	for _, j := range jobs {
		arks = append(arks, j.ARK)
	}
	return arks
}

func (o *office) specOf(id string) (s registry.Spec) {
	o.t.Helper()
	must(o.t, json.Unmarshal(o.item(id).Spec, &s))
	return s
}

// damaged is a Registry that knows of copies that are not as they should be.
type damaged struct {
	*sqlstore.Store
	missing, damaged, gone, purged int64
}

func (d *damaged) BatchSafety(ctx context.Context, id string) (registry.Safety, error) {
	s, err := d.Store.BatchSafety(ctx, id)
	s.Objects -= d.purged
	s.Missing, s.Damaged, s.Gone = s.Missing+d.missing, s.Damaged+d.damaged, s.Gone+d.gone
	return s, err
}

// TestMail_Digest: operators learn what waits for them, or that nothing does; a late digest is not
// sent.
func TestMail_Digest(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{})
	digest := func() []mailtest.Mail {
		t.Helper()
		o.wait(24 * time.Hour)
		n, err := o.registry.MakeDigest(t.Context(), registry.DigestRequest{To: []string{"ops@example.org"}, Every: 24 * time.Hour})
		must(t, err)
		if n != 1 {
			t.Fatalf("%d digests", n)
		}
		return o.deliver()
	}
	quiet := digest()
	if len(quiet) != 1 || quiet[0].To != "ops@example.org" || quiet[0].Subject != "Holdfast: nothing needs attention" {
		t.Fatalf("%+v", quiet)
	}
	o.settle(o.manifest(nil, "bad.txt", "good.txt"))
	waiting := o.manifest(nil, "c.txt")
	must(t, o.registry.AddHold(t.Context(), registry.Hold{Scope: registry.HoldBatch, Key: waiting, Reason: "ask the donor", Actor: "curator"}))
	must(t, o.registry.SetAccepting(t.Context(), registry.Accepting{On: false, Reason: "moving house", Actor: "admin"}))
	got := digest()
	if len(got) != 1 || !strings.HasPrefix(got[0].Subject, "Holdfast needs attention: 1 failed, 1 held") {
		t.Fatalf("%+v", got)
	}
	has(t, "digest", got[0].Text, "Failed: 1 item needs a person", "fault of the deposit", "Held: 1 batch waits", "batch "+waiting+" since", "by curator: ask the donor", "moving house",
		"Longest waiting: <b>Größe</b> Bcc: eve@example.org ("+waiting+"), Held since", "https://holdfast.example.org/")
	o.server.Down()
	if late := digest(); len(late) != 0 {
		t.Fatalf("%+v", late)
	}
	o.server.Up()
	got = digest() // by the Registry's clock: this machine's is days behind it
	if len(got) != 1 || len(o.carriers()) != 0 {
		t.Errorf("%d digests, %d left; want that of the last period only", len(got), len(o.carriers()))
	}
	page, err := o.registry.Items(t.Context(), registry.ItemQuery{Action: registry.DeliverMessage, Limit: 2})
	must(t, err)
	if d := o.told(page.Rows[1].ID)["mail-digest ops@example.org "]; d.SentAt != nil || !strings.Contains(d.Error, "not sent: the time of the next") {
		t.Errorf("the late one: %+v", d)
	}
}

// TestMail_Damage: operators learn at once of damage that cannot be mended: of which file, and what was
// found.
func TestMail_Damage(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{})
	ops := registry.DigestRequest{To: []string{"ops@example.org"}, Every: 1000 * 24 * time.Hour}
	o.settle(o.manifest(nil, "good.txt"))
	_, err := o.registry.MakeDigest(t.Context(), ops)
	must(t, err)
	o.deliver()
	o.wait(90 * 24 * time.Hour)
	_, err = o.registry.Recheck(t.Context(), registry.RecheckRequest{Every: 24 * time.Hour, Outstanding: 1, Keep: time.Hour})
	must(t, err)
	c, err := o.registry.Claim(t.Context(), registry.ClaimRequest{RequestID: "check", Stage: registry.Fixity, Worker: "w", Lease: time.Minute})
	must(t, err)
	must(t, o.registry.RecordCheck(t.Context(), c.Lease, registry.CheckRecord{Replicas: []registry.ReplicaCheck{{Storage: registry.DefaultStorage, Outcome: registry.CheckMissing}}}))
	_, err = o.registry.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no storage has it right"})
	must(t, err)
	n, err := o.registry.MakeDigest(t.Context(), ops)
	must(t, err)
	got := o.deliver()
	if n != 1 || len(got) != 1 || got[0].Subject != "Holdfast: 1 stored file is damaged and could not be mended" {
		t.Fatalf("%d made, %+v", n, got)
	}
	has(t, "digest", got[0].Text, c.Item.Name+": no storage has it right", "https://holdfast.example.org/items/"+c.Item.ID)
}

// mortalMail also dies at the report.
type mortalMail struct{ mortal }

func (d *mortalMail) CloseReport(ctx context.Context, l registry.Lease) (r registry.BatchReport, err error) {
	err = d.step(func() (err error) { r, err = d.ForWorkers.CloseReport(ctx, l); return err })
	return r, err
}

// TestR22_MailDiesAnywhere: wherever the process dies between the last job and the mail, each
// address gets the report, always with the same Message-ID. A recorded mail is not sent again.
func TestR22_MailDiesAnywhere(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 5; at++ {
		for _, after := range []bool{false, true} {
			o := newOffice(t, registry.MailRules{To: []string{"ann@example.org", "bob@example.org"}})
			batch := o.manifest(nil, "a.txt", "bad.txt")
			for _, j := range o.expand(batch) {
				o.end(j.ID)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			dead := &mortalMail{mortal{ForWorkers: o.registry, at: at, after: after, cancel: cancel}}
			o.mails.Registry, o.deps.Registry = dead, dead
			_, _ = o.runAs(ctx, batch)
			for _, id := range o.carriers() {
				if ctx.Err() == nil {
					_, _ = o.runAs(ctx, id)
				}
			}
			if dead.calls < at {
				t.Fatalf("it does not die at %d: %d calls", at, dead.calls)
			}
			cancel(nil)
			before := o.server.Got()
			o.mails.Registry, o.deps.Registry = o.registry, o.registry
			o.wait(2 * time.Hour)
			if !o.item(batch).Status.Settled() {
				o.close(batch)
			}
			mails := append(before, o.deliver()...)
			ids := map[string]int{}
			for _, m := range mails {
				ids[m.To+m.Header.Get("Message-Id")]++
			}
			if len(ids) != 2 || len(o.carriers()) != 0 {
				t.Errorf("dies at %d (after: %v): %d mails by %v, %d left", at, after, len(mails), ids, len(o.carriers()))
			}
			for _, d := range o.told(batch) {
				if d.SentAt == nil {
					t.Errorf("dies at %d (after: %v): %+v", at, after, d)
				}
			}
			// Call 3 is the first mail's note: before it nobody knows that it was sent, after it
			// everybody does.
			want := 2
			if !after && (at == 3 || at == 5) {
				want = 3
			}
			if len(mails) != want {
				t.Errorf("dies at %d (after: %v): %d mails, want %d", at, after, len(mails), want)
			}
		}
	}
}

// TestMail_Large: a report of very many jobs is mailed with compressed lists, and without those
// that are too large even so.
func TestMail_Large(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{To: []string{"ann@example.org"}})
	batch := o.submit(registry.Spec{Type: registry.SingleFileBatch, URL: "https://example.org/x.checkm", Filename: "x.checkm"})
	c, err := o.registry.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Hint: batch, Worker: "w", Lease: time.Hour, MaxAttempts: 3})
	must(t, err)
	const jobs = 5_000
	for row := 1; row <= jobs; row += 500 {
		var rows []registry.NewJob
		for i := row; i < row+500; i++ {
			rows = append(rows, registry.NewJob{
				Line: int64(i), Name: fmt.Sprintf("job %d", i), Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/"},
				Fault: fmt.Sprintf("row %d: %s", i, strings.Repeat("what is wrong here, ", 10)), Class: registry.ContentFault, Code: "digest",
			})
		}
		_, err := o.registry.AddJobs(t.Context(), c.Lease, rows)
		must(t, err)
	}
	_, err = o.registry.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, MaxAttempts: 3})
	must(t, err)
	o.close(batch)
	got := o.deliver()
	if len(got) != 1 {
		t.Fatalf("%d mails", len(got))
	}
	has(t, "text", got[0].Text, "and 4980 more", "Attached: failed.json.gz, failed.csv.gz")
	if n := strings.Count(got[0].Text, "fault of:"); n != 20 {
		t.Errorf("%d jobs are listed, want 20", n)
	}
	var list struct {
		Failed []registry.JobResult `json:"failed_jobs"`
	}
	must(t, json.Unmarshal(got[0].Files["failed.json.gz"], &list))
	if len(list.Failed) != jobs || strings.Count(string(got[0].Files["failed.csv.gz"]), "\n") != jobs+1 {
		t.Errorf("%d jobs in the list, want %d", len(list.Failed), jobs)
	}
}

// TestMail_Requeued: a failure that was requeued before the mail was sent is no longer reported.
func TestMail_Requeued(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{To: []string{"ann@example.org"}})
	batch := o.submit(registry.Spec{Type: registry.SingleFileBatch, URL: o.site.put("batch.checkm", "no manifest"), Filename: "batch.checkm"})
	o.fails(batch)
	_, err := o.registry.Command(t.Context(), registry.Command{ItemID: batch, Act: registry.ActRequeue, From: registry.Expand, Actor: "admin"})
	must(t, err)
	if got := o.deliver(); len(got) != 0 || len(o.carriers()) != 0 {
		t.Errorf("%d mails, %d left", len(got), len(o.carriers()))
	}
	o.fails(batch)
	if got := o.deliver(); len(got) != 1 {
		t.Errorf("%d mails of the second failure", len(got))
	}
}
