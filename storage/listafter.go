package storage

import (
	"context"
	"iter"
)

// AfterLister is implemented by stores that can start a listing after a key.
type AfterLister interface {
	// ListAfter is List for the keys greater than after.
	ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
}

// ListAfter yields what List does, from the first key greater than after. For a store that is no
// [AfterLister] it lists from the start and skips.
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
