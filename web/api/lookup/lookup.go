// Package lookup finds the things that a request names. If one is missing, it returns a problem
// that says what to do. It reads through a Registry that is limited to what the caller may see.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// ItemID names an item in a path.
type ItemID struct {
	ID string `path:"id" maxLength:"200"`
}

// ObjectID names an object in a path.
type ObjectID struct {
	ID string `path:"id" maxLength:"4096" doc:"The object's ARK, percent-encoded"`
}

// CollectionName names a collection in a path.
type CollectionName struct {
	Name string `path:"name" maxLength:"200"`
}

// Batch returns a batch, or a problem if there is none.
func Batch(ctx context.Context, r registry.ItemReader, id string) (registry.WorkItem, error) {
	it, err := r.Item(ctx, id)
	if err != nil {
		return it, err
	}
	if it.Action != registry.Batch {
		return it, endpoint.NotFound("item %s is not a batch but of action %s; see /items/%s", id, it.Action, id)
	}
	return it, nil
}

// Object returns an object by its ARK, in any spelling.
func Object(ctx context.Context, r registry.Inventory, id string) (registry.Object, error) {
	ark, err := noid.ParseARK(id)
	if err != nil {
		return registry.Object{}, endpoint.Invalid("the object was not found", wire.Fault{
			Location: "path.id", Message: err.Error() + "; give the object's ARK, such as ark:/99999/fk4m90r79g (percent-encoded in an address)", Found: id,
		})
	}
	name := ark.ObjectID()
	o, err := r.Object(ctx, name)
	if errors.Is(err, registry.ErrNotFound) {
		return o, endpoint.NotFound("object %s was not found; check the ARK, or list the objects", name)
	}
	return o, err
}

// Readable is [Object] for reading content. For a deleted object it returns a problem with status
// 410 that says who deleted it and why.
func Readable(ctx context.Context, r registry.Inventory, id string) (registry.Object, error) {
	o, err := Object(ctx, r, id)
	if err == nil && o.Gone != "" {
		err = wire.NewProblem(http.StatusGone, wire.CodeGone, fmt.Sprintf("object %s was deleted: %s", o.ID, o.Deletion.Text()))
	}
	return o, err
}

// Version returns an object with Head set to the given version; 0 is the newest.
func Version(ctx context.Context, r registry.Inventory, id string, version int) (registry.Object, error) {
	o, err := Object(ctx, r, id)
	if err != nil || version == 0 {
		return o, err
	}
	if version < 0 || version > o.Head {
		return o, endpoint.NotFound("object %s has no version %d; its newest is %d", o.ID, version, o.Head)
	}
	o.Head = version
	return o, nil
}

// Collection returns a collection, or a problem that lists the existing ones.
func Collection(ctx context.Context, r registry.Profiles, name string) (registry.Collection, error) {
	c, err := r.Collection(ctx, name)
	if !errors.Is(err, registry.ErrNotFound) {
		return c, err
	}
	all, err := r.Collections(ctx)
	if err != nil {
		return c, err
	}
	const shown = 20
	names := make([]string, 0, shown)
	for _, known := range all {
		if len(names) == shown {
			names = append(names, "...")
			break
		}
		names = append(names, known.Mnemonic)
	}
	return c, endpoint.NotFound("collection %q was not found; use one of %s, or ask an admin to create it",
		name, strings.Join(names, ", "))
}
