package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// Claim implements registry.Working. It may travel with others.
func (s *Store) Claim(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	if err := checkKeys("claim", r.RequestID, r.Worker); err != nil {
		return registry.Claim{}, err
	}
	return s.claims.do(ctx, r)
}

// Settle implements registry.Working. It may travel with others.
func (s *Store) Settle(ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
	return s.settles.do(ctx, se)
}

func (s *Store) sendClaims(ctx context.Context, all []json.RawMessage) ([]wire.Answer[registry.Claim], error) {
	out, err := post[wire.Answers[registry.Claim]](ctx, s, "/claims", map[string]any{"claims": all})
	return out.Answers, err
}

func (s *Store) sendSettlements(ctx context.Context, all []json.RawMessage) ([]wire.Answer[registry.Verdict], error) {
	out, err := post[wire.Answers[registry.Verdict]](ctx, s, "/settlements", map[string]any{"settlements": all})
	return out.Answers, err
}

// Renew implements registry.Working.
func (s *Store) Renew(ctx context.Context, r registry.RenewRequest) (registry.Renewal, error) {
	return post[registry.Renewal](ctx, s, "/renewals", r)
}

// Withdrawn implements registry.Working by long polls.
func (s *Store) Withdrawn(ctx context.Context, worker string, after int64) ([]registry.Lease, int64, error) {
	for {
		var out wire.Withdrawals
		err := s.ask(ctx, request{method: http.MethodGet, path: "/withdrawals", query: values(
			"worker", worker, "after", number(after), "wait_ms", number(s.wait().Milliseconds()))}, nil, &out)
		switch {
		case ctx.Err() != nil:
			return nil, after, nil //nolint:nilerr // the contract has it so: the wait is over
		case err != nil:
			return nil, after, err
		case len(out.Taken) > 0:
			return out.Taken, out.Next, nil
		}
		after = out.Next
	}
}

// SaveResult implements registry.Working.
func (s *Store) SaveResult(ctx context.Context, l registry.Lease, name string, value json.RawMessage) (json.RawMessage, error) {
	out, err := fenced[wire.Result](ctx, s, l, "results", wire.Result{Name: name, Value: value})
	return out.Value, err
}

// AddJobs implements registry.Working.
func (s *Store) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	out, err := fenced[wire.Added](ctx, s, l, "jobs", wire.JobsRequest{Jobs: jobs})
	return out.Added, err
}

// FirstOf implements registry.Working.
func (s *Store) FirstOf(ctx context.Context, l registry.Lease, validator string) (string, error) {
	out, err := fenced[wire.FirstBatch](ctx, s, l, "validators", wire.Validator{Validator: validator})
	return out.BatchID, err
}

// Reserve implements registry.Working.
func (s *Store) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	return s.fencedTell(ctx, http.MethodPut, l, "reservation", r)
}

// CloseReport implements registry.Working.
func (s *Store) CloseReport(ctx context.Context, l registry.Lease) (registry.BatchReport, error) {
	return fenced[registry.BatchReport](ctx, s, l, "report", nil)
}

// Claimed implements registry.Working.
func (s *Store) Claimed(ctx context.Context, tokenID string) ([]registry.WorkItem, error) {
	out, err := call[wire.Rows[registry.WorkItem]](ctx, s, "claimed", wire.ByID{ID: tokenID})
	return out.Rows, err
}

// ApplyNext implements registry.Working.
func (s *Store) ApplyNext(ctx context.Context, l registry.Lease) (registry.BulkProgress, error) {
	return fenced[registry.BulkProgress](ctx, s, l, "applications", nil)
}

// Identify implements registry.Preserving.
func (s *Store) Identify(ctx context.Context, l registry.Lease, r registry.IdentifyRequest) (registry.Identity, error) {
	if err := checkKeys("identify", append([]string{r.Owner, r.Supplied, r.Proposed}, r.LocalIDs...)...); err != nil {
		return registry.Identity{}, err
	}
	return fenced[registry.Identity](ctx, s, l, "identity", r)
}

// Intend implements registry.Preserving.
func (s *Store) Intend(ctx context.Context, l registry.Lease, in registry.Intent) (registry.Intent, error) {
	if err := checkKeys("intend", in.ObjectID); err != nil {
		return registry.Intent{}, err
	}
	return fenced[registry.Intent](ctx, s, l, "intents", in)
}

// RecordFiles implements registry.Preserving.
func (s *Store) RecordFiles(ctx context.Context, l registry.Lease, objectID string, version int, files []registry.File) error {
	return s.fencedTell(ctx, http.MethodPost, l, "files", wire.FilesRecord{ObjectID: objectID, Version: version, Files: wire.FilesOf(files)})
}

// RecordVersion implements registry.Preserving.
func (s *Store) RecordVersion(ctx context.Context, l registry.Lease, v registry.VersionRecord) error {
	path, err := under(l, "versions")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mostRecording)
	defer cancel()
	return s.ask(ctx, request{method: http.MethodPost, path: path, unbounded: true}, v, nil)
}

