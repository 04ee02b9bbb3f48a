// Package result holds what one stage leaves for later ones: durable results of an item, by name.
//
// Each is JSON in the Registry and lives as long as its item, so fields are only added. A stage
// that needs a result which is not there, since a person sent the item past its maker, fails for
// good and says where to requeue it.
//
// It knows the shape of results and reads the lists of files that they name. Who makes them and
// what follows is not its business.
package result

import (
	"errors"

	"github.com/holdfast/holdfast/base"
)

// Of returns a durable result of an earlier stage, which is there unless a person sent the item
// past that stage.
func Of[T any](item *base.Item, name, missing string) (v T, err error) {
	ok, err := item.Result(name, &v)
	if err == nil && !ok {
		err = base.Fatal(errors.New(missing))
	}
	return v, err
}
