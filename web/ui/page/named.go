package page

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// IDsAsked is for how many items [Site.ItemsOf] can ask at once. A query of so many ids is not longer
// than a query may be.
const IDsAsked = 50

// ItemsOf reads the items of a list's rows by id, with one request, so that the list can name them. It
// leaves out items that are unknown or that the viewer may not see, and ids after the first [IDsAsked].
func (s *Site) ItemsOf(ctx context.Context, ids []string) (map[string]registry.WorkItem, error) {
	items := map[string]registry.WorkItem{}
	ids = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(ids))), func(id string) bool { return !registry.IDStart(id) })
	ids = ids[:min(len(ids), IDsAsked)]
	if len(ids) == 0 {
		return items, nil
	}
	byID := registry.Query{Terms: []registry.Term{{Field: "id", Value: strings.Join(ids, ",")}}}
	list, err := s.API.Items(ctx, registry.ItemQuery{Match: byID, Limit: IDsAsked})
	if err != nil {
		return nil, err
	}
	for _, it := range list.Rows {
		items[it.ID] = it
	}
	return items, nil
}
