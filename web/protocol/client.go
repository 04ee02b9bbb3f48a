package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// ErrClosed is the error of a Client's calls after Close.
var ErrClosed = errors.New("the Registry's client is closed")

// Caller sends requests to a Registry's API; a *client.Client is one.
type Caller interface {
	// Post sends in as JSON to a path below the API and decodes the answer into out. It takes at
	// most the given time; 0 means Timeout. A refusal is a *wire.Problem.
	Post(ctx context.Context, path string, most time.Duration, in, out any) error
	// Timeout is the usual limit of a request.
	Timeout() time.Duration
	// Close closes idle connections.
	Close()
}

// Client is the Registry for a worker in another process. It calls the Registry over HTTP with the
// worker's token. Its methods may be called concurrently.
//
// While a request with short calls is under way, further ones are collected and sent in the next
// request: claims, settlements, and the usual writes of attempts. Each caller gets its own answer,
// and the context of one caller does not affect the others.
//
// errors.Is and errors.As find the errors of the contract with all their fields. If there is no
// answer, the error is registry.ErrUnavailable: the caller does not know whether the call took
// effect, and must repeat it.
type Client struct {
	c     Caller
	calls *batcher
	stop  context.CancelFunc // stops all background work

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

var _ registry.ForWorkers = (*Client)(nil)

// NewClient returns a Client that sends requests with c. It does not connect yet. The caller must
// Close it.
func NewClient(c Caller) *Client {
	ctx, stop := context.WithCancel(context.Background())
	s := &Client{c: c, stop: stop}
	s.calls = &batcher{
		send: func(ctx context.Context, all json.RawMessage) (json.RawMessage, error) {
			return send[json.RawMessage](ctx, s, calls.name, 0, all)
		},
		start: func(do func(context.Context)) error { return s.start(func() { do(ctx) }) },
	}
	return s
}

// start runs do in the background. Close waits for it.
func (c *Client) start(do func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.running.Go(do)
	return nil
}

// Close stops background work, waits for it and closes idle connections. Later calls fail with
// ErrClosed. Close may be called again.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
	c.c.Close()
	return nil
}

// ask calls a method with the usual time limit, and together with other calls if it may.
func (m method[I, O]) ask(ctx context.Context, c *Client, in I) (O, error) {
	if !m.shares {
		return m.askWithin(ctx, c, 0, in)
	}
	text, err := wire.Encode(struct {
		Method string `json:"method"`
		In     I      `json:"in"`
	}{m.name, in})
	var zero O
	if err != nil {
		return zero, err
	}
	if len(text) > mostShared {
		return m.askWithin(ctx, c, 0, in)
	}
	out := new(O)
	if err := c.calls.do(ctx, text, out); err != nil {
		return zero, err
	}
	return *out, nil
}

// askWithin calls a method with a time limit of its own.
func (m method[I, O]) askWithin(ctx context.Context, c *Client, most time.Duration, in I) (O, error) {
	return send[O](ctx, c, m.name, most, in)
}

// send calls a method by its name. It returns the zero value with every error.
func send[O any](ctx context.Context, c *Client, name string, most time.Duration, in any) (out O, err error) {
	var zero O
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return zero, ErrClosed
	}
	err = c.c.Post(ctx, versioned(Path+name), most, in, &out)
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return zero, err
	}
	return zero, unlessAnswered(err)
}

// unlessAnswered returns the error of a call: err itself if it is the server's answer.
func unlessAnswered(err error) error {
	if answered(err) {
		return err
	}
	return &unansweredError{err}
}

// answered reports whether an error is the server's own answer, not one of a proxy or of the
// network.
func answered(err error) bool {
	var p *wire.Problem
	return errors.As(err, &p) && p.Status != http.StatusBadGateway && p.Status != http.StatusServiceUnavailable && p.Status != http.StatusGatewayTimeout
}

