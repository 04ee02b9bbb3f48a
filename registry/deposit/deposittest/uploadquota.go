package deposittest

import (
	"errors"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func uploadQuotaTests() tests {
	return tests{
		"bytes_count_until_they_go":        quotaBytes,
		"a_submission_asks_its_collection": quotaSubmitted,
		"many_at_once_cannot_exceed_it":    quotaAtOnce,
		"a_number_on_their_way":            quotaOpen,
		"an_unknown_length_is_cut_off":     quotaDeferred,
		"what_is_promised_is_used":         quotaRoom,
		"what_is_stored_is_listed":         quotaListed,
		"what_is_used_is_counted":          quotaUse,
	}
}

func ofToken(bytes, open int64) []registry.UploadLimit {
	return []registry.UploadLimit{{Scope: registry.UploadsOfToken, Key: "somebody", Bytes: bytes, Open: open}}
}

// limited begins an upload within limits.
func (f *fixture) limited(id string, size int64, limits []registry.UploadLimit, change ...func(*registry.NewUpload)) (registry.Incoming, error) {
	f.Helper()
	u := registry.NewUpload{ID: id, Filename: "f", SizeBytes: size, CreatedBy: "somebody", Keep: registrytest.KeepUploads, Limits: limits}
	for _, c := range change {
		c(&u)
	}
	return f.Store.BeginUpload(f.Context(), u)
}

func (f *fixture) overQuota(err error, held, uploads, need int64) {
	f.Helper()
	var over *registry.QuotaError
	if !errors.As(err, &over) || over.Held != held || over.Uploads != uploads || over.Need != need {
		f.Fatalf("error %v (%+v), want a quota with %d bytes of %d uploads, and %d more", err, over, held, uploads, need)
	}
}

func quotaBytes(f *fixture) {
	limits := ofToken(100, 0)
	_, err := f.limited("a", 60, limits)
	f.Must(err)
	_, err = f.limited("b", 50, limits)
	f.overQuota(err, 60, 1, 50)
	_, err = f.limited("a", 60, limits) // a repeat is no second one
	f.Must(err)
	_, err = f.limited("others", 90, nil, func(u *registry.NewUpload) { u.CreatedBy = "another" })
	f.Must(err)
	f.Must(f.Store.DropUpload(f.Context(), "a"))
	_, err = f.limited("b", 30, limits)
	f.Must(err)
	f.Must(f.Store.DropUpload(f.Context(), "others"))
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "b", SizeBytes: 30, CreatedBy: "somebody"}))
	_, err = f.limited("c", 71, limits)
	f.overQuota(err, 30, 0, 71) // what has ended takes room all the same
	retired, err := f.Store.RetireUpload(f.Context(), "b")
	if f.Must(err); !retired {
		f.Fatal("not retired")
	}
	_, err = f.limited("c", 71, limits)
	f.Must(err)
	// Of a collection it counts from the submission on, whatever was said before.
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "c", SizeBytes: 71, CreatedBy: "somebody"}))
	f.Submit(func(s *registry.Submission) { s.Spec.URL = registry.UploadURL("c") })
	_, err = f.limited("d", 30, []registry.UploadLimit{{Scope: registry.UploadsOfCollection, Key: registrytest.Mnemonic, Bytes: 100}})
	f.overQuota(err, 71, 0, 30)
	_, err = f.limited("d", 29, []registry.UploadLimit{{Scope: registry.UploadsOfTenant, Bytes: 100}}, func(u *registry.NewUpload) { u.Collection = registrytest.Mnemonic })
	f.Must(err)
	_, err = f.limited("e", 1, []registry.UploadLimit{{Scope: registry.UploadsOfCollection, Key: registrytest.Mnemonic, Bytes: 100}})
	f.overQuota(err, 100, 1, 1)
}

// quotaSubmitted: an upload made for no collection, or for another one, obeys the quota of the
// collection that it is submitted to.
func quotaSubmitted(f *fixture) {
	limits := []registry.UploadLimit{{Scope: registry.UploadsOfCollection, Key: registrytest.Mnemonic, Bytes: 100}}
	held := func(id string, bytes int64, change ...func(*registry.NewUpload)) {
		_, err := f.limited(id, bytes, nil, change...)
		f.Must(err)
		f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: id, SizeBytes: bytes, CreatedBy: "somebody"}))
	}
	submission := func(id string) registry.Submission {
		return registry.Submission{
			Collection: registrytest.Mnemonic, Spec: registry.Spec{URL: registry.UploadURL(id), Filename: id}, Actor: "somebody", Force: true, Limits: limits,
		}
	}
	node := func(id string) registry.Node { return registry.Node{Key: id, Submission: submission(id)} }
	submit := func(id string) error {
		_, err := f.Store.Submit(f.Context(), submission(id))
		return err
	}
	collection := func(id string) string {
		u, err := f.Store.UploadByID(f.Context(), id)
		f.Must(err)
		return u.Collection
	}
	held("mine", 60, func(u *registry.NewUpload) { u.Collection = registrytest.Mnemonic })
	held("free", 41)
	f.overQuota(submit("free"), 60, 0, 41)
	if all, err := f.Store.BatchesOf(f.Context(), "free"); err != nil || len(all) > 0 || collection("free") != "" {
		f.Errorf("after the refusal there are %d batches (%v), and the upload is of %q", len(all), err, collection("free"))
	}
	f.Must(submit("mine")) // which counts already
	f.Must(submit("mine"))
	held("other", 40, func(u *registry.NewUpload) { u.Collection = "another" })
	held("one more", 1)
	// All nodes of a graph together.
	_, err := f.Store.Prepare(f.Context(), registry.Graph{Actor: "somebody", Nodes: []registry.Node{node("other"), node("one more")}})
	f.overQuota(err, 100, 0, 1)
	if collection("other") != "another" {
		f.Errorf("the upload is of %q although the graph was refused", collection("other"))
	}
	f.Must(submit("other"))
	f.overQuota(submit("one more"), 100, 0, 1)
	limits = nil
	f.Must(submit("one more"))
}

