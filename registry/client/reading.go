package client

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// Item implements registry.Reading.
func (s *Store) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	return call[registry.WorkItem](ctx, s, "item", wire.ByID{ID: id})
}

// Items implements registry.Reading.
func (s *Store) Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
	return call[registry.Page[registry.WorkItem]](ctx, s, "items", q)
}

// CountItems implements registry.Reading.
func (s *Store) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	out, err := call[wire.Counts](ctx, s, "count-items", q)
	return out.Counts, err
}

// Failures implements registry.Reading.
func (s *Store) Failures(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
	return call[registry.Page[registry.FailureGroup]](ctx, s, "failures", q)
}

// Graph implements registry.Reading.
func (s *Store) Graph(ctx context.Context, id string) (registry.GraphView, error) {
	return call[registry.GraphView](ctx, s, "graph", wire.ByID{ID: id})
}

// Edges implements registry.Reading.
func (s *Store) Edges(ctx context.Context, itemID string) (requires, required []registry.Edge, err error) {
	out, err := call[wire.EdgesResponse](ctx, s, "edges", wire.ByID{ID: itemID})
	return out.Requires, out.RequiredBy, err
}

// QueueStatus implements registry.Reading.
func (s *Store) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	return call[registry.QueueStatus](ctx, s, "queue-status", wire.Nothing{})
}

// Accepting implements registry.Reading.
func (s *Store) Accepting(ctx context.Context) (registry.Accepting, error) {
	return call[registry.Accepting](ctx, s, "accepting", wire.Nothing{})
}

// Holds implements registry.Reading.
func (s *Store) Holds(ctx context.Context) ([]registry.Hold, error) {
	return list[registry.Hold](ctx, s, "holds", wire.Nothing{})
}

// BatchProgress implements registry.Reading.
func (s *Store) BatchProgress(ctx context.Context, id string) (registry.BatchProgress, error) {
	return call[registry.BatchProgress](ctx, s, "batch-progress", wire.ByID{ID: id})
}

// Why implements registry.Reading.
func (s *Store) Why(ctx context.Context, id string) (registry.Why, error) {
	return call[registry.Why](ctx, s, "why", wire.ByID{ID: id})
}

// Events implements registry.Reading.
func (s *Store) Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error) {
	return list[registry.Event](ctx, s, "events", wire.EventsRequest{ItemID: itemID, After: after, Limit: limit})
}

// Feed implements registry.Reading.
func (s *Store) Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	return list[registry.Event](ctx, s, "feed", q)
}

// Audit implements registry.Reading.
func (s *Store) Audit(ctx context.Context, q registry.AuditQuery) (registry.Page[registry.Event], error) {
	return call[registry.Page[registry.Event]](ctx, s, "audit", q)
}

// FeedEnd implements registry.Reading.
func (s *Store) FeedEnd(ctx context.Context) (int64, error) {
	out, err := call[wire.Cursor](ctx, s, "feed-end", wire.Nothing{})
	return out.Seq, err
}

// AwaitFeed implements registry.Reading by long polls.
func (s *Store) AwaitFeed(ctx context.Context, after int64) error {
	for {
		out, err := call[wire.Rung](ctx, s, "await-feed", wire.FeedWait{After: after, Wait: s.wait().Milliseconds()})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil, out.Rung:
			return err
		}
	}
}

// Attempts implements registry.Reading.
func (s *Store) Attempts(ctx context.Context, itemID string) ([]registry.Attempt, error) {
	return list[registry.Attempt](ctx, s, "attempts", wire.ByID{ID: itemID})
}

// ReportOf implements registry.Reading.
func (s *Store) ReportOf(ctx context.Context, batchID string, closing int64) (registry.BatchReport, error) {
	return call[registry.BatchReport](ctx, s, "report", wire.ReportRequest{BatchID: batchID, Closing: closing})
}

// Reports implements registry.Reading.
func (s *Store) Reports(ctx context.Context, batchID string, before int64, limit int) ([]registry.BatchReport, error) {
	return list[registry.BatchReport](ctx, s, "reports", wire.ReportsRequest{BatchID: batchID, Before: before, Limit: limit})
}

