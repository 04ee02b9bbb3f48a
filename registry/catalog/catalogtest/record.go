package catalogtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func recordTests() tests {
	return tests{
		"nothing_is_visible_before_it_is_recorded":    invisible,
		"recording_can_be_repeated":                   recordRepeated,
		"recording_goes_on_in_the_next_attempt":       recordGoesOn,
		"each_version_has_its_state":                  versionStates,
		"a_recorded_version_takes_no_more_files":      recordedIsClosed,
		"names_are_bytes":                             byteNames,
		"files_are_paged":                             filesPaged,
		"objects_are_listed":                          objectsListed,
		"files_have_a_history":                        filesHistory,
		"versions_differ_in_files":                    versionsDiffer,
		"events_are_chained_and_paged":                eventsChained,
		"a_receipt_of_many_files":                     manyReceipted,
		"a_version_has_one_receipt_for_ever":          oneReceipt,
		"what_is_not_whole_is_not_signed":             notWhole,
		"a_storage_that_holds_replicas_is_known":      storageKnown,
		"inventories_and_announced_versions_are_told": inventoriesTold,
	}
}

// paths lists the files of a version.
func (f *fixture) paths(object string, version int) []string {
	f.Helper()
	files, err := f.Store.Files(f.Context(), object, version, "", 500)
	f.Must(err)
	var out []string
	for _, file := range files {
		out = append(out, fmt.Sprintf("%s@%d", file.Path, file.Version))
	}
	return out
}

func invisible(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	look := func() {
		f.Helper()
		_, err := f.Store.Object(f.Context(), ark)
		f.Is(err, registry.ErrNotFound)
		_, err = f.Store.Files(f.Context(), ark, 0, "", 10)
		f.Is(err, registry.ErrNotFound)
		_, err = f.Store.Files(f.Context(), ark, 1, "", 10)
		f.Is(err, registry.ErrNotFound)
		page, err := f.Store.Objects(f.Context(), registry.ObjectQuery{})
		f.Must(err)
		if len(page.Rows) != 0 {
			f.Errorf("listed %+v", page.Rows)
		}
	}
	look()
	f.Intend(c.Lease, ark, 1, `{}`)
	look()
	files := []registry.File{registrytest.File("producer/a")}
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, files))
	look()
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, files)))
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	at := f.Clock.Now()
	want := registry.Object{
		ID: ark, ARK: ark, Tenant: o.Tenant, Collection: registrytest.Mnemonic, Owner: registrytest.Owner, LocalIDs: []string{"x"}, Title: "title 1", Creator: "creator",
		Date: "2026", Head: 1, Files: 1, SizeBytes: 5, CreatedAt: at, UpdatedAt: at, CheckedAt: at, Unchecked: "v1/content/producer/a",
		Versions: []registry.ObjectVersion{{
			Version: 1, ItemID: c.Item.ID, Files: 1, SizeBytes: 5, CreatedAt: at, RecordedAt: at, Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: at}},
		}},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		f.Errorf("object (-want +got):\n%s", diff)
	}
	got, err := f.Store.Files(f.Context(), ark, 0, "", 10)
	f.Must(err)
	files[0].Version = 1
	if diff := cmp.Diff(files, got); diff != "" {
		f.Errorf("files (-want +got):\n%s", diff)
	}
}

func recordRepeated(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	files := []registry.File{registrytest.File("producer/a"), registrytest.File("producer/b")}
	for range 3 {
		f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, files))
	}
	v := registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, files)
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, v))
	before, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	events := f.Events(c.Item.ID)
	f.Clock.Pass(time.Minute)
	v.Title = "another title"
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, v))
	after, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		f.Errorf("the repeat changed the object:\n%s", diff)
	}
	if got := f.Events(c.Item.ID); !slices.Equal(got, events) {
		f.Errorf("the repeat wrote events: %v", got)
	}
	page, err := f.Store.PremisEvents(f.Context(), ark, "", 0)
	f.Must(err)
	premis := page.Rows
	if len(premis) != 1 || premis[0].Type != "ingestion" || premis[0].ItemID != c.Item.ID {
		f.Errorf("preservation events %+v", premis)
	}
	if got := f.paths(ark, 1); !slices.Equal(got, []string{"producer/a@1", "producer/b@1"}) {
		f.Errorf("files %v", got)
	}
}