// unansweredError is a call without an answer: the caller does not know whether it took effect. It
// is neither the depositor's nor the step's fault.
type unansweredError struct{ err error }

// Error returns the text of the error that prevented the answer.
func (e *unansweredError) Error() string { return e.err.Error() }

// Unwrap returns the error that prevented the answer.
func (e *unansweredError) Unwrap() error { return e.err }

// Is reports whether target is registry.ErrUnavailable.
func (e *unansweredError) Is(target error) bool { return target == registry.ErrUnavailable }

// checkKeys refuses names that are not UTF-8. JSON would change them into other names. In notes and
// titles such a change is harmless, so those are not checked.
func checkKeys(what string, keys ...string) error {
	for _, key := range keys {
		if !utf8.ValidString(key) {
			return fmt.Errorf("%s: %w: %q is not UTF-8", what, registry.ErrInvalid, key)
		}
	}
	return nil
}

// Claim implements registry.Working.
func (c *Client) Claim(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	if err := checkKeys("claim", r.RequestID, r.Worker); err != nil {
		return registry.Claim{}, err
	}
	return claim.ask(ctx, c, r)
}

// Settle implements registry.Working.
func (c *Client) Settle(ctx context.Context, s registry.Settlement) (registry.Verdict, error) {
	return settle.ask(ctx, c, s)
}

// Renew implements registry.Working.
func (c *Client) Renew(ctx context.Context, r registry.RenewRequest) (registry.Renewal, error) {
	return renew.ask(ctx, c, r)
}

// Withdrawn implements registry.Working by long polls.
func (c *Client) Withdrawn(ctx context.Context, q registry.WithdrawnQuery) ([]registry.Lease, int64, error) {
	wait := min(20*time.Second, c.c.Timeout()/2) // shorter than the time limit of a request
	for {
		out, err := withdrawn.ask(ctx, c, withdrawnRequest{WithdrawnQuery: q, Wait: wait})
		switch {
		case ctx.Err() != nil:
			return nil, q.After, nil //nolint:nilerr // by contract, the end of ctx is no error
		case err != nil:
			return nil, q.After, err
		case len(out.Taken) > 0:
			return out.Taken, out.Next, nil
		}
		q.After = out.Next
	}
}

// Announce implements registry.Serving.
func (c *Client) Announce(ctx context.Context, all []registry.Function) error {
	_, err := announce.ask(ctx, c, all)
	return err
}

// AwaitReady implements registry.Serving by long polls.
func (c *Client) AwaitReady(ctx context.Context, stages []registry.Stage) (registry.Stage, error) {
	wait := min(20*time.Second, c.c.Timeout()/2) // shorter than the time limit of a request
	for {
		stage, err := awaitReady.ask(ctx, c, readyRequest{stages, wait})
		if ctx.Err() != nil {
			return "", nil //nolint:nilerr // by contract, the end of ctx is no error
		}
		if err != nil || stage != "" {
			return stage, err
		}
	}
}

// StartTask implements registry.Serving.
func (c *Client) StartTask(ctx context.Context, t registry.NewTask, r registry.ClaimRequest) (registry.Claim, error) {
	return startTask.ask(ctx, c, newTask{t, r})
}

// Parents implements registry.Serving.
func (c *Client) Parents(ctx context.Context, l registry.Lease) ([]registry.Parent, error) {
	return parents.ask(ctx, c, attempt{l})
}

// AnnounceNamespaces implements registry.Stepping.
func (c *Client) AnnounceNamespaces(ctx context.Context, all []registry.Namespace) error {
	_, err := announceNamespaces.ask(ctx, c, all)
	return err
}

// ProcessOf implements registry.Stepping.
func (c *Client) ProcessOf(ctx context.Context, l registry.Lease, r registry.HistoryRange) (registry.ProcessInfo, error) {
	return processOf.ask(ctx, c, fenced[registry.HistoryRange]{attempt{l}, r})
}

