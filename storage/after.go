package storage

import (
	"context"
	"iter"
)

// AfterLister is implemented by stores that can begin a listing in its middle.
type AfterLister interface {
	// ListAfter is List of the keys behind after alone.
	ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
}

// ListAfter yields what List does, from the first key behind after on. A store that is no
// [AfterLister] is listed from its beginning.
func ListAfter(ctx context.Context, s Store, prefix, after string) iter.Seq2[Info, error] {
	if l, ok := s.(AfterLister); ok && after != "" {
		return l.ListAfter(ctx, prefix, after)
	}
	return func(yield func(Info, error) bool) {
		for info, err := range s.List(ctx, prefix) {
			if (err != nil || info.Key > after) && !yield(info, err) {
				return
			}
		}
	}
}