// mostRecording bounds RecordVersion, before which the Registry reads all rows of the version for its receipt: of 360,000 files
// that takes longer than other requests may.
const mostRecording = 5 * time.Minute

// LockObject implements registry.Preserving.
func (s *Store) LockObject(ctx context.Context, l registry.Lease, objectID string) (int, error) {
	if checkKeys("lock", objectID) != nil {
		return 0, fmt.Errorf("lock object %q: %w", objectID, registry.ErrNotFound) // there can be none
	}
	out, err := fenced[wire.ObjectHead](ctx, s, l, "lock", wire.ByID{ID: objectID})
	return out.Head, err
}

// MarkDeleting implements registry.Preserving.
func (s *Store) MarkDeleting(ctx context.Context, l registry.Lease, objectID string, last registry.Remains) (registry.Deletion, error) {
	return fenced[registry.Deletion](ctx, s, l, "deletions", wire.ObjectMark{ObjectID: objectID, Last: last})
}

// RecordDeletion implements registry.Preserving.
func (s *Store) RecordDeletion(ctx context.Context, l registry.Lease, objectID string, events []registry.Premis) error {
	return s.fencedTell(ctx, http.MethodPost, l, "removals", wire.ObjectRemoval{ObjectID: objectID, Events: events})
}

// StoredFile implements registry.Preserving.
func (s *Store) StoredFile(ctx context.Context, l registry.Lease) (registry.StoredFile, error) {
	return fenced[registry.StoredFile](ctx, s, l, "stored-file", nil)
}

// RecordCheck implements registry.Preserving.
func (s *Store) RecordCheck(ctx context.Context, l registry.Lease, r registry.CheckRecord) error {
	return s.fencedTell(ctx, http.MethodPost, l, "checks", r)
}

// HasReplicas implements registry.Preserving.
func (s *Store) HasReplicas(ctx context.Context, storage string) (bool, error) {
	return call[bool](ctx, s, "has-replicas", wire.ByID{ID: storage})
}

// KnowsObject implements registry.Preserving.
func (s *Store) KnowsObject(ctx context.Context, id string) (bool, error) {
	if checkKeys("look for an object", id) != nil {
		return false, nil //nolint:nilerr // there can be none
	}
	return call[bool](ctx, s, "knows-object", wire.ByID{ID: id})
}

// RecordRestoration implements registry.Preserving.
func (s *Store) RecordRestoration(ctx context.Context, l registry.Lease, r registry.RestorationRecord) (registry.Restoration, error) {
	return fenced[registry.Restoration](ctx, s, l, "restorations", r)
}

// Recheck implements registry.Housekeeping.
func (s *Store) Recheck(ctx context.Context, r registry.RecheckRequest) (registry.Rechecked, error) {
	return post[registry.Rechecked](ctx, s, "/rechecks", r)
}

// PurgeExpired implements registry.Housekeeping.
func (s *Store) PurgeExpired(ctx context.Context) (int, error) {
	out, err := post[wire.Purged](ctx, s, "/purges", struct{}{})
	return out.Batches, err
}

// Due implements registry.Housekeeping.
func (s *Store) Due(ctx context.Context, d registry.DueRequest) ([]registry.Wake, error) {
	out, err := post[wire.Wakes](ctx, s, "/offers", d)
	return out.Wakes, err
}

// Undo implements registry.Housekeeping.
func (s *Store) Undo(ctx context.Context, wakes []registry.Wake) error {
	return s.ask(ctx, request{method: http.MethodPost, path: "/offers/undo"}, wire.Wakes{Wakes: wakes}, nil)
}

// Reoffer implements registry.Housekeeping.
func (s *Store) Reoffer(ctx context.Context) error {
	return s.ask(ctx, request{method: http.MethodPost, path: "/offers/repeat"}, nil, nil)
}

// Sweep implements registry.Housekeeping.
func (s *Store) Sweep(ctx context.Context, lease time.Duration) ([]registry.Lease, error) {
	out, err := post[wire.Lost](ctx, s, "/sweeps", wire.SweepRequest{Lease: lease})
	return out.Lost, err
}

// Woken implements registry.Housekeeping by long polls, from the first call on. While the server does not answer nothing
// is heard.
func (s *Store) Woken() <-chan struct{} {
	s.listen()
	return s.woken
}

// hear passes the server's bell on until ctx ends.
func (s *Store) hear(ctx context.Context) {
	const pause = time.Second
	for ctx.Err() == nil {
		var out wire.Rung
		err := s.ask(ctx, request{method: http.MethodGet, path: "/offers/bell", query: values("wait_ms", number(s.wait().Milliseconds()))}, nil, &out)
		switch {
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		case out.Rung:
			select {
			case s.woken <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
}