// SaveResult implements registry.Working.
func (c *Client) SaveResult(ctx context.Context, l registry.Lease, name string, value json.RawMessage) (json.RawMessage, error) {
	return saveResult.ask(ctx, c, result{attempt{l}, name, value})
}

// SetState implements registry.Working.
func (c *Client) SetState(ctx context.Context, l registry.Lease, value json.RawMessage) error {
	return done(setState.ask(ctx, c, fenced[json.RawMessage]{attempt{l}, value}))
}

// AddJobs implements registry.Batching.
func (c *Client) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	return addJobs.ask(ctx, c, fenced[[]registry.NewJob]{attempt{l}, jobs})
}

// FirstOf implements registry.Batching.
func (c *Client) FirstOf(ctx context.Context, l registry.Lease, validator string) (string, error) {
	return firstOf.ask(ctx, c, fenced[string]{attempt{l}, validator})
}

// Reserve implements registry.Working.
func (c *Client) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	return done(reserve.ask(ctx, c, fenced[registry.Reservation]{attempt{l}, r}))
}

// CloseReport implements registry.Batching.
func (c *Client) CloseReport(ctx context.Context, l registry.Lease) (registry.BatchReport, error) {
	return closeReport.ask(ctx, c, attempt{l})
}

// ApplyNext implements registry.Working.
func (c *Client) ApplyNext(ctx context.Context, l registry.Lease) (registry.BulkProgress, error) {
	return applyNext.ask(ctx, c, attempt{l})
}

// Identify implements registry.Preserving.
func (c *Client) Identify(ctx context.Context, l registry.Lease, r registry.IdentifyRequest) (registry.Identity, error) {
	if err := checkKeys("identify", append([]string{r.Owner, r.Supplied, r.Proposed}, r.LocalIDs...)...); err != nil {
		return registry.Identity{}, err
	}
	return identify.ask(ctx, c, fenced[registry.IdentifyRequest]{attempt{l}, r})
}

// Intend implements registry.Preserving.
func (c *Client) Intend(ctx context.Context, l registry.Lease, in registry.Intent) (registry.Intent, error) {
	if err := checkKeys("intend", in.ObjectID); err != nil {
		return registry.Intent{}, err
	}
	return intend.ask(ctx, c, announcement{fenced[registry.Intent]{attempt{l}, in}, filesOf(in.Files)})
}

// RecordFiles implements registry.Preserving.
func (c *Client) RecordFiles(ctx context.Context, l registry.Lease, objectID string, version int, files []registry.File) error {
	return done(recordFiles.ask(ctx, c, versionFiles{attempt{l}, objectID, version, filesOf(files)}))
}

// fewFiles is the largest number of files in a version that is recorded together with other calls.
const fewFiles = 1000

// RecordVersion implements registry.Preserving. The Registry reads all rows of the version for its
// receipt. So a large version has a longer time limit (360,000 rows exceed the usual one), and delays
// no other call.
func (c *Client) RecordVersion(ctx context.Context, l registry.Lease, v registry.VersionRecord) error {
	if v.Files <= fewFiles {
		return done(recordVersion.ask(ctx, c, fenced[registry.VersionRecord]{attempt{l}, v}))
	}
	return done(recordVersion.askWithin(ctx, c, 5*time.Minute, fenced[registry.VersionRecord]{attempt{l}, v}))
}

// LockObject implements registry.Locking.
func (c *Client) LockObject(ctx context.Context, l registry.Lease, objectID string, folders ...string) (int, error) {
	if checkKeys("lock", objectID) != nil {
		return 0, fmt.Errorf("lock object %q: %w", objectID, registry.ErrNotFound) // there can be none
	}
	return lockObject.ask(ctx, c, objectLock{fenced[string]{attempt{l}, objectID}, folders})
}

// MarkDeleting implements registry.Deleting.
func (c *Client) MarkDeleting(ctx context.Context, l registry.Lease, objectID string, last registry.Remains) (registry.Deletion, error) {
	return markDeleting.ask(ctx, c, deletionStart{attempt{l}, objectID, last})
}