func quotaAtOnce(f *fixture) {
	const fit = 5
	var all sync.WaitGroup
	var mu sync.Mutex
	begun := 0
	for range 4 * fit {
		id := f.Unique("u")
		all.Go(func() {
			_, err := f.limited(id, 10, ofToken(10*fit, 0))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				begun++
			} else if !errors.As(err, new(*registry.QuotaError)) {
				f.Error(err)
			}
		})
	}
	all.Wait()
	if begun != fit {
		f.Errorf("%d uploads were begun, want %d", begun, fit)
	}
}

func quotaOpen(f *fixture) {
	limits := ofToken(0, 2)
	for _, id := range []string{"a", "b"} {
		_, err := f.limited(id, 10, limits)
		f.Must(err)
	}
	_, err := f.limited("c", 10, limits)
	f.overQuota(err, 20, 2, 10)
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "a", SizeBytes: 10, CreatedBy: "somebody"}))
	_, err = f.limited("c", 10, limits)
	f.Must(err)
	// Those on their way go on although there are as many as there may be.
	in := f.takeUpload("b", 0)
	p := part(in, 10)
	p.Limits = limits
	f.saveUpload(p)
}

func quotaDeferred(f *fixture) {
	limits := ofToken(100, 0)
	_, err := f.limited("a", 60, limits)
	f.Must(err)
	in, err := f.limited("d", -1, limits)
	f.Must(err)
	in = f.takeUpload(in.ID, 0)
	p := part(in, 30)
	p.Limits = limits
	in = f.saveUpload(p)
	p = part(in, 11)
	p.Limits = limits
	_, err = f.Store.SaveUpload(f.Context(), p)
	f.overQuota(err, 90, 2, 11)
	now, err := f.Store.IncomingByID(f.Context(), "d")
	f.Must(err)
	if diff := cmp.Diff(in, now); diff != "" {
		f.Errorf("after the refusal (-want +got):\n%s", diff)
	}
	p = part(in, 0)
	p.Limits, p.SizeBytes = limits, 41 // the length becomes known, and is too much
	_, err = f.Store.SaveUpload(f.Context(), p)
	f.overQuota(err, 90, 2, 11)
	p.SizeBytes = 40
	f.saveUpload(p)
	p = part(in, 10)
	p.Limits, p.SizeBytes = limits, 40 // which counts already
	f.saveUpload(p)
}

func quotaRoom(f *fixture) {
	room := registry.UploadRoom{Volume: registry.DefaultStaging, Used: 100, Total: 1000, Threshold: 0.8}
	in := func(u *registry.NewUpload) { u.Room = room }
	c := f.TakeItem(f.Job(registry.Provision))
	f.Must(f.Store.Reserve(f.Context(), c.Lease, registry.Reservation{Volume: registry.DefaultStaging, Bytes: 300, Total: 1000, Threshold: 0.8}))
	_, err := f.limited("a", 200, nil, in)
	f.Must(err)
	_, err = f.limited("b", 201, nil, in)
	var full *registry.NoSpaceError
	if !errors.As(err, &full) || full.Need != 201 || full.Reserved != 500 || full.Used != 100 {
		f.Fatalf("error %v, want no space with 500 reserved", err)
	}
	f.saveUpload(part(f.takeUpload("a", 0), 150)) // which the volume counts from now on
	room.Used += 150
	_, err = f.limited("b", 200, nil, in)
	f.Must(err)
	_, err = f.limited("d", -1, nil, in)
	f.Must(err) // nobody knows yet
	in2 := f.takeUpload("d", 0)
	p := part(in2, 1)
	p.Room = room
	_, err = f.Store.SaveUpload(f.Context(), p)
	if !errors.As(err, &full) {
		f.Fatalf("error %v, want no space", err)
	}
	room.Total = 0 // a bucket
	_, err = f.limited("c", 1<<40, nil, in)
	f.Must(err)
}

