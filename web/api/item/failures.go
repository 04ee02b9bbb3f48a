package item

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

type failuresInput struct {
	endpoint.Paging
	endpoint.Matching
}

// failures groups failed items by cause. In other operations the query cause:FINGERPRINT selects a
// group's items.
func (s *Service) failures(ctx context.Context, in *failuresInput) (*endpoint.Output[registry.Page[registry.FailureGroup]], error) {
	match, wrong := in.Query()
	if err := endpoint.Invalid("the failures were not grouped", wrong...); err != nil {
		return nil, err
	}
	groups, err := s.Registry.Failures(ctx, registry.ItemQuery{Match: match, After: in.After, Limit: in.Size()})
	if err != nil {
		return nil, in.BadCursor(err)
	}
	return endpoint.Page(groups), nil
}