// ReportJobs implements registry.Reading.
func (s *Store) ReportJobs(ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error) {
	return list[registry.JobResult](ctx, s, "report-jobs", q)
}

// Object implements registry.Reading.
func (s *Store) Object(ctx context.Context, id string) (registry.Object, error) {
	return call[registry.Object](ctx, s, "object", wire.ByID{ID: id})
}

// Objects implements registry.Reading.
func (s *Store) Objects(ctx context.Context, q registry.ObjectQuery) (registry.Page[registry.Object], error) {
	return call[registry.Page[registry.Object]](ctx, s, "objects", q)
}

// Deletions implements registry.Reading.
func (s *Store) Deletions(ctx context.Context, q registry.DeletionQuery) (registry.Page[registry.Deletion], error) {
	return call[registry.Page[registry.Deletion]](ctx, s, "deletions", q)
}

// Files implements registry.Reading.
func (s *Store) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	rows, err := list[wire.FileRow](ctx, s, "files", wire.FilesRequest{ObjectID: objectID, Version: version, After: []byte(after), Limit: limit})
	return wire.FilesIn(rows), err
}

// FileHistory implements registry.Attesting.
func (s *Store) FileHistory(ctx context.Context, objectID string, after registry.FilePlace, limit int) ([]registry.File, error) {
	rows, err := list[wire.FileRow](ctx, s, "file-history", wire.FilesRequest{
		ObjectID: objectID, Version: after.Version, After: []byte(after.Path), Limit: limit,
	})
	return wire.FilesIn(rows), err
}

// PremisEvents implements registry.Reading.
func (s *Store) PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error) {
	return call[registry.Page[registry.Premis]](ctx, s, "premis-events", wire.PremisRequest{ObjectID: objectID, After: after, Limit: limit})
}

// Restorations implements registry.Reading.
func (s *Store) Restorations(ctx context.Context, objectID string, before, limit int) ([]registry.Restoration, error) {
	return list[registry.Restoration](ctx, s, "restorations", wire.RestorationsRequest{ObjectID: objectID, Before: before, Limit: limit})
}

// RestorationOf implements registry.Reading.
func (s *Store) RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error) {
	return call[registry.Restoration](ctx, s, "restoration", wire.ByID{ID: itemID})
}

// DepositReceipt implements registry.Attesting.
func (s *Store) DepositReceipt(ctx context.Context, objectID string, version int) (registry.DepositReceipt, error) {
	return call[registry.DepositReceipt](ctx, s, "deposit-receipt", wire.VersionRef{ObjectID: objectID, Version: version})
}

// ReceiptKeys implements registry.Attesting.
func (s *Store) ReceiptKeys(ctx context.Context) ([]registry.ReceiptKey, error) {
	return list[registry.ReceiptKey](ctx, s, "receipt-keys", wire.Nothing{})
}

// Collection implements registry.Reading.
func (s *Store) Collection(ctx context.Context, mnemonic string) (registry.Collection, error) {
	return call[registry.Collection](ctx, s, "collection", wire.ByID{ID: mnemonic})
}

// ProfileVersions implements registry.Reading.
func (s *Store) ProfileVersions(ctx context.Context, mnemonic string, before, limit int) ([]registry.ProfileVersion, error) {
	return list[registry.ProfileVersion](ctx, s, "profile-versions", wire.ProfileVersionsRequest{Mnemonic: mnemonic, Before: before, Limit: limit})
}

// Collections implements registry.Reading.
func (s *Store) Collections(ctx context.Context) ([]registry.Collection, error) {
	return list[registry.Collection](ctx, s, "collections", wire.Nothing{})
}

// Workers implements registry.Reading.
func (s *Store) Workers(ctx context.Context) ([]registry.WorkerInfo, error) {
	return list[registry.WorkerInfo](ctx, s, "workers", wire.Nothing{})
}

// Ping implements registry.Reading.
func (s *Store) Ping(ctx context.Context) error {
	_, err := call[wire.Nothing](ctx, s, "ping", wire.Nothing{})
	return err
}
