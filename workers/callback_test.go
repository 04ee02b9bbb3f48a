package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/workers/delivery"
	"github.com/holdfast/holdfast/workers/payload"
)

// post is a message as a receiver has it.
type post struct {
	path   string
	header http.Header
	body   map[string]any
	raw    string
}

// receiver is a rig whose jobs are told of, and who is told.
type receiver struct {
	*rig
	url  string
	keys *secret.Keys

	mu     sync.Mutex
	posts  []post
	answer func(http.ResponseWriter)
}

func newReceiver(t *testing.T, change func(*registry.Callback)) *receiver {
	t.Helper()
	keys, err := secret.Parse(sealText)
	must(t, err)
	r := &receiver{rig: newRig(t, nil), keys: keys, answer: func(http.ResponseWriter) {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		raw, _ := io.ReadAll(q.Body)
		p := post{path: q.URL.Path, header: q.Header, raw: string(raw)}
		_ = json.Unmarshal(raw, &p.body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.posts = append(r.posts, p)
		r.answer(w)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	client := callback.New(callback.Options{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	t.Cleanup(client.Close)
	r.deps.Callbacks = &delivery.Callbacks{Registry: r.registry, HTTP: client, Wallet: (&payload.Sources{Registry: r.registry, Keys: keys}).Wallet, Now: time.Now}
	c := &registry.Callback{URL: r.url + "/mc/{job}"}
	if change != nil {
		change(c)
	}
	r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Callback: c})
	return r
}

// answers has the receiver answer so from now on.
func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(w http.ResponseWriter) { w.WriteHeader(status) }
}

// got returns what was told since the last call.
func (r *receiver) got() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	posts := r.posts
	r.posts = nil
	return posts
}

func (r *receiver) fileJob(name string) string {
	r.t.Helper()
	return r.job(registry.Spec{
		Type: registry.FileType, URL: r.site.put(name, "what was sent"), Filename: name, LocalIDs: []string{"loc-1", "loc-2"}, Title: "A title",
		Creator: "Somebody", Date: "2026", Digest: &registry.Digest{Algorithm: "sha256", Value: sha256Of("what was sent")},
	})
}

func (r *receiver) told(id string) registry.Delivery {
	r.t.Helper()
	all, err := r.registry.Deliveries(r.t.Context(), id)
	must(r.t, err)
	if len(all) != 1 {
		r.t.Fatalf("deliveries %+v, want one", all)
	}
	return all[0]
}

// sign gives the collection a signing key.
func (r *receiver) sign(name, text string) callback.Key {
	r.t.Helper()
	c := registry.Credential{Collection: collection, Origin: "signing:" + name, Kind: registry.CredentialSigning}
	var err error
	c.Sealed, err = r.keys.Seal(text, c.About()...)
	must(r.t, err)
	must(r.t, r.registry.PutCredential(r.t.Context(), c))
	key, err := callback.ParseKey(text)
	must(r.t, err)
	return key
}

// TestCallback: a receiver gets one callback about a completed job, with Merritt's fields and
// Holdfast's, signed by the two newest keys.
func TestCallback(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	oldest := r.sign("a", "whsec_b2xkZXN0IGtleSBvZiBhIHJvdGF0aW9uIQ==")
	r.wait(time.Hour)
	older := r.sign("b", "whsec_b2xkZXIga2V5IG9mIGEgcm90YXRpb24hIQ==")
	r.wait(time.Hour)
	newer := r.sign("c", "whsec_bmV3ZXIga2V5IG9mIGEgcm90YXRpb24hIQ==")
	id := r.fileJob("a.txt")
	o := r.complete(id)
	posts := r.got()
	if len(posts) != 1 {
		t.Fatalf("%d messages, want one: %v", len(posts), posts)
	}
	p := posts[0]
	if p.path != "/mc/"+id || p.header.Get("Idempotency-Key") != "msg_"+id+"_completed" {
		t.Errorf("told at %s by %s", p.path, p.header.Get("Idempotency-Key"))
	}
	for name, want := range map[string]any{
		"jobID": id, "packageName": "a.txt", "jobStatus": "COMPLETED", "primaryID": o.ID, "localID": "loc-1; loc-2", "versionID": 1.0,
		"hashAlgorithm": "sha256", "hashValue": sha256Of("what was sent"), "objectCreator": "Somebody", "objectTitle": "A title",
		"objectDate": "2026", "persistentURL": "https://n2t.net/" + o.ID, "item_id": id, "state": "Completed", "object_id": o.ID, "version": 1.0,
		"collection": collection, "files": float64(o.Files), "size_bytes": float64(o.SizeBytes), "delivery_id": "msg_" + id + "_completed",
		"batch_id": r.item(id).ParentID,
	} {
		if p.body[name] != want {
			t.Errorf("%s is %v, want %v", name, p.body[name], want)
		}
	}
	for _, k := range []callback.Key{older, newer} {
		if _, err := callback.Verify(p.header.Get, []byte(p.raw), time.Now(), time.Minute, k); err != nil {
			t.Error(err)
		}
	}
	if _, err := callback.Verify(p.header.Get, []byte(p.raw), time.Now(), time.Minute, oldest); !errors.Is(err, callback.ErrSignature) {
		t.Errorf("a third key signs: %v", err)
	}
	if d := r.told(id); d.SentAt == nil || d.Tries != 1 || d.Status != 200 || d.ItemID != "" {
		t.Errorf("delivery %+v", d)
	}
	r.nothingStaged(id)
}

// TestCallback_Fails: if a receiver does not answer, the job fails when its tries are used up, but
// its object is preserved. Once the receiver answers, the job can be requeued and completes.
func TestCallback_Fails(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	r.answers(http.StatusServiceUnavailable)
	id := r.fileJob("a.txt")
	it := r.fails(id)
	if it.Stage != registry.Notify || it.ErrorClass != registry.SystemFault || !strings.Contains(it.Note, "503") {
		t.Errorf("%s at %s: %s", it.ErrorClass, it.Stage, it.Note)
	}
	if n := len(r.got()); n != 3 {
		t.Errorf("told %d times, want as often as it is tried", n)
	}
	if d := r.told(id); d.SentAt != nil || d.Tries != 3 || d.Status != 503 || d.ItemID != "" {
		t.Errorf("delivery %+v", d)
	}
	r.valid(r.object(id), 1)
	r.answers(http.StatusOK)
	r.command(id, registry.ActRequeue, registry.Notify)
	r.complete(id)
	if posts := r.got(); len(posts) != 1 || posts[0].header.Get("Idempotency-Key") != "msg_"+id+"_completed" {
		t.Errorf("told %v", posts)
	}
}

// TestCallback_ReceiverGone: a job whose receiver is gone for good is preserved, and says so. A
// requeue notifies the collection's present receiver. Giving up the delivery completes the job
// without a callback and leaves nothing in staging.
func TestCallback_ReceiverGone(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	r.answers(http.StatusGone)
	moved, given := r.fileJob("a.txt"), r.fileJob("b.txt")
	for _, id := range []string{moved, given} {
		if it := r.fails(id); it.Commitment != registry.Preserved || it.OutcomeText() != "preserved; callback not delivered" {
			t.Errorf("%q: %s", it.Commitment, it.OutcomeText())
		}
	}
	r.got()
	r.answers(http.StatusOK)
	r.profile(collection, registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Callback: &registry.Callback{URL: r.url + "/moved/{job}"},
	})
	r.command(moved, registry.ActRequeue, registry.Notify)
	r.complete(moved)
	if posts := r.got(); len(posts) != 1 || posts[0].path != "/moved/"+moved {
		t.Errorf("told %v, want the receiver of now", posts)
	}
	r.command(given, registry.ActGiveUp, "")
	r.valid(r.complete(given), 2) // they have the same local ids
	if posts := r.got(); len(posts) != 0 {
		t.Errorf("told %v after it was given up", posts)
	}
	it, err := r.registry.Item(t.Context(), given)
	must(t, err)
	if u, ok := it.Untold(); !ok || u.Target != r.url || it.OutcomeText() != "preserved; callback given up" {
		t.Errorf("%+v: %s", u, it.OutcomeText())
	}
	for _, id := range []string{moved, given} {
		if left := keys(t, r.staging, "items/"+id); len(left) > 0 {
			t.Errorf("left in staging: %v", left)
		}
	}
}