// quotaUse: the numbers that people see are those that the quotas use.
func quotaUse(f *fixture) {
	use := func(by string) []registry.UploadUse {
		f.Helper()
		got, err := f.Store.UploadUse(f.Context(), by)
		f.Must(err)
		return got
	}
	row := func(scope registry.UploadScope, key string, coming, stored, held int64) registry.UploadUse {
		return registry.UploadUse{UploadLimit: registry.UploadLimit{Scope: scope, Key: key}, Uploads: coming, Stored: stored, Held: held}
	}
	begin := func(id, by, collection string, size int64) {
		_, err := f.limited(id, size, nil, func(u *registry.NewUpload) { u.CreatedBy, u.Collection = by, collection })
		f.Must(err)
	}
	if diff := cmp.Diff([]registry.UploadUse{row(registry.UploadsOfTenant, "", 0, 0, 0)}, use("")); diff != "" {
		f.Errorf("without any (-want +got):\n%s", diff)
	}
	begin("a", "ann", registrytest.Mnemonic, 30)
	begin("b", "ann", "", 5)
	begin("c", "bob", registrytest.Mnemonic, 50)
	begin("open end", "bob", "another", -1)
	f.saveUpload(part(f.takeUpload("open end", 0), 7))
	begin("dropped", "bob", registrytest.Mnemonic, 900)
	f.Must(f.Store.DropUpload(f.Context(), "dropped"))
	for id, size := range map[string]int64{"a": 30, "c": 50} {
		f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: id, SizeBytes: size, CreatedBy: map[string]string{"a": "ann", "c": "bob"}[id]}))
	}
	want := []registry.UploadUse{
		row(registry.UploadsOfTenant, "", 2, 2, 92),
		row(registry.UploadsOfToken, "bob", 1, 1, 57), row(registry.UploadsOfToken, "ann", 1, 1, 35),
		row(registry.UploadsOfCollection, registrytest.Mnemonic, 0, 2, 80), row(registry.UploadsOfCollection, "another", 1, 0, 7), row(registry.UploadsOfCollection, "", 1, 0, 5),
	}
	if diff := cmp.Diff(want, use("")); diff != "" {
		f.Errorf("everybody's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[2:3], use("ann")); diff != "" {
		f.Errorf("one token's (-want +got):\n%s", diff)
	}
	_, err := f.limited("d", 9, []registry.UploadLimit{{Scope: registry.UploadsOfTenant, Bytes: 100}})
	f.overQuota(err, want[0].Held, want[0].Uploads, 9)
	for id := range map[string]bool{"a": true, "c": true} {
		_, err := f.Store.RetireUpload(f.Context(), id)
		f.Must(err)
	}
	if got := use("nobody"); len(got) != 1 || got[0].Held != 0 {
		f.Errorf("of nobody %+v", got)
	}
	if got := use(""); got[0] != row(registry.UploadsOfTenant, "", 2, 0, 12) {
		f.Errorf("after the removals %+v", got[0])
	}
}

func quotaListed(f *fixture) {
	ids := func(by string) (out []string) {
		for after := ""; ; {
			page, err := f.Store.StoredUploads(f.Context(), by, after)
			f.Must(err)
			for _, u := range page.Rows {
				out = append(out, u.ID)
			}
			if after = page.Next; after == "" {
				return out
			}
		}
	}
	const many = 150
	for range many {
		f.Upload(f.Unique("u"), "aa")
	}
	if got := ids(""); len(got) != many || got[0] != "u0150" || got[many-1] != "u0001" {
		f.Fatalf("listed %d uploads, want %d, newest first", len(got), many)
	}
	if got := ids("nobody"); len(got) != 0 {
		f.Errorf("listed %v of nobody", got)
	}
	_, err := f.Store.RetireUpload(f.Context(), "u0001")
	f.Must(err)
	if got := ids(""); len(got) != many-1 {
		f.Errorf("listed %d uploads, want %d: one was retired", len(got), many-1)
	}
	f.Must(f.Store.ForgetUpload(f.Context(), "u0002")) // which is not retired
	if got := ids(""); len(got) != many-1 {
		f.Errorf("listed %d uploads, want that nothing is forgotten that is needed", len(got))
	}
	f.dropped(registry.DroppedUpload{ID: "u0001", Over: true})
	f.Must(f.Store.ForgetUpload(f.Context(), "u0001"))
	_, err = f.Store.StoredUploads(f.Context(), "", "nonsense")
	f.Is(err, registry.ErrNotFound)
	// Whoever retired it may have been killed before its bytes went.
	begun, err := f.limited("big", 5, nil)
	f.Must(err)
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: begun.ID, SizeBytes: 5}))
	_, err = f.Store.RetireUpload(f.Context(), begun.ID)
	f.Must(err)
	for range 2 {
		f.dropped(registry.DroppedUpload{ID: begun.ID, Over: true})
	}
	f.Must(f.Store.ForgetUpload(f.Context(), begun.ID))
	f.dropped()
}