func recordGoesOn(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{registrytest.File("a")}))
	f.Sweep(2 * registrytest.Lease) // killed half-way
	l := f.TakeItem(c.Item.ID).Lease
	f.Named(l, "x")
	f.Record(l, ark, 1, registrytest.File("a"), registrytest.File("b"))
	if got := f.paths(ark, 0); !slices.Equal(got, []string{"a@1", "b@1"}) {
		f.Errorf("files %v", got)
	}
}

func versionStates(f *fixture) {
	c := f.Processing(3)
	gone := registrytest.File("b")
	gone.Deleted = true
	changes := [][]registry.File{{registrytest.File("a"), registrytest.File("b"), registrytest.File("c")}, {registrytest.File("a"), gone}, {registrytest.File("b"), registrytest.File("d")}}
	var ark string
	for i, files := range changes {
		id := f.Identify(c[i].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p"})
		ark = id.ARK
		if id.Head != i {
			f.Fatalf("head=%d, want %d", id.Head, i)
		}
		f.Intend(c[i].Lease, ark, i+1, `{}`)
		f.Must(f.Store.RecordFiles(f.Context(), c[i].Lease, ark, i+1, files))
		// Rows of a version that is not recorded change no other version, and have no history.
		if i == 0 {
			_, err := f.Store.FileHistory(f.Context(), ark, registry.FilePlace{}, 10)
			f.Is(err, registry.ErrNotFound)
		} else if rows := f.history(ark); len(rows) != []int{0, 3, 5}[i] {
			f.Errorf("history %v while version %d is being recorded", rows, i+1)
		}
		if i > 0 && len(f.paths(ark, i)) != 3-(i-1) {
			f.Errorf("version %d is %v while the next one is being recorded", i, f.paths(ark, i))
		}
		v := registrytest.VersionRecord(f.Fixture, c[i].Lease, ark, i+1, files)
		v.Files = []int64{3, 2, 4}[i]
		v.SizeBytes = 5 * v.Files
		v.Title = fmt.Sprintf(`the "title" no. %d`, i)
		f.Must(f.Store.RecordVersion(f.Context(), c[i].Lease, v))
		for n := range changes {
			page, err := f.Store.Objects(f.Context(), registry.ObjectQuery{Text: fmt.Sprintf(`THE "title" no. %d`, n)})
			f.Must(err)
			if (len(page.Rows) == 1) != (n == i) {
				f.Errorf("the title of version %d finds %d objects at version %d", n+1, len(page.Rows), i+1)
			}
		}
		f.Done(c[i].Lease)
		f.Finish(c[i].Item.ID)
	}
	for version, want := range map[int][]string{
		1: {"a@1", "b@1", "c@1"}, 2: {"a@2", "c@1"}, 3: {"a@2", "b@3", "c@1", "d@3"}, 0: {"a@2", "b@3", "c@1", "d@3"},
	} {
		if got := f.paths(ark, version); !slices.Equal(got, want) {
			f.Errorf("version %d: %v, want %v", version, got, want)
		}
	}
	for _, version := range []int{4, -1} {
		_, err := f.Store.Files(f.Context(), ark, version, "", 10)
		f.Is(err, registry.ErrNotFound)
	}
	_, err := f.Store.Files(f.Context(), "unknown", 1, "", 10)
	f.Is(err, registry.ErrNotFound)
}

func recordedIsClosed(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Preserve(c.Lease, ark, 1, registrytest.File("a"))
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{registrytest.File("late")}))
	if got := f.paths(ark, 1); !slices.Equal(got, []string{"a@1"}) {
		f.Errorf("a recorded version changed: %v", got)
	}
	if err := f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, make([]registry.File, 1001)); err == nil {
		f.Error("1001 files were taken in one call")
	}
}