// TestCallback_GoesOn: if deliveries are independent, the job completes, and an item of its own
// retries until the receiver is back.
func TestCallback_GoesOn(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(c *registry.Callback) { c.GoesOn = true })
	r.answers(http.StatusBadGateway)
	id := r.fileJob("a.txt")
	for range 10 {
		if r.item(id).Status.Settled() {
			break
		}
		_, _ = r.run(id)
		r.wait(2 * time.Hour)
	}
	if it := r.item(id); it.Status != registry.Completed {
		t.Fatalf("%s at %s: %s", it.Status, it.Stage, it.Note)
	}
	r.nothingStaged(id)
	carrier := r.only(registry.DeliverMessage)
	for range 20 { // of days, in which it is told nothing
		_, _ = r.run(carrier.ID)
		r.wait(2 * time.Hour)
	}
	if it := r.item(carrier.ID); it.Status != registry.Pending || !strings.Contains(it.Note, "502") {
		t.Errorf("%s: %s", it.Status, it.Note)
	}
	first := r.got()
	r.answers(http.StatusAccepted)
	r.advance(carrier.ID, "")
	if it := r.item(carrier.ID); it.Status != registry.Completed {
		t.Errorf("%s: %s", it.Status, it.Note)
	}
	last := r.got()
	if len(last) != 1 || last[0].raw != first[0].raw || last[0].header.Get("Idempotency-Key") != first[0].header.Get("Idempotency-Key") {
		t.Errorf("told %v, want what was told before", last)
	}
	if d := r.told(id); d.SentAt == nil || d.Tries != 3+20+1 || d.ItemID != carrier.ID {
		t.Errorf("delivery %+v", d)
	}
}

