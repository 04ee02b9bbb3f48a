package scope

import (
	"context"
	"errors"
	"maps"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wording"
)

// Item implements registry.ItemReader.
func (s scoped) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	v := s.sight(ctx)
	it, err := v.item(ctx, id)
	if err != nil {
		return it, err
	}
	return it, v.maskItem(ctx, &it)
}

// maskItem removes from an item the ids of items that the caller may not see.
func (v sight) maskItem(ctx context.Context, it *registry.WorkItem) error {
	if !v.limited() {
		return nil
	}
	if it.HeldBy != nil {
		h := *it.HeldBy // several items may share the hold
		it.HeldBy = &h
		if err := v.mask(ctx, &h.Reason); err != nil {
			return err
		}
	}
	return v.mask(ctx, &it.Note)
}

// Items implements registry.ItemReader.
func (s scoped) Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
	v := s.sight(ctx)
	q.Within = v.narrow(q.Within)
	page, err := s.all.Items(ctx, q)
	for i := range page.Rows {
		if err == nil {
			err = v.maskItem(ctx, &page.Rows[i])
		}
	}
	return page, err
}

// WhyEach implements registry.Explaining.
func (s scoped) WhyEach(ctx context.Context, q registry.ReasonQuery) ([]registry.Why, error) {
	v := s.sight(ctx)
	q.Within = v.narrow(q.Within)
	reasons, err := s.all.WhyEach(ctx, q)
	for i := range reasons {
		if err == nil {
			err = v.maskWhy(ctx, &reasons[i])
		}
	}
	return reasons, err
}

