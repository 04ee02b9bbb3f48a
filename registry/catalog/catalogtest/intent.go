package catalogtest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func intentTests() tests {
	return tests{
		"R02_a_repeat_gets_the_plan_announced_first": firstPlan,
		"R02_an_announcement_brings_what_is_small":   announcedWhole,
		"R01_an_open_intent_blocks_others":           intentBlocks,
		"R01_a_version_is_its_heads_successor":       onlySuccessor,
		"R01_only_who_holds_the_lock_announces":      onlyHolder,
		"R07_no_cancel_after_the_intent":             noCancelAfterIntent,
	}
}

func firstPlan(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{"files":1}`)
	if got := f.Intend(c.Lease, ark, 1, `{"files":2}`); string(got.Plan) != `{"files":1}` || got.ObjectID != ark || got.Version != 1 {
		f.Errorf("repeat: %+v, want the first plan", got)
	}
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	l := f.TakeItem(c.Item.ID).Lease
	if got := f.Intend(l, ark, 1, `{"files":3}`); string(got.Plan) != `{"files":1}` {
		f.Errorf("the next attempt: %s, want the first plan", got.Plan)
	}
	f.Record(l, ark, 1)
	if got := f.Intend(l, ark, 1, `{"files":4}`); string(got.Plan) != `{"files":1}` {
		f.Errorf("once recorded: %s, want the first plan", got.Plan)
	}
}

// announcedWhole: an announcement makes the plan a result of the item, and brings the rows of the
// files, which nobody sees before the version is recorded. A repeat gets what was staged first, as
// long as the version is not recorded.
func announcedWhole(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	_, err := f.Store.Intend(f.Context(), c.Lease, registry.Intent{ObjectID: ark, Version: 1})
	f.Is(err, registry.ErrNotFound)
	file := registrytest.File(registrytest.FilePath)
	announce := func(plan, staged string) registry.Intent {
		in, err := f.Store.Intend(f.Context(), c.Lease, registry.Intent{
			ObjectID: ark, Version: 1, Plan: json.RawMessage(plan), Staged: staged, Files: []registry.File{file},
		})
		f.Must(err)
		return in
	}
	for range 2 {
		if got := announce(`{"files":1}`, "inventory"); string(got.Plan) != `{"files":1}` || got.Staged != "inventory" {
			f.Errorf("announced %+v", got)
		}
	}
	if got := announce(`{"files":2}`, "another"); string(got.Plan) != `{"files":1}` || got.Staged != "inventory" {
		f.Errorf("a repeat: %+v, want what was announced first", got)
	}
	if got := f.Item(c.Item.ID).Results[registry.ResultPlan]; string(got) != `{"files":1}` {
		f.Errorf("results[plan]=%s", got)
	}
	if _, err := f.Store.Object(f.Context(), ark); err == nil {
		f.Error("an announced version is shown")
	}
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, []registry.File{file})))
	if files, err := f.Store.Files(f.Context(), ark, 1, "", 10); err != nil || len(files) != 1 || files[0].Path != file.Path {
		f.Errorf("files %+v (%v)", files, err)
	}
	if got := announce(`{"files":1}`, "inventory"); got.Staged != "" {
		f.Errorf("staged %q is kept after the version was recorded", got.Staged)
	}
}

func intentBlocks(f *fixture) {
	c := f.Processing(2)
	id := f.Named(c[0].Lease, "x")
	f.Intend(c[0].Lease, id.ARK, 1, `{}`)
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	_, err := f.Store.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: id.ARK, Version: 1, Plan: json.RawMessage(`{}`)})
	if err == nil {
		f.Error("two items announced one version")
	}
	_, err = f.Store.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: id.ARK, Version: 2, Plan: json.RawMessage(`{}`)})
	if err == nil {
		f.Error("a version was announced over an open one")
	}
}

func onlySuccessor(f *fixture) {
	c := f.Processing(2)
	ark := f.Named(c[0].Lease, "x").ARK
	for _, version := range []int{0, 2} {
		_, err := f.Store.Intend(f.Context(), c[0].Lease, registry.Intent{ObjectID: ark, Version: version, Plan: json.RawMessage(`{}`)})
		f.Is(err, registry.ErrIntentOpen)
	}
	f.Preserve(c[0].Lease, ark, 1)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	f.Named(c[1].Lease, "x")
	_, err := f.Store.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage(`{}`)})
	f.Is(err, registry.ErrIntentOpen)
	f.Preserve(c[1].Lease, ark, 2)
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if o.Head != 2 {
		f.Errorf("head=%d, want 2", o.Head)
	}
}

func onlyHolder(f *fixture) {
	c := f.Processing(2)
	ark := f.Named(c[0].Lease, "x").ARK
	_, err := f.Store.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage(`{}`)})
	f.Is(err, registry.ErrNotFound)
	f.Intend(c[0].Lease, ark, 1, `{}`)
	f.Is(f.Store.RecordFiles(f.Context(), c[1].Lease, ark, 1, []registry.File{{Path: "x"}}), registry.ErrIntentOpen)
	f.Is(f.Store.RecordVersion(f.Context(), c[1].Lease, registry.VersionRecord{ObjectID: ark, Version: 1}), registry.ErrIntentOpen)
	f.Is(f.Store.RecordVersion(f.Context(), c[0].Lease, registry.VersionRecord{ObjectID: ark, Version: 2}), registry.ErrNotFound)
}

func noCancelAfterIntent(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	f.pastNoReturn(c.Item.ID, registry.ActCancel, ark)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.FailItem(c.Item.ID, registry.SystemFault)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.pastNoReturn(c.Item.ID, registry.ActDelete, ark)
	f.Command(c.Item.ID, registry.ActRequeue, "")
	l := f.TakeItem(c.Item.ID).Lease
	f.pastNoReturn(c.Item.ID, registry.ActCancel, ark)
	f.Record(l, ark, 1)
	f.Done(l)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.FailItem(c.Item.ID, registry.SystemFault)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.Command(c.Item.ID, registry.ActRequeue, "")
	f.Finish(c.Item.ID)
}

// pastNoReturn requests an act that is refused because the item has announced a version.
func (f *fixture) pastNoReturn(id string, act registry.Act, object string) {
	f.Helper()
	before := f.Item(id)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: act, Actor: "admin", Confirmed: true})
	var late *registry.PastNoReturn
	if !errors.As(err, &late) || late.ItemID != id || late.ObjectID != object || late.Version != 1 || late.Act != act {
		f.Errorf("%s after the intent: %v", act, err)
	}
	if n := strings.Count(err.Error(), "item "+id); n != 1 {
		f.Errorf("it names the item %d times: %v", n, err)
	}
	if diff := cmp.Diff(before, f.Item(id)); diff != "" {
		f.Errorf("the refused %s changed the item:\n%s", act, diff)
	}
}