// TestCallback_OfFailure: an item of its own sends the callback that a job failed, but not for a
// job that was requeued since.
func TestCallback_OfFailure(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	id := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a.txt", "other bytes"), Filename: "a.txt", Digest: &registry.Digest{Algorithm: "sha256", Value: sha256Of("what was sent")}})
	failed := r.fails(id)
	if n := len(r.got()); n != 0 {
		t.Errorf("told %d times by the job itself", n)
	}
	carrier := r.only(registry.DeliverMessage)
	r.advance(carrier.ID, "")
	posts := r.got()
	if len(posts) != 1 || posts[0].body["jobStatus"] != "FAILED" || posts[0].body["error_class"] != "content" ||
		posts[0].body["jobStatusMessage"] != failed.Note || posts[0].body["stage"] != string(failed.Stage) || posts[0].body["primaryID"] != nil {
		t.Fatalf("told %v", posts)
	}
	r.command(id, registry.ActRequeue, registry.Download)
	r.fails(id)
	page, err := r.registry.Items(t.Context(), registry.ItemQuery{Action: registry.DeliverMessage, Status: registry.Pending})
	must(t, err)
	if len(page.Rows) != 1 {
		t.Fatalf("%d messages wait, want one of the second failure", len(page.Rows))
	}
	r.command(id, registry.ActRequeue, registry.Download)
	r.advance(page.Rows[0].ID, "")
	if posts := r.got(); len(posts) != 0 || r.item(page.Rows[0].ID).Status != registry.Completed {
		t.Errorf("told %v of a job that was sent back", posts)
	}
}

// TestCallback_Redelivered: a person requests another delivery; it goes to the collection's present
// receiver.
func TestCallback_Redelivered(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	id := r.fileJob("a.txt")
	r.complete(id)
	first := r.got()
	r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Callback: &registry.Callback{URL: r.url + "/elsewhere"}})
	it, err := r.registry.Redeliver(t.Context(), registry.RedeliverRequest{ItemID: id, Actor: "admin"})
	must(t, err)
	r.advance(it.ID, "")
	again := r.got()
	if len(again) != 1 || again[0].path != "/elsewhere" || again[0].raw != first[0].raw || again[0].header.Get("Idempotency-Key") != first[0].header.Get("Idempotency-Key") {
		t.Errorf("told %v, want %v", again, first)
	}
}

