// Package result has the durable results that one stage leaves for later ones, by name.
//
// Each is JSON in the Registry and lives as long as its item, so fields are only added. If a person
// requeued an item past a stage, that stage's result may be missing; the stage that needs it fails
// for good and says where to requeue.
//
// The package knows the shape of results and reads the lists of files that they name. It does not
// know who makes them, or what follows from them.
package result

import (
	"errors"

	"github.com/holdfast/holdfast/base"
)

// Of returns a durable result of an earlier stage. It is missing only if a person requeued the item
// past that stage; missing is then the error.
func Of[T any](item *base.Item, name, missing string) (v T, err error) {
	ok, err := item.Result(name, &v)
	if err == nil && !ok {
		err = base.Fatal(errors.New(missing))
	}
	return v, err
}
