package searchtest

import (
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// whyNextTry: an item that waits for its next try says so, and when, wherever it is read. An item
// that runs, is held, waits for something else or has ended does not.
func whyNextTry(f *fixture) {
	id := f.Job(registry.Download)
	none := func(when string) {
		f.Helper()
		if it := f.Item(id); it.NextTry != nil || it.StateText(f.Clock.Now()) != string(it.State) {
			f.Errorf("%s: next try %+v, told as %s", when, it.NextTry, it.StateText(f.Clock.Now()))
		}
	}
	none("before it ran")
	c := f.TakeItem(id)
	none("while it ran")
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Error: "connection reset", Delay: 4 * time.Minute})

	it := f.Item(id)
	if it.NextTry == nil || it.NextTry.Attempt != 2 || it.NextTry.Of != registrytest.Attempts || !it.NextTry.At.Equal(it.RunAt) {
		f.Fatalf("next try %+v of an item that is due at %s", it.NextTry, it.RunAt)
	}
	if it.State != registry.StateDownloading {
		f.Errorf("state %s, want the one that it goes on in", it.State)
	}
	if got, want := it.StateText(f.Clock.Now().UTC()), "Retry at 12:04:00 UTC, attempt 2 of 5"; got != want {
		f.Errorf("told as %q, want %q", got, want)
	}
	page, err := f.Store.Items(f.Context(), registry.ItemQuery{ParentID: it.ParentID})
	f.Must(err)
	if len(page.Rows) != 1 || page.Rows[0].NextTry == nil {
		f.Errorf("listed as %+v", page.Rows)
	}

	f.Hold(registry.HoldItem, id)
	if none("held"); f.Item(id).State != registry.StateHeld {
		f.Errorf("state %s, want Held", f.Item(id).State)
	}
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldItem, id, "alice"))
	if f.Item(id).NextTry == nil {
		f.Error("it waits for nothing after the hold")
	}
	after, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "alice"})
	f.Must(err)
	if after.NextTry != nil {
		f.Errorf("cancelled, it waits for %+v", after.NextTry)
	}
	none("cancelled")
}
