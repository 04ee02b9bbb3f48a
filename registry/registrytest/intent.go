package registrytest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func intentTests() []test {
	return []test{
		{"R02_a_repeat_gets_the_plan_announced_first", firstPlan},
		{"R01_an_open_intent_blocks_others", intentBlocks},
		{"R01_a_version_is_its_heads_successor", onlySuccessor},
		{"R01_only_who_holds_the_lock_announces", onlyHolder},
		{"R07_no_cancel_after_the_intent", noCancelAfterIntent},
	}
}

func (f *fixture) intend(l registry.Lease, object string, version int, plan string) registry.Intent {
	f.Helper()
	in, err := f.Intend(f.Context(), l, registry.Intent{ObjectID: object, Version: version, Plan: json.RawMessage(plan)})
	f.must(err)
	return in
}

// record makes an announced version visible.
func (f *fixture) record(l registry.Lease, object string, version int, files ...registry.File) {
	f.Helper()
	f.must(f.RecordFiles(f.Context(), l, object, version, files))
	f.must(f.RecordVersion(f.Context(), l, versionRecord(f, l, object, version, files)))
}

// store announces and records a version.
func (f *fixture) store(l registry.Lease, object string, version int, files ...registry.File) {
	f.Helper()
	f.intend(l, object, version, `{}`)
	f.record(l, object, version, files...)
}

func firstPlan(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{"files":1}`)
	if got := f.intend(c.Lease, ark, 1, `{"files":2}`); string(got.Plan) != `{"files":1}` || got.ObjectID != ark || got.Version != 1 {
		f.Errorf("repeat: %+v, want the first plan", got)
	}
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	l := f.takeItem(c.Item.ID).Lease
	if got := f.intend(l, ark, 1, `{"files":3}`); string(got.Plan) != `{"files":1}` {
		f.Errorf("the next attempt: %s, want the first plan", got.Plan)
	}
	f.record(l, ark, 1)
	if got := f.intend(l, ark, 1, `{"files":4}`); string(got.Plan) != `{"files":1}` {
		f.Errorf("once recorded: %s, want the first plan", got.Plan)
	}
}

func intentBlocks(f *fixture) {
	c := f.processing(2)
	id := f.locks(c[0].Lease, "x")
	f.intend(c[0].Lease, id.ARK, 1, `{}`)
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	_, err := f.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: id.ARK, Version: 1, Plan: json.RawMessage(`{}`)})
	if err == nil {
		f.Error("two items announced one version")
	}
	_, err = f.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: id.ARK, Version: 2, Plan: json.RawMessage(`{}`)})
	if err == nil {
		f.Error("a version was announced over an open one")
	}
}

func onlySuccessor(f *fixture) {
	c := f.processing(2)
	ark := f.locks(c[0].Lease, "x").ARK
	for _, version := range []int{0, 2, -1} {
		_, err := f.Intend(f.Context(), c[0].Lease, registry.Intent{ObjectID: ark, Version: version, Plan: json.RawMessage(`{}`)})
		f.is(err, registry.ErrIntentOpen)
	}
	f.store(c[0].Lease, ark, 1)
	f.done(c[0].Lease)
	f.finish(c[0].Item.ID)
	f.locks(c[1].Lease, "x")
	_, err := f.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage(`{}`)})
	f.is(err, registry.ErrIntentOpen)
	f.store(c[1].Lease, ark, 2)
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if o.Head != 2 {
		f.Errorf("head=%d, want 2", o.Head)
	}
}

func onlyHolder(f *fixture) {
	c := f.processing(2)
	ark := f.locks(c[0].Lease, "x").ARK
	_, err := f.Intend(f.Context(), c[1].Lease, registry.Intent{ObjectID: ark, Version: 1, Plan: json.RawMessage(`{}`)})
	f.is(err, registry.ErrNotFound)
	f.intend(c[0].Lease, ark, 1, `{}`)
	f.is(f.RecordFiles(f.Context(), c[1].Lease, ark, 1, []registry.File{{Path: "x"}}), registry.ErrIntentOpen)
	f.is(f.RecordVersion(f.Context(), c[1].Lease, registry.VersionRecord{ObjectID: ark, Version: 1}), registry.ErrIntentOpen)
	f.is(f.RecordVersion(f.Context(), c[0].Lease, registry.VersionRecord{ObjectID: ark, Version: 2}), registry.ErrNotFound)
}

func noCancelAfterIntent(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	f.pastNoReturn(c.Item.ID, registry.ActCancel, ark)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.fail(c.Item.ID, registry.SystemFault)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.pastNoReturn(c.Item.ID, registry.ActDelete, ark)
	f.command(c.Item.ID, registry.ActRequeue, "")
	l := f.takeItem(c.Item.ID).Lease
	f.pastNoReturn(c.Item.ID, registry.ActCancel, ark)
	f.record(l, ark, 1)
	f.done(l)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.fail(c.Item.ID, registry.SystemFault)
	f.pastNoReturn(c.Item.ID, registry.ActAbort, ark)
	f.command(c.Item.ID, registry.ActRequeue, "")
	f.finish(c.Item.ID)
}

// pastNoReturn asks for an act that comes too late for an item that has announced a version.
func (f *fixture) pastNoReturn(id string, act registry.Act, object string) {
	f.Helper()
	before := f.item(id)
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: act, Actor: "admin", Confirmed: true})
	var late *registry.PastNoReturn
	if !errors.As(err, &late) || late.ItemID != id || late.ObjectID != object || late.Version != 1 || late.Act != act {
		f.Errorf("%s after the intent: %v", act, err)
	}
	if n := strings.Count(err.Error(), "item "+id); n != 1 {
		f.Errorf("it names the item %d times: %v", n, err)
	}
	if diff := cmp.Diff(before, f.item(id)); diff != "" {
		f.Errorf("the refused %s changed the item:\n%s", act, diff)
	}
}