func byteNames(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	names := []string{"latin1-\xe9", "utf8-é", "wild%_*"}
	var files []registry.File
	for _, n := range names {
		files = append(files, registrytest.File(n))
	}
	f.Preserve(c.Lease, ark, 1, files...)
	got, err := f.Store.Files(f.Context(), ark, 1, "", 10)
	f.Must(err)
	for i := range names {
		if got[i].Path != names[i] || got[i].ContentPath != "v1/content/"+names[i] {
			f.Errorf("file %d is %q at %q", i, got[i].Path, got[i].ContentPath)
		}
	}
}

func filesPaged(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	var files []registry.File
	for i := range 7 {
		files = append(files, registrytest.File(fmt.Sprintf("f%d", i)))
	}
	f.Preserve(c.Lease, ark, 1, files...)
	var got []string
	after := ""
	for {
		page, err := f.Store.Files(f.Context(), ark, 0, after, 3)
		f.Must(err)
		for _, p := range page {
			got = append(got, p.Path)
		}
		if len(page) < 3 {
			break
		}
		after = page[2].Path
	}
	if !slices.Equal(got, []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6"}) {
		f.Errorf("files %v", got)
	}
}

func objectsListed(f *fixture) {
	f.Collection("other", registry.Profile{Owner: registrytest.Owner})
	var c []registry.Claim
	for _, collection := range []string{registrytest.Mnemonic, "other", registrytest.Mnemonic, registrytest.Mnemonic} {
		c = append(c, f.TakeItem(f.WaitingAt(registry.Process, collection, 1, false)[0]))
	}
	var arks []string
	for i := range 3 {
		f.Clock.Pass(time.Second)
		id := f.Named(c[i].Lease, fmt.Sprintf("loc-%d", i))
		arks = append([]string{id.ARK}, arks...)
		v := registrytest.VersionRecord(f.Fixture, c[i].Lease, id.ARK, 1, nil)
		v.Title, v.Collection = fmt.Sprintf("50%% of 100_%d", i), []string{registrytest.Mnemonic, "other", registrytest.Mnemonic}[i]
		f.Intend(c[i].Lease, id.ARK, 1, `{}`)
		f.Must(f.Store.RecordVersion(f.Context(), c[i].Lease, v))
	}
	f.Named(c[3].Lease, "loc-9") // named only
	for _, tt := range []struct {
		name string
		q    registry.ObjectQuery
		want []string
	}{
		{"all", registry.ObjectQuery{}, arks},
		{"paged", registry.ObjectQuery{Limit: 1}, arks},
		{"paged by two", registry.ObjectQuery{Limit: 2}, arks},
		{"collection", registry.ObjectQuery{Collection: registrytest.Mnemonic}, []string{arks[0], arks[2]}},
		{"local id", registry.ObjectQuery{LocalID: "loc-1"}, arks[1:2]},
		{"title", registry.ObjectQuery{Text: "100_2"}, arks[:1]},
		{"no pattern", registry.ObjectQuery{Text: "1_0"}, nil},
		{"percent", registry.ObjectQuery{Text: "50% OF"}, arks},
		{"ark", registry.ObjectQuery{Text: arks[2]}, arks[2:]},
		{"paged by text", registry.ObjectQuery{Text: "50%", Limit: 1}, arks},
		{"too short for an index", registry.ObjectQuery{Text: "5"}, arks},
		{"in a collection", registry.ObjectQuery{Text: "100_", Collection: "other"}, arks[1:2]},
	} {
		var got []string
		for q := tt.q; ; {
			page, err := f.Store.Objects(f.Context(), q)
			f.Must(err)
			for _, o := range page.Rows {
				got = append(got, o.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if !slices.Equal(got, tt.want) {
			f.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		slices.Reverse(got)
		var back []string
		for q := tt.q; ; {
			q.Limit = max(q.Limit, 1)
			page, err := f.Store.Objects(f.Context(), q)
			f.Must(err)
			if q.Before != "" {
				for _, o := range slices.Backward(page.Rows) {
					back = append(back, o.ID)
				}
				q.Before = page.Prev
			} else if q.After = page.Next; page.Next == "" { // the end: turn around
				for _, o := range slices.Backward(page.Rows) {
					back = append(back, o.ID)
				}
				q.After, q.Before = "", page.Prev
			}
			if q.After == "" && q.Before == "" {
				break
			}
		}
		if !slices.Equal(back, got) {
			f.Errorf("%s, backwards: %v, want %v", tt.name, back, got)
		}
	}
	_, err := f.Store.Objects(f.Context(), registry.ObjectQuery{After: "a", Before: "b"})
	f.Is(err, registry.ErrInvalid)
	_, err = f.Store.Objects(f.Context(), registry.ObjectQuery{Before: "no cursor"})
	f.Is(err, registry.ErrNotFound)
}

func storageKnown(f *fixture) {
	holds := func(storage string, want bool) {
		f.Helper()
		got, err := f.Store.HasReplicas(f.Context(), storage)
		f.Must(err)
		if got != want {
			f.Errorf("storage %q: replicas %v, want %v", storage, got, want)
		}
	}
	knows := func(id string, want bool) {
		f.Helper()
		got, err := f.Store.KnowsObject(f.Context(), id)
		f.Must(err)
		if got != want {
			f.Errorf("object %q: known %v, want %v", id, got, want)
		}
	}
	holds(registry.DefaultStorage, false)
	announced := "ark:/99999/announced"
	l := f.TakeItem(f.Job(registry.Process)).Lease
	_, err := f.Store.Identify(f.Context(), l, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: announced})
	f.Must(err)
	knows(announced, false) // only a name
	f.Intend(l, announced, 1, `{}`)
	knows(announced, true)
	ark := f.Object()
	knows(ark, true)
	knows("ark:/99999/none", false)
	knows("no such\x00name", false)
	holds(registry.DefaultStorage, true)
	holds("second", false)
	holds("no such\x00name", false)
	c := f.Take(registry.Delete, f.ApprovedDeletion(ark).ID)
	_, err = f.Store.LockObject(f.Context(), c.Lease, ark)
	f.Must(err)
	holds(registry.DefaultStorage, true)
	_, err = f.Store.MarkDeleting(f.Context(), c.Lease, ark, registry.Remains{Version: 1})
	f.Must(err)
	f.Must(f.Store.RecordDeletion(f.Context(), c.Lease, ark, nil))
	holds(registry.DefaultStorage, false)
	knows(ark, true)
}

// inventoriesTold: an object shows the recorded digests of its inventories, and which version is
// announced.
func inventoriesTold(f *fixture) {
	c := f.Processing(2)
	var ark string
	for i, inventory := range []string{"sha512:ab", ""} {
		l := c[i].Lease
		ark = f.Identify(l, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p"}).ARK
		f.Intend(l, ark, i+1, `{}`)
		if i > 0 {
			o, err := f.Store.Object(f.Context(), ark)
			f.Must(err)
			if o.Announced != i+1 || o.Head != i {
				f.Errorf("announced=%d head=%d, want %d and %d", o.Announced, o.Head, i+1, i)
			}
		}
		files := []registry.File{registrytest.File(fmt.Sprintf("producer/%d", i))}
		f.Must(f.Store.RecordFiles(f.Context(), l, ark, i+1, files))
		v := registrytest.VersionRecord(f.Fixture, l, ark, i+1, files)
		v.Inventory, v.Files, v.SizeBytes = inventory, int64(i+1), 5*int64(i+1)
		f.Must(f.Store.RecordVersion(f.Context(), l, v))
		f.Done(l)
		f.Finish(c[i].Item.ID)
	}
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if o.Announced != 0 || len(o.Versions) != 2 || o.Versions[0].Inventory != "sha512:ab" || o.Versions[1].Inventory != "" {
		f.Errorf("object %+v, want the inventory of version 1 and nothing announced", o)
	}
}