// maskWhy removes from an explanation what names items that the caller may not see.
func (v sight) maskWhy(ctx context.Context, w *registry.Why) error {
	if !v.limited() {
		return nil
	}
	for _, all := range [][]registry.Statement{w.Because, w.Helps} {
		for i := range all {
			if err := v.maskStatement(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	wording.Say(w)
	return v.mask(ctx, &w.Actor)
}

func (v sight) maskStatement(ctx context.Context, s *registry.Statement) error {
	for i, o := range s.Items {
		_, foreign, err := v.foreign(ctx, o.ID)
		if err == nil && foreign {
			s.Items[i] = registry.Obstacle{State: o.State, NextTry: o.NextTry, Step: o.Step}
		} else if err == nil {
			err = v.mask(ctx, &s.Items[i].Note)
		}
		if err != nil {
			return err
		}
	}
	if s.Hold != nil {
		hold := *s.Hold
		s.Hold = &hold
		if err := v.mask(ctx, &hold.Key, &hold.Reason); err != nil {
			return err
		}
	}
	if s.Remedy != nil {
		if err := v.mask(ctx, &s.Remedy.Text); err != nil {
			return err
		}
	}
	return v.mask(ctx, &s.Name, &s.Text)
}

// CountItems implements registry.ItemReader.
func (s scoped) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	q.Within = s.sight(ctx).narrow(q.Within)
	return s.all.CountItems(ctx, q)
}

// Failures implements registry.ItemReader.
func (s scoped) Failures(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
	v := s.sight(ctx)
	q.Within = v.narrow(q.Within)
	page, err := s.all.Failures(ctx, q)
	for i := range page.Rows {
		if err == nil {
			err = v.mask(ctx, &page.Rows[i].Note, &page.Rows[i].Act, &page.Rows[i].Remedy.Text)
		}
	}
	return page, err
}

// Graph implements registry.Graphs. It omits items that the caller may not see, and their edges.
func (s scoped) Graph(ctx context.Context, id string) (registry.GraphView, error) {
	v := s.sight(ctx)
	g, err := s.all.Graph(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return registry.GraphView{}, absent("graph", id)
	}
	if err != nil || !v.limited() {
		return g, err
	}
	seen := map[string]bool{}
	g.Items, _ = filter(g.Items, func(it registry.WorkItem) (bool, error) {
		seen[it.ID] = v.sees(it.Collection)
		return seen[it.ID], nil
	})
	if len(g.Items) == 0 {
		return registry.GraphView{}, absent("graph", id)
	}
	for i := range g.Items {
		if err := v.maskItem(ctx, &g.Items[i]); err != nil {
			return registry.GraphView{}, err
		}
	}
	maps.DeleteFunc(g.Keys, func(id, _ string) bool { return !seen[id] })
	may := func(id string) (bool, error) {
		if ok, known := seen[id]; known {
			return ok, nil
		}
		return v.seesItem(ctx, id) // an item outside the graph
	}
	g.Edges, err = filter(g.Edges, func(e registry.Edge) (bool, error) {
		if ok, err := may(e.ItemID); err != nil || !ok {
			return false, err
		}
		return may(e.RequiresID)
	})
	return g, err
}

// GraphNodes implements registry.Graphs. It omits items that the caller may not see, and their edges.
func (s scoped) GraphNodes(ctx context.Context, graphID, after string, limit int) (registry.GraphPart, error) {
	v := s.sight(ctx)
	for {
		p, err := s.all.GraphNodes(ctx, graphID, after, limit)
		if errors.Is(err, registry.ErrNotFound) {
			return registry.GraphPart{}, absent("graph", graphID)
		}
		if err != nil || !v.limited() {
			return p, err
		}
		if err := v.part(ctx, &p); err != nil {
			return registry.GraphPart{}, err
		}
		last := ""
		for _, n := range p.Nodes {
			if !n.Outside {
				last = n.Key
			}
		}
		switch {
		case last == "" && p.Next == "":
			// A graph with nothing that the caller may see does not exist for the caller.
			_, err := s.Graph(ctx, graphID)
			return p, err
		case last == "":
			after = p.Next // the caller may see nothing of this page
		default:
			if p.Next != "" {
				p.Next = last // the cursor must not be the key of an item that the caller may not see
			}
			return p, nil
		}
	}
}

// Around implements registry.Graphs. It omits items that the caller may not see, and their edges.
func (s scoped) Around(ctx context.Context, itemID string, limit int) (registry.GraphPart, error) {
	v := s.sight(ctx)
	if _, err := v.item(ctx, itemID); err != nil {
		return registry.GraphPart{}, err
	}
	p, err := s.all.Around(ctx, itemID, limit)
	if err != nil || !v.limited() {
		return p, err
	}
	return p, v.part(ctx, &p)
}

// part removes from a part of a graph what the caller may not see. Nodes has both ends of each edge.
func (v sight) part(ctx context.Context, p *registry.GraphPart) error {
	seen := map[string]bool{}
	p.Nodes, _ = filter(p.Nodes, func(n registry.GraphNode) (bool, error) {
		seen[n.ID] = v.sees(n.Collection)
		return seen[n.ID], nil
	})
	for i := range p.Nodes {
		if err := v.maskItem(ctx, &p.Nodes[i].WorkItem); err != nil {
			return err
		}
	}
	p.Edges, _ = filter(p.Edges, func(e registry.Edge) (bool, error) { return seen[e.ItemID] && seen[e.RequiresID], nil })
	return nil
}

// Edges implements registry.Graphs. It omits edges to items that the caller may not see.
func (s scoped) Edges(ctx context.Context, itemID string) (requires, required []registry.Edge, err error) {
	v := s.sight(ctx)
	if _, err := v.item(ctx, itemID); err != nil {
		return nil, nil, err
	}
	requires, required, err = s.all.Edges(ctx, itemID)
	if err != nil || !v.limited() {
		return requires, required, err
	}
	requires, err = filter(requires, func(e registry.Edge) (bool, error) { return v.seesItem(ctx, e.RequiresID) })
	if err != nil {
		return nil, nil, err
	}
	required, err = filter(required, func(e registry.Edge) (bool, error) { return v.seesItem(ctx, e.ItemID) })
	return requires, required, err
}

// QueueStatus implements registry.Queue. Callers with limited sight see what may hold their own
// items, but not how much others have in the queue.
func (s scoped) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	q, err := s.all.QueueStatus(ctx)
	if v := s.sight(ctx); err != nil || !v.limited() {
		q.Failing = v.subscriptions(q.Failing)
		return q, err
	}
	return registry.QueueStatus{Accepting: q.Accepting, Paused: q.Paused}, nil
}

// Subscriptions implements registry.Subscribing.
func (s scoped) Subscriptions(ctx context.Context) ([]registry.Subscription, error) {
	all, err := s.all.Subscriptions(ctx)
	return s.sight(ctx).subscriptions(all), err
}

// subscriptions returns what the caller may see of subscriptions. Callers with limited sight see
// none. Callers who cannot change subscriptions see only the receivers' hosts, because the path of
// an address may be a secret.
func (v sight) subscriptions(all []registry.Subscription) []registry.Subscription {
	if v.limited() {
		return nil
	}
	for i := range all {
		if v.token.Role != registry.RoleAdmin {
			all[i].Target = all[i].Receiver()
		}
	}
	return all
}

// Holds implements registry.Queue. Callers with limited sight see the holds that may cover their
// own items, without those on volumes and workers.
func (s scoped) Holds(ctx context.Context) ([]registry.Hold, error) {
	v := s.sight(ctx)
	holds, err := s.all.Holds(ctx)
	if err != nil || !v.limited() {
		return holds, err
	}
	return filter(holds, func(h registry.Hold) (bool, error) {
		switch h.Scope {
		case registry.HoldAll, registry.HoldIngest, registry.HoldStage:
			return len(v.within()) > 0, nil
		case registry.HoldCollection:
			return v.sees(h.Key), nil
		case registry.HoldBatch, registry.HoldItem:
			return v.seesItem(ctx, h.Key)
		case registry.HoldVolume, registry.HoldWorker:
		}
		return false, nil
	})
}

// Throughput implements registry.ThroughputReader. It counts all collections, so callers with limited
// sight get nothing.
func (s scoped) Throughput(ctx context.Context, span registry.ThroughputSpan) (registry.Throughput, error) {
	if s.sight(ctx).limited() {
		return registry.Throughput{}, absent("throughput of the last", string(span))
	}
	return s.all.Throughput(ctx, span)
}

// Holdings implements registry.HoldingsReader. As Throughput, it is about all collections.
func (s scoped) Holdings(ctx context.Context) (registry.Holdings, error) {
	if s.sight(ctx).limited() {
		return registry.Holdings{}, absent("what is kept of", "all collections")
	}
	return s.all.Holdings(ctx)
}

// Storages implements registry.Storing. As Throughput, it is about all collections.
func (s scoped) Storages(ctx context.Context, names []string) (registry.StorageReport, error) {
	if s.sight(ctx).limited() {
		return registry.StorageReport{}, absent("storages of", "all collections")
	}
	return s.all.Storages(ctx, names)
}

// StorageObjects implements registry.Storing. As Throughput, it is about all collections.
func (s scoped) StorageObjects(ctx context.Context, q registry.StorageObjectsQuery) (registry.Page[registry.StorageObject], error) {
	if s.sight(ctx).limited() {
		return registry.Page[registry.StorageObject]{}, absent("copies of", "all collections")
	}
	return s.all.StorageObjects(ctx, q)
}

// SetLimit implements registry.Limiting.
func (s scoped) SetLimit(ctx context.Context, l registry.Limit) error { return s.all.SetLimit(ctx, l) }

// RemoveLimit implements registry.Limiting.
func (s scoped) RemoveLimit(ctx context.Context, scope registry.HoldScope, key, actor string) error {
	return s.all.RemoveLimit(ctx, scope, key, actor)
}

// Limits implements registry.Limiting. Callers with limited sight see those of their collections,
// and those of stages.
func (s scoped) Limits(ctx context.Context) ([]registry.Limit, error) {
	v := s.sight(ctx)
	limits, err := s.all.Limits(ctx)
	if err != nil || !v.limited() {
		return limits, err
	}
	return filter(limits, func(l registry.Limit) (bool, error) {
		if l.Scope == registry.HoldCollection {
			return v.sees(l.Key), nil
		}
		return len(v.within()) > 0, nil
	})
}

// BatchProgress implements registry.ReportReader.
func (s scoped) BatchProgress(ctx context.Context, id string) (registry.BatchProgress, error) {
	v := s.sight(ctx)
	if _, err := v.item(ctx, id); err != nil {
		return registry.BatchProgress{}, err
	}
	p, err := s.all.BatchProgress(ctx, id)
	if err != nil {
		return p, err
	}
	return p, v.mask(ctx, &p.Error)
}

// Why implements registry.ItemReader.
func (s scoped) Why(ctx context.Context, id string) (registry.Why, error) {
	v := s.sight(ctx)
	if _, err := v.item(ctx, id); err != nil {
		return registry.Why{}, err
	}
	w, err := s.all.Why(ctx, id)
	if err != nil {
		return w, err
	}
	return w, v.maskWhy(ctx, &w)
}

// Events implements registry.ItemReader.
func (s scoped) Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error) {
	return s.Feed(ctx, registry.FeedQuery{ItemID: itemID, After: after, Limit: limit})
}

