package payload

import (
	"github.com/holdfast/holdfast/registry"
)

// Unfit returns an error that blames the collection's profile as it was when the item was
// submitted. The item keeps that profile, so a requeue does not help after the collection's profile
// is corrected.
func Unfit(err error) error { return unfit{err} }

type unfit struct{ error }

// ErrorCode returns the code from which the remedy follows.
func (unfit) ErrorCode() string { return registry.CodeUnfitProfile }

// Unwrap returns the cause.
func (e unfit) Unwrap() error { return e.error }
