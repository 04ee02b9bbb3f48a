package api

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

type failuresInput struct {
	Paging
	Matching
}

// failures groups failed items by what made them fail. The query cause:FINGERPRINT selects a group's items in every other
// operation.
func (s *server) failures(ctx context.Context, in *failuresInput) (*output[registry.Page[registry.FailureGroup]], error) {
	match, wrong := in.query()
	if err := invalid("the failures cannot be grouped", wrong...); err != nil {
		return nil, err
	}
	groups, err := s.registry.Failures(ctx, registry.ItemQuery{Match: match, After: in.After, Limit: in.size()})
	if err != nil {
		return nil, in.badCursor(err)
	}
	return page(groups), nil
}