// RecordDeletion implements registry.Deleting.
func (c *Client) RecordDeletion(ctx context.Context, l registry.Lease, objectID string, events []registry.Premis) error {
	return done(recordDeletion.ask(ctx, c, deletionEnd{attempt{l}, objectID, events}))
}

// StoredFile implements registry.Checking.
func (c *Client) StoredFile(ctx context.Context, l registry.Lease) (registry.StoredFile, error) {
	return storedFile.ask(ctx, c, attempt{l})
}

// RecordCheck implements registry.Checking.
func (c *Client) RecordCheck(ctx context.Context, l registry.Lease, r registry.CheckRecord) error {
	return done(recordCheck.ask(ctx, c, fenced[registry.CheckRecord]{attempt{l}, r}))
}

// RecordCopy implements registry.Copying.
func (c *Client) RecordCopy(ctx context.Context, l registry.Lease, r registry.CopyRecord) error {
	return done(recordCopy.ask(ctx, c, fenced[registry.CopyRecord]{attempt{l}, r}))
}

// HasReplicas implements registry.Preserving.
func (c *Client) HasReplicas(ctx context.Context, storage string) (bool, error) {
	return hasReplicas.ask(ctx, c, byID{storage})
}

// KnowsObject implements registry.Preserving.
func (c *Client) KnowsObject(ctx context.Context, id string) (bool, error) {
	if checkKeys("look for an object", id) != nil {
		return false, nil //nolint:nilerr // there can be none
	}
	return knowsObject.ask(ctx, c, byID{id})
}

// RecordRestoration implements registry.Restoring.
func (c *Client) RecordRestoration(ctx context.Context, l registry.Lease, r registry.RestorationRecord) (registry.Restoration, error) {
	return recordRestoration.ask(ctx, c, fenced[registry.RestorationRecord]{attempt{l}, r})
}

// NoteDelivery implements registry.Delivering.
func (c *Client) NoteDelivery(ctx context.Context, l registry.Lease, try registry.DeliveryTry) (registry.Delivery, error) {
	return noteDelivery.ask(ctx, c, fenced[registry.DeliveryTry]{attempt{l}, try})
}

// PassOn implements registry.Delivering.
func (c *Client) PassOn(ctx context.Context, l registry.Lease, message registry.DeliverySpec) error {
	return done(passOn.ask(ctx, c, fenced[registry.DeliverySpec]{attempt{l}, message}))
}

// Credentials implements registry.Unlocking.
func (c *Client) Credentials(ctx context.Context, collection string) ([]registry.Credential, error) {
	all, err := credentials.ask(ctx, c, byID{collection})
	out := make([]registry.Credential, len(all))
	for i, r := range all {
		out[i] = r.Credential
		out[i].Sealed = r.Sealed
	}
	return out, err
}

// UploadByID implements registry.Uploads.
func (c *Client) UploadByID(ctx context.Context, id string) (registry.Upload, error) {
	return uploadByID.ask(ctx, c, byID{id})
}

// IncomingByID implements registry.Uploads.
func (c *Client) IncomingByID(ctx context.Context, id string) (registry.Incoming, error) {
	return incoming.ask(ctx, c, byID{id})
}

// ReleaseUpload implements registry.Working.
func (c *Client) ReleaseUpload(ctx context.Context, l registry.Lease, uploadID string) (bool, error) {
	return release.ask(ctx, c, uploadRelease{attempt: attempt{l}, UploadID: uploadID})
}

// BatchesOf implements registry.Uploads.
func (c *Client) BatchesOf(ctx context.Context, uploadID string) ([]registry.WorkItem, error) {
	return batchesOf.ask(ctx, c, byID{uploadID})
}

// Item implements registry.ItemReader.
func (c *Client) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	return item.ask(ctx, c, byID{id})
}

// CountItems implements registry.ItemReader.
func (c *Client) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	return countItems.ask(ctx, c, q)
}

