// Package lookup finds the things that a request names, and answers for those that are not there
// with a problem that says what to do. It reads through a Registry that is limited to what the
// caller may see.
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

// Batch returns a batch, or a problem that says that there is none.
func Batch(ctx context.Context, r registry.ItemReader, id string) (registry.WorkItem, error) {
	it, err := r.Item(ctx, id)
	if err != nil {
		return it, err
	}
	if it.Action != registry.Batch {
		return it, endpoint.NotFound("item %s is no batch but of action %s; see /items/%s", id, it.Action, id)
	}
	return it, nil
}

// Object returns the object that an ARK, in whatever spelling, names.
func Object(ctx context.Context, r registry.Inventory, id string) (registry.Object, error) {
	ark, err := noid.ParseARK(id)
	if err != nil {
		return registry.Object{}, endpoint.Invalid("no object can have this id", wire.Fault{
			Location: "path.id", Message: err.Error() + "; give the object's ARK, such as ark:/99999/fk4m90r79g (percent-encoded in an address)", Found: id,
		})
	}
	name := ark.ObjectID()
	o, err := r.Object(ctx, name)
	if errors.Is(err, registry.ErrNotFound) {
		return o, endpoint.NotFound("there is no object %s; check the ARK, or list the objects", name)
	}
	return o, err
}

// Readable is [Object] for an object whose content is asked for: one that was deleted is answered
// with 410, and by whom and why.
func Readable(ctx context.Context, r registry.Inventory, id string) (registry.Object, error) {
	o, err := Object(ctx, r, id)
	if err == nil && o.Gone != "" {
		err = wire.NewProblem(http.StatusGone, wire.CodeGone, fmt.Sprintf("object %s is no more: %s", o.ID, o.Deletion.Text()))
	}
	return o, err
}

// Version returns an object with Head set to the version asked for, 0 being the newest.
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

// Collection returns a collection, or a problem that names those there are.
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
	return c, endpoint.NotFound("there is no collection %q; use one of those there are (%s), or have an admin create it",
		name, strings.Join(names, ", "))
}