// TestCallback_Secrets: a receiver gets the collection's credential for its origin over https only.
// With a key that cannot be decrypted, nothing is sent.
func TestCallback_Secrets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	origin := strings.Replace(r.url, "http://", "https://", 1)
	c := registry.Credential{Collection: collection, Origin: origin, Kind: registry.CredentialBearer}
	var err error
	c.Sealed, err = r.keys.Seal("hunter2", c.About()...)
	must(t, err)
	must(t, r.registry.PutCredential(t.Context(), c))
	r.complete(r.fileJob("a.txt"))
	if posts := r.got(); len(posts) != 1 || posts[0].header.Get("Authorization") != "" {
		t.Errorf("over http it was shown %v", posts)
	}
	moved := registry.Credential{Collection: collection, Origin: "signing:k", Kind: registry.CredentialSigning, Sealed: c.Sealed}
	must(t, r.registry.PutCredential(t.Context(), moved))
	id := r.fileJob("b.txt")
	it := r.fails(id)
	if it.Stage != registry.Notify || it.ErrorClass != registry.SystemFault || !strings.Contains(it.Note, "set the credential again") || strings.Contains(it.Note, "hunter2") {
		t.Errorf("%s at %s: %s", it.ErrorClass, it.Stage, it.Note)
	}
	if posts := r.got(); len(posts) != 0 {
		t.Errorf("unsigned it was told %v", posts)
	}
}

// mortal is a Registry whose worker dies before or after the nth call about deliveries.
type mortal struct {
	registry.ForWorkers
	at, calls int
	after     bool
	cancel    context.CancelCauseFunc
}

func (d *mortal) step(do func() error) error {
	d.calls++
	if d.calls != d.at {
		return do()
	}
	if d.after {
		_ = do() // it happened, and nobody hears of it
	}
	d.cancel(base.ErrStopping)
	return registry.ErrUnavailable
}

func (d *mortal) Deliveries(ctx context.Context, id string) (all []registry.Delivery, err error) {
	err = d.step(func() (err error) { all, err = d.ForWorkers.Deliveries(ctx, id); return err })
	return all, err
}

func (d *mortal) NoteDelivery(ctx context.Context, l registry.Lease, try registry.DeliveryTry) (got registry.Delivery, err error) {
	err = d.step(func() (err error) { got, err = d.ForWorkers.NoteDelivery(ctx, l, try); return err })
	return got, err
}

func (d *mortal) PassOn(ctx context.Context, l registry.Lease, m registry.DeliverySpec) error {
	return d.step(func() error { return d.ForWorkers.PassOn(ctx, l, m) })
}

// TestR22_CallbackDiesAnywhere: wherever the process dies, the receiver gets the callback, always
// with the same id. A recorded delivery is not repeated.
func TestR22_CallbackDiesAnywhere(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []bool{false, true} {
		for at := 1; at <= 3; at++ {
			for _, after := range []bool{false, true} {
				r := newReceiver(t, func(c *registry.Callback) { c.GoesOn = goesOn })
				if goesOn {
					r.answers(http.StatusBadGateway)
					r.deps.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 1} }
				}
				id := r.fileJob("a.txt")
				r.advance(id, registry.Notify)
				whole := r.deps.Callbacks
				dead := *whole
				ctx, cancel := context.WithCancelCause(t.Context())
				dead.Registry = &mortal{ForWorkers: r.registry, at: at, after: after, cancel: cancel}
				r.deps.Callbacks = &dead
				_, _ = r.runAs(ctx, id)
				cancel(nil)
				r.deps.Callbacks = whole
				r.wait(2 * time.Hour)
				r.complete(id)
				if goesOn {
					r.answers(http.StatusOK)
					r.advance(r.only(registry.DeliverMessage).ID, "")
				}
				posts := r.got()
				ids := map[string]bool{}
				for _, p := range posts {
					ids[p.header.Get("Idempotency-Key")] = true
				}
				if d := r.told(id); len(ids) != 1 || d.SentAt == nil {
					t.Errorf("goes on %v, dies at %d (after: %v): told %d times by %d ids, delivery %+v", goesOn, at, after, len(posts), len(ids), d)
				}
				if !goesOn && at == 2 && after && len(posts) != 1 {
					t.Errorf("what was noted as delivered was told %d times", len(posts))
				}
			}
		}
	}
}
