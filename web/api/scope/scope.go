// Package scope limits a Registry to what the caller may see.
//
// The API and the pages read through [New], so that no operation can forget to check the caller.
// For a depositor, things in other collections do not exist: every answer about them is that of an
// unknown id. Acts of admins and workers are limited by role (web/api/access), not by collection,
// and pass through.
package scope

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/survey"
	"github.com/holdfast/holdfast/web/api/access"
)

// Registry is all that the API and the pages need of the Registry.
type Registry interface {
	registry.ForWorkers
	registry.Receiving
	registry.Submitting
	registry.Graphs
	registry.Tasking
	registry.StepReader
	registry.Scheduling
	registry.Processing
	registry.ReportLister
	registry.CorrectionReader
	registry.Profiles
	registry.AttemptReader
	registry.Explaining
	registry.Feeds
	registry.Accessing
	registry.Commanding
	registry.Holding
	registry.Limiting
	registry.ThroughputReader
	registry.HoldingsReader
	registry.Catalog
	registry.Evidencing
	registry.Attesting
	registry.Requesting
	registry.Rechecking
	registry.Storing
	registry.Deciding
	registry.Notifying
	registry.Subscribing
	registry.TokenKeeper
	registry.ViewKeeper
	registry.Secrets
	survey.Reader
}

// New returns r limited to what the caller in each call's context (web/api/access) may see. Without
// a caller, nothing is visible.
//
// Every method that shows something of a collection is written here. A new method of a role that is
// not embedded does not compile until it is added here.
func New(r Registry) Registry {
	return scoped{
		Working: r, Serving: r, Stepping: r, Batching: r, Preserving: r, EventsSigning: r, Locking: r, Deleting: r, Checking: r, Copying: r, Restoring: r, Delivering: r, Mailing: r, Unlocking: r,
		Accessing: r, Commanding: r, Holding: r, Requesting: r, Rechecking: r, Storing: r, Deciding: r, Notifying: r, Subscribing: r, Scheduling: r, TokenKeeper: r, Secrets: r, Reader: r,
		all: r,
	}
}

type scoped struct {
	// Methods of workers pass through.
	registry.Working
	registry.Serving
	registry.Stepping
	registry.Batching
	registry.Preserving
	registry.EventsSigning
	registry.Locking
	registry.Deleting
	registry.Checking
	registry.Copying
	registry.Restoring
	registry.Delivering
	registry.Mailing
	registry.Unlocking
	// Acts of people pass through.
	registry.Accessing
	registry.Commanding
	registry.Holding
	registry.Requesting
	registry.Rechecking
	registry.Storing
	registry.Deciding
	registry.Notifying
	registry.Subscribing
	registry.Scheduling
	registry.TokenKeeper
	registry.Secrets
	// Reports are for those who see everything.
	survey.Reader
	all Registry
}

// sight is what the caller of a request may see.
type sight struct {
	all   Registry
	token registry.Token
}

func (s scoped) sight(ctx context.Context) sight { return sight{s.all, access.Of(ctx).Token} }

// within returns the collections to which lists are limited; nil means no limit.
func (v sight) within() []string {
	if v.token.Role == "" {
		return []string{}
	}
	return v.token.Within()
}

// limited reports whether the caller may not see everything.
func (v sight) limited() bool { return v.within() != nil }

// sees reports whether the caller may see things in a collection.
func (v sight) sees(collection string) bool {
	within := v.within()
	return within == nil || slices.Contains(within, collection)
}

// narrow returns the collections that both a query and the caller's token allow.
func (v sight) narrow(asked []string) []string {
	within := v.within()
	switch {
	case within == nil:
		return asked
	case asked == nil:
		return within
	}
	return slices.DeleteFunc(slices.Clone(within), func(c string) bool { return !slices.Contains(asked, c) })
}

// absent is the error for things that do not exist, and for things that the caller may not see: the
// two must look the same.
func absent(what, id string) error { return fmt.Errorf("%s %s: %w", what, id, registry.ErrNotFound) }

// item returns an item that the caller may see.
func (v sight) item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := v.all.Item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) || err == nil && !v.sees(it.Collection) {
		return registry.WorkItem{}, absent("item", id)
	}
	return it, err
}

// Past returns nil if an item exists in r, a Registry of [New], or existed before it was purged.
// Events and attempts outlive the item, and the events name its collection.
func Past(ctx context.Context, r interface {
	Item(ctx context.Context, id string) (registry.WorkItem, error)
	Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error)
}, id string,
) error {
	_, err := r.Item(ctx, id)
	if !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	purges, failed := r.Feed(ctx, registry.FeedQuery{ItemID: id, Types: []string{string(registry.ActPurge)}, Limit: 1})
	if failed != nil {
		return failed
	}
	if len(purges) == 0 {
		return err
	}
	return nil
}

// seesItem reports whether an item exists and the caller may see it.
func (v sight) seesItem(ctx context.Context, id string) (bool, error) {
	_, err := v.item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// object returns an object that the caller may see, without the ids of items that the caller may
// not see.
func (v sight) object(ctx context.Context, id string) (registry.Object, error) {
	o, err := v.all.Object(ctx, id)
	if errors.Is(err, registry.ErrNotFound) || err == nil && !v.sees(o.Collection) {
		return registry.Object{}, absent("object", id)
	}
	if err != nil || !v.limited() {
		return o, err
	}
	if o.Deletion != nil {
		if o.Deletion.ItemID, err = v.seenID(ctx, o.Deletion.ItemID); err != nil {
			return registry.Object{}, err
		}
	}
	for i := range o.Versions {
		if o.Versions[i].ItemID, err = v.seenID(ctx, o.Versions[i].ItemID); err != nil {
			return registry.Object{}, err
		}
	}
	return o, nil
}

// seenID returns an item's id if the caller may see the item, and "" otherwise.
func (v sight) seenID(ctx context.Context, id string) (string, error) {
	if ok, err := v.seesItem(ctx, id); err != nil || !ok {
		return "", err
	}
	return id, nil
}

// anID matches an item's id in a text.
var anID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// foreign returns an item if it exists and the caller may not see it.
func (v sight) foreign(ctx context.Context, id string) (it registry.WorkItem, foreign bool, err error) {
	if !v.limited() || id == "" {
		return it, false, nil
	}
	it, err = v.all.Item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return it, false, nil
	}
	return it, err == nil && !v.sees(it.Collection), err
}

// masked replaces in a text the ids of items that the caller may not see, with the names that follow
// them: "ID (NAME)". For example, an item may wait for one of another collection.
func (v sight) masked(ctx context.Context, text string) (string, error) {
	if !v.limited() {
		return text, nil
	}
	for _, id := range anID.FindAllString(text, -1) {
		it, foreign, err := v.foreign(ctx, id)
		if err != nil {
			return "", err
		}
		if foreign {
			text = strings.ReplaceAll(text, id+" ("+it.Name+")", registry.Foreign)
			text = strings.ReplaceAll(text, id, registry.Foreign)
		}
	}
	return text, nil
}

// mask masks several texts in place.
func (v sight) mask(ctx context.Context, texts ...*string) error {
	for _, t := range texts {
		masked, err := v.masked(ctx, *t)
		if err != nil {
			return err
		}
		*t = masked
	}
	return nil
}

// filter returns the rows that the caller may see.
func filter[T any](rows []T, may func(T) (bool, error)) (out []T, err error) {
	for _, r := range rows {
		ok, err := may(r)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, r)
		}
	}
	return out, nil
}