// Feed implements registry.Feeds.
func (s scoped) Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	v := s.sight(ctx)
	q.Within = v.narrow(q.Within)
	events, err := s.all.Feed(ctx, q)
	for i := range events {
		if err == nil {
			var data string
			data, err = v.masked(ctx, string(events[i].Data))
			events[i].Data = []byte(data)
		}
	}
	return events, err
}

// FeedEnd implements registry.Feeds. The cursor reveals nothing of the events before it.
func (s scoped) FeedEnd(ctx context.Context) (int64, error) { return s.all.FeedEnd(ctx) }

// AwaitFeed implements registry.Feeds.
func (s scoped) AwaitFeed(ctx context.Context, after int64) error { return s.all.AwaitFeed(ctx, after) }

// Accepting implements registry.Submitting. Everybody who may submit sees it.
func (s scoped) Accepting(ctx context.Context) (registry.Accepting, error) {
	return s.all.Accepting(ctx)
}

// Audit implements registry.Feeds. It is empty for callers with limited sight.
func (s scoped) Audit(ctx context.Context, q registry.AuditQuery) (registry.Page[registry.Event], error) {
	if s.sight(ctx).limited() {
		return registry.Page[registry.Event]{}, nil
	}
	return s.all.Audit(ctx, q)
}

// Attempts implements registry.AttemptReader. It also returns the attempts of a purged item.
func (s scoped) Attempts(ctx context.Context, itemID string) ([]registry.Attempt, error) {
	v := s.sight(ctx)
	if v.limited() {
		if err := Past(ctx, s, itemID); err != nil {
			return nil, err
		}
	}
	attempts, err := s.all.Attempts(ctx, itemID)
	for i := range attempts {
		if err == nil {
			err = v.mask(ctx, &attempts[i].Error)
		}
	}
	return attempts, err
}