// Events implements registry.ItemReader.
func (c *Client) Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error) {
	return events.ask(ctx, c, eventsQuery{itemID, after, limit})
}

// Object implements registry.Inventory.
func (c *Client) Object(ctx context.Context, id string) (registry.Object, error) {
	return object.ask(ctx, c, byID{id})
}

// Files implements registry.Inventory.
func (c *Client) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	rows, err := files.ask(ctx, c, filesQuery{objectID, version, []byte(after), limit})
	return filesIn(rows), err
}

// DepositReceipt implements registry.Evidencing.
func (c *Client) DepositReceipt(ctx context.Context, objectID string, version int) (registry.DepositReceipt, error) {
	return depositReceipt.ask(ctx, c, versionRef{objectID, version})
}

// PremisEvents implements registry.Evidencing.
func (c *Client) PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error) {
	return premisEvents.ask(ctx, c, premisQuery{objectID, after, limit})
}

// EvidencePlaces implements registry.EventsSigning.
func (c *Client) EvidencePlaces(ctx context.Context, objectID string) (registry.EvidencePlaces, error) {
	out, err := evidencePlaces.ask(ctx, c, byID{objectID})
	return registry.EvidencePlaces(out), err
}

// SignEvents implements registry.EventsSigning.
func (c *Client) SignEvents(ctx context.Context, objectID string, first, last int64) ([]byte, error) {
	return signEvents.ask(ctx, c, eventsSpan{objectID, first, last})
}

// RestorationOf implements registry.Inventory.
func (c *Client) RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error) {
	return restorationOf.ask(ctx, c, byID{itemID})
}

// Ping implements registry.ForWorkers.
func (c *Client) Ping(ctx context.Context) error { return done(ping.ask(ctx, c, empty{})) }

// Items implements registry.ItemReader.
func (c *Client) Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
	return items.ask(ctx, c, q)
}

// Failures implements registry.ItemReader.
func (c *Client) Failures(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
	return failures.ask(ctx, c, q)
}

// Why implements registry.ItemReader.
func (c *Client) Why(ctx context.Context, id string) (registry.Why, error) {
	return why.ask(ctx, c, byID{id})
}

// BatchProgress implements registry.ReportReader.
func (c *Client) BatchProgress(ctx context.Context, id string) (registry.BatchProgress, error) {
	return batchProgress.ask(ctx, c, byID{id})
}

// ReportOf implements registry.ReportReader.
func (c *Client) ReportOf(ctx context.Context, batchID string, closing int64) (registry.BatchReport, error) {
	return reportOf.ask(ctx, c, reportRef{batchID, closing})
}

// ReportJobs implements registry.ReportReader.
func (c *Client) ReportJobs(ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error) {
	return reportJobs.ask(ctx, c, q)
}

// Deliveries implements registry.DeliveryReader.
func (c *Client) Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error) {
	return deliveries.ask(ctx, c, byID{itemID})
}

// Holds implements registry.Queue.
func (c *Client) Holds(ctx context.Context) ([]registry.Hold, error) {
	return holds.ask(ctx, c, empty{})
}

// Deletions implements registry.Inventory.
func (c *Client) Deletions(ctx context.Context, q registry.DeletionQuery) (registry.Page[registry.Deletion], error) {
	return deletions.ask(ctx, c, q)
}

// QueueStatus implements registry.Queue.
func (c *Client) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	return queueStatus.ask(ctx, c, empty{})
}

// BatchSafety implements registry.Mailing.
func (c *Client) BatchSafety(ctx context.Context, batchID string) (registry.Safety, error) {
	return batchSafety.ask(ctx, c, byID{batchID})
}

// Attention implements registry.Mailing.
func (c *Client) Attention(ctx context.Context) (registry.Attention, error) {
	return attention.ask(ctx, c, empty{})
}

// done drops the empty result of a method.
func done(_ empty, err error) error { return err }
