package payload

import (
	"github.com/holdfast/holdfast/registry"
)

// Unfit returns an error that blames the profile of an item's collection, as it was when the item
// was submitted. The item keeps that profile, so a requeue does not help when the collection's is
// mended.
func Unfit(err error) error { return unfit{err} }

type unfit struct{ error }

// ErrorCode says so in one word, from which follows what puts it right.
func (unfit) ErrorCode() string { return registry.CodeUnfitProfile }

// Unwrap returns what is wrong.
func (e unfit) Unwrap() error { return e.error }