// Log implements registry.AttemptReader. It is empty for a purged item.
func (s scoped) Log(ctx context.Context, q registry.LogQuery) (registry.Page[registry.LogLine], error) {
	v := s.sight(ctx)
	if v.limited() {
		if err := Past(ctx, s, q.ItemID); err != nil {
			return registry.Page[registry.LogLine]{}, err
		}
	}
	page, err := s.all.Log(ctx, q)
	for i := range page.Rows {
		if err == nil {
			err = v.mask(ctx, &page.Rows[i].Text)
		}
	}
	return page, err
}

// ReportOf implements registry.ReportReader.
func (s scoped) ReportOf(ctx context.Context, batchID string, closing int64) (registry.BatchReport, error) {
	if _, err := s.sight(ctx).item(ctx, batchID); err != nil {
		return registry.BatchReport{}, err
	}
	return s.all.ReportOf(ctx, batchID, closing)
}

// Reports implements registry.ReportLister.
func (s scoped) Reports(ctx context.Context, batchID string, before int64, limit int) ([]registry.BatchReport, error) {
	if _, err := s.sight(ctx).item(ctx, batchID); err != nil {
		return nil, err
	}
	return s.all.Reports(ctx, batchID, before, limit)
}

// CorrectedJobs implements registry.CorrectionReader.
func (s scoped) CorrectedJobs(ctx context.Context, batchID string, ids []string) (map[string]string, error) {
	if _, err := s.sight(ctx).item(ctx, batchID); err != nil {
		return nil, err
	}
	return s.all.CorrectedJobs(ctx, batchID, ids)
}

