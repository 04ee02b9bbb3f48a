// Package scope limits a Registry to what the caller may see.
//
// The API and the pages read through [New], so that no operation can forget whose request it
// answers. For a depositor, what is in another collection is not there: every answer is the one
// that an unknown id gets. Acts of admins and of workers are bound by role (web/api/access), not by
// collection, and pass through.
package scope

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
)

// Registry is all that the API and the pages ask of the Registry.
type Registry interface {
	registry.ForWorkers
	registry.Receiving
	registry.Submitting
	registry.Graphs
	registry.ReportLister
	registry.Profiles
	registry.AttemptReader
	registry.Feeds
	registry.Commanding
	registry.Holding
	registry.Catalog
	registry.Attesting
	registry.Requesting
	registry.Rechecking
	registry.Deciding
	registry.Notifying
	registry.Subscribing
	registry.TokenKeeper
	registry.Secrets
}

// New returns r limited to what the caller in each call's context (web/api/access) may see; without
// a caller, nothing is seen.
//
// It has each method itself that shows something of a collection. One that is added to a role which
// is not embedded does not compile before somebody has thought about it here.
func New(r Registry) Registry {
	return scoped{
		Working: r, Batching: r, Preserving: r, Locking: r, Deleting: r, Checking: r, Restoring: r, Delivering: r, Mailing: r, Unlocking: r,
		Commanding: r, Holding: r, Requesting: r, Rechecking: r, Deciding: r, Notifying: r, Subscribing: r, TokenKeeper: r, Secrets: r,
		all: r,
	}
}

type scoped struct {
	// What workers do.
	registry.Working
	registry.Batching
	registry.Preserving
	registry.Locking
	registry.Deleting
	registry.Checking
	registry.Restoring
	registry.Delivering
	registry.Mailing
	registry.Unlocking
	// What people do.
	registry.Commanding
	registry.Holding
	registry.Requesting
	registry.Rechecking
	registry.Deciding
	registry.Notifying
	registry.Subscribing
	registry.TokenKeeper
	registry.Secrets
	all Registry
}

// sight is what a request may see.
type sight struct {
	all   Registry
	token registry.Token
}

func (s scoped) sight(ctx context.Context) sight { return sight{s.all, access.Of(ctx).Token} }

// within is what lists are limited to; nil does not limit.
func (v sight) within() []string {
	if v.token.Role == "" {
		return []string{}
	}
	return v.token.Within()
}

// limited says that not everything may be seen.
func (v sight) limited() bool { return v.within() != nil }

// sees says whether what is in a collection may be seen.
func (v sight) sees(collection string) bool {
	within := v.within()
	return within == nil || slices.Contains(within, collection)
}

// narrow is a list's own limit and the token's.
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

// absent is the error for what is not there, and for what is not there for this request: nobody can
// tell the two apart.
func absent(what, id string) error { return fmt.Errorf("%s %s: %w", what, id, registry.ErrNotFound) }

// item returns an item that may be seen.
func (v sight) item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := v.all.Item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) || err == nil && !v.sees(it.Collection) {
		return registry.WorkItem{}, absent("item", id)
	}
	return it, err
}

// Past returns an error unless there is, or was before it was purged, such an item in r, a Registry
// of [New]: its events and attempts outlive it, and the events say which collection it was in.
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

// seesItem says whether there is such an item that may be seen.
func (v sight) seesItem(ctx context.Context, id string) (bool, error) {
	_, err := v.item(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// object returns an object that may be seen, without the ids of items that may not.
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

// seenID is the id of an item if that may be seen, else "".
func (v sight) seenID(ctx context.Context, id string) (string, error) {
	if ok, err := v.seesItem(ctx, id); err != nil || !ok {
		return "", err
	}
	return id, nil
}

// anID is what an item's id looks like in a text.
var anID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// masked is a text in which the ids of items that may not be seen are left out: what an item waits
// for may be another collection's.
func (v sight) masked(ctx context.Context, text string) (string, error) {
	if !v.limited() {
		return text, nil
	}
	var failed error
	text = anID.ReplaceAllStringFunc(text, func(id string) string {
		it, err := v.all.Item(ctx, id)
		switch {
		case err == nil && !v.sees(it.Collection):
			return "(of another collection)"
		case err != nil && !errors.Is(err, registry.ErrNotFound):
			failed = err
		}
		return id
	})
	return text, failed
}

// mask masks several texts.
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

// kept are the rows that may be seen.
func kept[T any](rows []T, may func(T) (bool, error)) (out []T, err error) {
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
