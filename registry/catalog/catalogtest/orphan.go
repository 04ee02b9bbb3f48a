package catalogtest

import (
	"encoding/json"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func orphanTests() tests {
	return tests{
		"search_is_an_item": orphanSearch,
		"search_is_bounded": orphanBounds,
	}
}

func orphanSearch(f *fixture) {
	r := registry.OrphanRequest{
		Search: registry.OrphanSearch{Older: 2 * time.Hour, Storages: true, Remove: true, Reason: "the disk is full"}, Actor: "admin", IdempotencyKey: "k",
	}
	it, err := f.Store.SearchOrphans(f.Context(), r)
	f.Must(err)
	again, err := f.Store.SearchOrphans(f.Context(), r)
	f.Must(err)
	if it.ID != again.ID || it.Action != registry.Tidy || it.CreatedBy != "admin" || it.Collection != "" {
		f.Errorf("%+v, and again %s", it, again.ID)
	}
	var spec registry.TidySpec
	f.Must(json.Unmarshal(it.Spec, &spec))
	if diff := cmp.Diff(registry.TidySpec{Orphans: &r.Search}, spec); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	r.Search.Remove = false
	_, err = f.Store.SearchOrphans(f.Context(), r)
	f.Is(err, registry.ErrIdempotencyConflict)
	l := f.Take(registry.Cleanup, it.ID).Lease
	report := registry.OrphanReport{Search: *spec.Orphans, Counts: map[registry.OrphanKind]registry.OrphanCount{registry.OrphanStaged: {Found: 1}}}
	raw, err := json.Marshal(report)
	f.Must(err)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultOrphans: raw}})
	if got := f.Item(it.ID); got.State != registry.StateCompleted || string(got.Results[registry.ResultOrphans]) != string(raw) {
		f.Errorf("%s, %s", got.State, got.Results)
	}
}

func orphanBounds(f *fixture) {
	for _, older := range []time.Duration{0, -time.Hour, registry.LeastOrphanAge - 1} {
		_, err := f.Store.SearchOrphans(f.Context(), registry.OrphanRequest{Search: registry.OrphanSearch{Older: older}, Actor: "admin"})
		f.Is(err, registry.ErrInvalid)
	}
	if left := f.All(registry.ItemQuery{Action: registry.Tidy}); len(left) > 0 {
		f.Errorf("items %+v", left)
	}
}