// JudgeCorrection implements registry.CorrectionReader. The batch to correct must be of the collection,
// so only that one is looked for.
func (s scoped) JudgeCorrection(ctx context.Context, collection string, c registry.Corrects) error {
	if _, err := s.Collection(ctx, collection); err != nil {
		return err
	}
	return s.all.JudgeCorrection(ctx, collection, c)
}

// ReportJobs implements registry.ReportReader.
func (s scoped) ReportJobs(ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error) {
	v := s.sight(ctx)
	if _, err := v.item(ctx, q.BatchID); err != nil {
		return nil, err
	}
	jobs, err := s.all.ReportJobs(ctx, q)
	for i := range jobs {
		if err == nil {
			err = v.mask(ctx, &jobs[i].Error, &jobs[i].Fix)
		}
	}
	return jobs, err
}

// Object implements registry.Inventory.
func (s scoped) Object(ctx context.Context, id string) (registry.Object, error) {
	return s.sight(ctx).object(ctx, id)
}

// Objects implements registry.Catalog.
func (s scoped) Objects(ctx context.Context, q registry.ObjectQuery) (registry.Page[registry.Object], error) {
	q.Within = s.sight(ctx).narrow(q.Within)
	return s.all.Objects(ctx, q)
}

// Deletions implements registry.Inventory.
func (s scoped) Deletions(ctx context.Context, q registry.DeletionQuery) (registry.Page[registry.Deletion], error) {
	q.Within = s.sight(ctx).narrow(q.Within)
	return s.all.Deletions(ctx, q)
}

// Files implements registry.Inventory.
func (s scoped) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	if _, err := s.sight(ctx).object(ctx, objectID); err != nil {
		return nil, err
	}
	return s.all.Files(ctx, objectID, version, after, limit)
}

// FileChanges implements registry.Catalog.
func (s scoped) FileChanges(ctx context.Context, q registry.FileChangesQuery) (p registry.Page[registry.FileChange], err error) {
	if _, err := s.sight(ctx).object(ctx, q.ObjectID); err != nil {
		return p, err
	}
	return s.all.FileChanges(ctx, q)
}

// FileHistory implements registry.Attesting.
func (s scoped) FileHistory(ctx context.Context, objectID string, after registry.FilePlace, limit int) ([]registry.File, error) {
	if _, err := s.sight(ctx).object(ctx, objectID); err != nil {
		return nil, err
	}
	return s.all.FileHistory(ctx, objectID, after, limit)
}

// PremisEvents implements registry.Evidencing.
func (s scoped) PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error) {
	v := s.sight(ctx)
	if _, err := v.object(ctx, objectID); err != nil {
		return registry.Page[registry.Premis]{}, err
	}
	page, err := s.all.PremisEvents(ctx, objectID, after, limit)
	if err != nil || !v.limited() {
		return page, err
	}
	for i := range page.Rows {
		e := &page.Rows[i]
		if e.ItemID, err = v.seenID(ctx, e.ItemID); err != nil {
			return page, err
		}
		if err := v.mask(ctx, &e.Detail); err != nil {
			return page, err
		}
	}
	return page, nil
}

// Restorations implements registry.Catalog.
func (s scoped) Restorations(ctx context.Context, objectID string, before, limit int) ([]registry.Restoration, error) {
	v := s.sight(ctx)
	if _, err := v.object(ctx, objectID); err != nil {
		return nil, err
	}
	all, err := s.all.Restorations(ctx, objectID, before, limit)
	for i := range all {
		if err == nil {
			err = v.restoration(ctx, &all[i])
		}
	}
	return all, err
}

