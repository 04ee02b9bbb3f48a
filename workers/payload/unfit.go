package payload

import (
	"github.com/holdfast/holdfast/registry"
)

// Unfit returns an error that blames the profile of an item's collection, as it was when the item was submitted. The item keeps that
// profile, so a requeue does not help when the collection's is mended.
func Unfit(err error) error { return unfit{err} }

type unfit struct{ error }

// ErrorCode says so in one word, from which follows what puts it right.
func (unfit) ErrorCode() string { return registry.CodeUnfitProfile }

// Unwrap returns what is wrong.
func (e unfit) Unwrap() error { return e.error }

// changedManifest says that a manifest whose staged copy is gone is another one at its address by now.
type changedManifest struct{ error }

// Remedy says how the item can go on as it began.
func (changedManifest) Remedy() string { return "have the manifest put back as it was at its address" }
