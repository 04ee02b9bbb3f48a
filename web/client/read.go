package client

import (
	"context"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Item returns an item; a *Problem that is registry.ErrNotFound if there is none. Secrets in its
// address are removed.
func (c *Client) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := c.WholeItem(ctx, id)
	return it.WorkItem, err
}

// WholeItem returns an item with its deliveries and resume point.
func (c *Client) WholeItem(ctx context.Context, id string) (wire.Item, error) {
	return get[wire.Item](ctx, c, in("items", id), nil)
}

// Items lists items, newest first; the jobs of a batch (ParentID) in row order. It reads in both
// directions.
func (c *Client) Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
	order := ""
	if q.Oldest {
		order = "oldest"
	}
	return get[registry.Page[registry.WorkItem]](ctx, c, "/items", values(
		"action", string(q.Action), "parent", q.ParentID, "collection", q.Collection, "status", string(q.Status),
		"stage", string(q.Stage), "text", q.Text, "q", q.Match.String(), "after", q.After, "before", q.Before, "order", order, "limit", number(q.Limit)))
}

// WhyEach says in a phrase what each unsettled item of a list waits for. It omits the others.
func (c *Client) WhyEach(ctx context.Context, ids []string) ([]registry.Why, error) {
	list, err := get[registry.Page[registry.Why]](ctx, c, "/items/reasons", values("ids", join(ids)))
	return list.Rows, err
}

// CountItems counts the items that a query selects, by state. The other fields of q become terms of
// q.Match. Within and paging are not sent: the server limits the answer to what the token may see.
func (c *Client) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	counts, err := get[wire.ItemCounts](ctx, c, "/items/count", values("q", inTerms(q).String(), "most", number(q.Most)))
	return counts.States, err
}

// Failures groups the failed items that a query selects by cause, the largest group first. The
// fields of q are sent as in CountItems. After is Next of the previous page.
func (c *Client) Failures(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
	return get[registry.Page[registry.FailureGroup]](ctx, c, "/failures", values(
		"q", inTerms(q).String(), "after", q.After, "limit", number(q.Limit)))
}

// inTerms returns q.Match with the other fields of q as terms.
func inTerms(q registry.ItemQuery) registry.Query {
	match := q.Match
	for _, t := range []registry.Term{
		{Field: "action", Value: string(q.Action)},
		{Field: "batch", Value: q.ParentID},
		{Field: "collection", Value: q.Collection},
		{Field: "status", Value: string(q.Status)},
		{Field: "stage", Value: string(q.Stage)},
		{Value: q.Text},
	} {
		if t.Value != "" {
			match.Terms = append(slices.Clip(match.Terms), t)
		}
	}
	return match
}

// Batch returns a batch; a *Problem that is registry.ErrNotFound if there is none of this id.
func (c *Client) Batch(ctx context.Context, id string) (registry.WorkItem, error) {
	return get[registry.WorkItem](ctx, c, in("batches", id), nil)
}

// BatchProgress returns the progress of a batch's jobs.
func (c *Client) BatchProgress(ctx context.Context, id string) (registry.BatchProgress, error) {
	return get[registry.BatchProgress](ctx, c, in("batches", id, "progress"), nil)
}

// BatchJobs lists the jobs of a batch in their present state, in row order. After is Next of the
// previous page. Limit 0 means 50.
func (c *Client) BatchJobs(ctx context.Context, id, after string, limit int) (registry.Page[registry.JobResult], error) {
	return get[registry.Page[registry.JobResult]](ctx, c, in("batches", id, "jobs"), values("after", after, "limit", number(limit)))
}

// ReportOf returns a batch's stored report; closing 0 is the latest. It returns
// registry.ErrNotFound before the first report.
func (c *Client) ReportOf(ctx context.Context, batchID string, closing int64) (registry.BatchReport, error) {
	return get[registry.BatchReport](ctx, c, in("batches", batchID, "report"), values("closing", number(closing)))
}

// Reports lists a batch's stored reports, newest first: those of closings below before, or all if
// before is 0.
func (c *Client) Reports(ctx context.Context, batchID string, before int64, limit int) ([]registry.BatchReport, error) {
	p, err := get[registry.Page[registry.BatchReport]](ctx, c, in("batches", batchID, "reports"),
		values("before", number(before), "limit", number(limit)))
	return p.Rows, err
}

// ReportJobs lists the jobs of a stored report that q selects, in row order.
func (c *Client) ReportJobs(ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error) {
	query := values("closing", number(q.Closing), "list", string(q.List), "after", number(q.AfterRow), "limit", number(q.Limit))
	if len(q.Changes) > 0 {
		query.Set("change", join(q.Changes))
	}
	if q.Repeats {
		query.Set("repeats", "true")
	}
	p, err := get[registry.Page[registry.JobResult]](ctx, c, in("batches", q.BatchID, "report", "jobs"), query)
	return p.Rows, err
}

// Why explains what an unsettled item waits for.
func (c *Client) Why(ctx context.Context, id string) (registry.Why, error) {
	return get[registry.Why](ctx, c, in("items", id, "why"), nil)
}

// Events lists an item's events after a feed cursor, oldest first. If itemID is "", it lists the
// events of all items.
func (c *Client) Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error) {
	if itemID == "" {
		return c.Feed(ctx, registry.FeedQuery{After: after, Limit: limit})
	}
	p, err := get[registry.Page[registry.Event]](ctx, c, in("items", itemID, "history"), values("after", number(after), "limit", number(limit)))
	return p.Rows, err
}

// Attempts lists an item's attempts, oldest first.
func (c *Client) Attempts(ctx context.Context, itemID string) ([]registry.Attempt, error) {
	p, err := get[registry.Page[registry.Attempt]](ctx, c, in("items", itemID, "attempts"), nil)
	return p.Rows, err
}

// Log lists what the attempts of an item logged.
func (c *Client) Log(ctx context.Context, q registry.LogQuery) (registry.Page[registry.LogLine], error) {
	query := values("after", q.After, "limit", number(q.Limit))
	if q.Newest {
		query.Set("newest", "true")
	}
	return get[registry.Page[registry.LogLine]](ctx, c, in("items", q.ItemID, "log"), query)
}

// Collection returns a collection. The error for an unknown one lists the known ones.
func (c *Client) Collection(ctx context.Context, mnemonic string) (registry.Collection, error) {
	return get[registry.Collection](ctx, c, in("collections", mnemonic), nil)
}

// ProfileVersions lists the versions of a collection's profile, newest first: those with a number
// below before, or all if before is 0.
func (c *Client) ProfileVersions(ctx context.Context, mnemonic string, before, limit int) ([]registry.ProfileVersion, error) {
	p, err := get[registry.Page[registry.ProfileVersion]](ctx, c, in("collections", mnemonic, "versions"), values("after", number(before), "limit", number(limit)))
	return p.Rows, err
}

// ProfileVersion returns one version of a collection's profile.
func (c *Client) ProfileVersion(ctx context.Context, mnemonic string, version int) (registry.ProfileVersion, error) {
	return get[registry.ProfileVersion](ctx, c, in("collections", mnemonic, "versions", strconv.Itoa(version)), nil)
}

// Collections lists all collections by mnemonic.
func (c *Client) Collections(ctx context.Context) ([]registry.Collection, error) {
	p, err := get[registry.Page[registry.Collection]](ctx, c, "/collections", nil)
	return p.Rows, err
}

// Holds lists all holds.
func (c *Client) Holds(ctx context.Context) ([]registry.Hold, error) {
	p, err := get[registry.Page[registry.Hold]](ctx, c, "/holds", nil)
	return p.Rows, err
}