// RestorationOf implements registry.Inventory.
func (s scoped) RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error) {
	v := s.sight(ctx)
	r, err := s.all.RestorationOf(ctx, itemID)
	if err == nil {
		_, err = v.object(ctx, r.ObjectID)
	}
	if errors.Is(err, registry.ErrNotFound) {
		return registry.Restoration{}, absent("restore by item", itemID)
	} else if err != nil {
		return registry.Restoration{}, err
	}
	return r, v.restoration(ctx, &r)
}

// restoration removes from a restore the ids of items that the caller may not see.
func (v sight) restoration(ctx context.Context, r *registry.Restoration) (err error) {
	if !v.limited() {
		return nil
	}
	if r.ItemID, err = v.seenID(ctx, r.ItemID); err != nil {
		return err
	}
	return v.mask(ctx, &r.Note)
}

// DepositReceipt implements registry.Evidencing.
func (s scoped) DepositReceipt(ctx context.Context, objectID string, version int) (registry.DepositReceipt, error) {
	if _, err := s.sight(ctx).object(ctx, objectID); err != nil {
		return registry.DepositReceipt{}, err
	}
	return s.all.DepositReceipt(ctx, objectID, version)
}

// Tombstone implements registry.Attesting.
func (s scoped) Tombstone(ctx context.Context, objectID string) (string, error) {
	if _, err := s.sight(ctx).object(ctx, objectID); err != nil {
		return "", err
	}
	return s.all.Tombstone(ctx, objectID)
}

// ReceiptKeys implements registry.Attesting. The keys are public.
func (s scoped) ReceiptKeys(ctx context.Context) ([]registry.ReceiptKey, error) {
	return s.all.ReceiptKeys(ctx)
}

// Collection implements registry.Profiles.
func (s scoped) Collection(ctx context.Context, mnemonic string) (registry.Collection, error) {
	c, err := s.all.Collection(ctx, mnemonic)
	if errors.Is(err, registry.ErrNotFound) || err == nil && !s.sight(ctx).sees(c.Mnemonic) {
		return registry.Collection{}, absent("collection", mnemonic)
	}
	return c, err
}

// ProfileVersions implements registry.Profiles.
func (s scoped) ProfileVersions(ctx context.Context, mnemonic string, before, limit int) ([]registry.ProfileVersion, error) {
	if _, err := s.Collection(ctx, mnemonic); err != nil {
		return nil, err
	}
	return s.all.ProfileVersions(ctx, mnemonic, before, limit)
}

// PutCollection implements registry.Profiles. Its role is not limited to collections.
func (s scoped) PutCollection(ctx context.Context, c registry.Collection, actor string) error {
	return s.all.PutCollection(ctx, c, actor)
}

// Collections implements registry.Profiles.
func (s scoped) Collections(ctx context.Context) ([]registry.Collection, error) {
	v := s.sight(ctx)
	all, err := s.all.Collections(ctx)
	if err != nil || !v.limited() {
		return all, err
	}
	return filter(all, func(c registry.Collection) (bool, error) { return v.sees(c.Mnemonic), nil })
}

// Workers implements registry.AttemptReader. Callers with limited sight see only the number of
// workers and what they serve.
func (s scoped) Workers(ctx context.Context) ([]registry.WorkerInfo, error) {
	workers, err := s.all.Workers(ctx)
	if err != nil || !s.sight(ctx).limited() {
		return workers, err
	}
	for i, w := range workers {
		workers[i] = registry.WorkerInfo{Capacity: w.Capacity, Draining: w.Draining, SeenAt: w.SeenAt}
	}
	return workers, nil
}

// Ping implements registry.ForWorkers.
func (s scoped) Ping(ctx context.Context) error { return s.all.Ping(ctx) }

// Deliveries implements registry.DeliveryReader.
func (s scoped) Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error) {
	if v := s.sight(ctx); v.limited() {
		if err := Past(ctx, s, itemID); err != nil {
			return nil, err
		}
	}
	return s.all.Deliveries(ctx, itemID)
}
