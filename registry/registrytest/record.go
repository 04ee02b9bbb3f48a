package registrytest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func recordTests() []test {
	return []test{
		{"nothing_is_visible_before_it_is_recorded", invisible},
		{"recording_can_be_repeated", recordRepeated},
		{"recording_goes_on_in_the_next_attempt", recordGoesOn},
		{"each_version_has_its_state", versionStates},
		{"a_recorded_version_takes_no_more_files", recordedIsClosed},
		{"names_are_bytes", byteNames},
		{"files_are_paged", filesPaged},
		{"objects_are_listed", objectsListed},
		{"files_have_a_history", filesHistory},
		{"events_are_chained_and_paged", eventsChained},
		{"a_receipt_of_many_files", manyReceipted},
		{"a_version_has_one_receipt_for_ever", oneReceipt},
		{"what_is_not_whole_is_not_signed", notWhole},
		{"a_storage_that_holds_replicas_is_known", storageKnown},
		{"inventories_and_announced_versions_are_told", inventoriesTold},
	}
}

func file(path string) registry.File {
	return registry.File{
		Path: path, ContentPath: "v1/content/" + path, SizeBytes: 5, Digests: map[string]string{"sha512": "aa"}, MIMEType: "text/plain",
		Modified: time.Date(1944, 6, 6, 6, 30, 0, 123_456_000, time.UTC),
		Format:   &registry.Format{PUID: "x-fmt/111", Name: "Plain Text \"File\"", Version: "1", Registry: "V120", Warning: "match on extension only"},
	}
}

func versionRecord(f *fixture, l registry.Lease, object string, version int, files []registry.File) registry.VersionRecord {
	at := f.clock.now()
	return registry.VersionRecord{
		ObjectID: object, Version: version, Collection: mnemonic, Owner: owner, Title: fmt.Sprintf("title %d", version), Creator: "creator",
		Date: "2026", Files: int64(len(files)), SizeBytes: 5 * int64(len(files)), CreatedAt: at, Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: at}},
		Events: []registry.Premis{{
			ID: fmt.Sprintf("%s-%d", object, version), ObjectID: object, Version: version, ItemID: l.ItemID, Type: "ingestion", At: at,
			Agent: agent, Outcome: "success", Detail: "stored",
		}},
	}
}

// paths lists a version's state.
func (f *fixture) paths(object string, version int) []string {
	f.Helper()
	files, err := f.Files(f.Context(), object, version, "", 500)
	f.must(err)
	var out []string
	for _, file := range files {
		out = append(out, fmt.Sprintf("%s@%d", file.Path, file.Version))
	}
	return out
}

func invisible(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	look := func() {
		f.Helper()
		_, err := f.Object(f.Context(), ark)
		f.is(err, registry.ErrNotFound)
		_, err = f.Files(f.Context(), ark, 0, "", 10)
		f.is(err, registry.ErrNotFound)
		_, err = f.Files(f.Context(), ark, 1, "", 10)
		f.is(err, registry.ErrNotFound)
		page, err := f.Objects(f.Context(), registry.ObjectQuery{})
		f.must(err)
		if len(page.Rows) != 0 {
			f.Errorf("listed %+v", page.Rows)
		}
	}
	look()
	f.intend(c.Lease, ark, 1, `{}`)
	look()
	files := []registry.File{file("producer/a")}
	f.must(f.RecordFiles(f.Context(), c.Lease, ark, 1, files))
	look()
	f.must(f.RecordVersion(f.Context(), c.Lease, versionRecord(f, c.Lease, ark, 1, files)))
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	at := f.clock.now()
	want := registry.Object{
		ID: ark, ARK: ark, Tenant: o.Tenant, Collection: mnemonic, Owner: owner, LocalIDs: []string{"x"}, Title: "title 1", Creator: "creator",
		Date: "2026", Head: 1, Files: 1, SizeBytes: 5, CreatedAt: at, UpdatedAt: at, CheckedAt: at, Unchecked: "v1/content/producer/a",
		Versions: []registry.ObjectVersion{{
			Version: 1, ItemID: c.Item.ID, Files: 1, SizeBytes: 5, CreatedAt: at, RecordedAt: at, Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: at}},
		}},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		f.Errorf("object (-want +got):\n%s", diff)
	}
	got, err := f.Files(f.Context(), ark, 0, "", 10)
	f.must(err)
	files[0].Version = 1
	if diff := cmp.Diff(files, got); diff != "" {
		f.Errorf("files (-want +got):\n%s", diff)
	}
}

func recordRepeated(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	files := []registry.File{file("producer/a"), file("producer/b")}
	for range 3 {
		f.must(f.RecordFiles(f.Context(), c.Lease, ark, 1, files))
	}
	v := versionRecord(f, c.Lease, ark, 1, files)
	f.must(f.RecordVersion(f.Context(), c.Lease, v))
	before, err := f.Object(f.Context(), ark)
	f.must(err)
	events := f.events(c.Item.ID)
	f.clock.pass(time.Minute)
	v.Title = "another title"
	f.must(f.RecordVersion(f.Context(), c.Lease, v))
	after, err := f.Object(f.Context(), ark)
	f.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		f.Errorf("the repeat changed the object:\n%s", diff)
	}
	if got := f.events(c.Item.ID); !slices.Equal(got, events) {
		f.Errorf("the repeat wrote events: %v", got)
	}
	page, err := f.PremisEvents(f.Context(), ark, "", 0)
	f.must(err)
	premis := page.Rows
	if len(premis) != 1 || premis[0].Type != "ingestion" || premis[0].ItemID != c.Item.ID {
		f.Errorf("preservation events %+v", premis)
	}
	if got := f.paths(ark, 1); !slices.Equal(got, []string{"producer/a@1", "producer/b@1"}) {
		f.Errorf("files %v", got)
	}
}

func recordGoesOn(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	f.must(f.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{file("a")}))
	f.sweep(2 * lease) // killed half-way
	l := f.takeItem(c.Item.ID).Lease
	f.locks(l, "x")
	f.record(l, ark, 1, file("a"), file("b"))
	if got := f.paths(ark, 0); !slices.Equal(got, []string{"a@1", "b@1"}) {
		f.Errorf("files %v", got)
	}
}

func versionStates(f *fixture) {
	c := f.processing(3)
	gone := file("b")
	gone.Deleted = true
	changes := [][]registry.File{{file("a"), file("b"), file("c")}, {file("a"), gone}, {file("b"), file("d")}}
	var ark string
	for i, files := range changes {
		id := f.identify(c[i].Lease, registry.IdentifyRequest{Owner: owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p"})
		ark = id.ARK
		if id.Head != i {
			f.Fatalf("head=%d, want %d", id.Head, i)
		}
		f.intend(c[i].Lease, ark, i+1, `{}`)
		f.must(f.RecordFiles(f.Context(), c[i].Lease, ark, i+1, files))
		// Rows of a version that is not recorded change no other version, and have no history.
		if i == 0 {
			_, err := f.FileHistory(f.Context(), ark, registry.FilePlace{}, 10)
			f.is(err, registry.ErrNotFound)
		} else if rows := f.history(ark); len(rows) != []int{0, 3, 5}[i] {
			f.Errorf("history %v while version %d is being recorded", rows, i+1)
		}
		if i > 0 && len(f.paths(ark, i)) != 3-(i-1) {
			f.Errorf("version %d is %v while the next one is being recorded", i, f.paths(ark, i))
		}
		v := versionRecord(f, c[i].Lease, ark, i+1, files)
		v.Files = []int64{3, 2, 4}[i]
		v.SizeBytes = 5 * v.Files
		f.must(f.RecordVersion(f.Context(), c[i].Lease, v))
		f.done(c[i].Lease)
		f.finish(c[i].Item.ID)
	}
	for version, want := range map[int][]string{
		1: {"a@1", "b@1", "c@1"}, 2: {"a@2", "c@1"}, 3: {"a@2", "b@3", "c@1", "d@3"}, 0: {"a@2", "b@3", "c@1", "d@3"},
	} {
		if got := f.paths(ark, version); !slices.Equal(got, want) {
			f.Errorf("version %d: %v, want %v", version, got, want)
		}
	}
	for _, version := range []int{4, -1} {
		_, err := f.Files(f.Context(), ark, version, "", 10)
		f.is(err, registry.ErrNotFound)
	}
	_, err := f.Files(f.Context(), "unknown", 1, "", 10)
	f.is(err, registry.ErrNotFound)
}

func recordedIsClosed(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.store(c.Lease, ark, 1, file("a"))
	f.must(f.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{file("late")}))
	if got := f.paths(ark, 1); !slices.Equal(got, []string{"a@1"}) {
		f.Errorf("a recorded version changed: %v", got)
	}
	if err := f.RecordFiles(f.Context(), c.Lease, ark, 1, make([]registry.File, 1001)); err == nil {
		f.Error("1001 files were taken in one call")
	}
}

func byteNames(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	names := []string{"latin1-\xe9", "utf8-é", "wild%_*"}
	var files []registry.File
	for _, n := range names {
		files = append(files, file(n))
	}
	f.store(c.Lease, ark, 1, files...)
	got, err := f.Files(f.Context(), ark, 1, "", 10)
	f.must(err)
	for i := range names {
		if got[i].Path != names[i] || got[i].ContentPath != "v1/content/"+names[i] {
			f.Errorf("file %d is %q at %q", i, got[i].Path, got[i].ContentPath)
		}
	}
}

func filesPaged(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	var files []registry.File
	for i := range 7 {
		files = append(files, file(fmt.Sprintf("f%d", i)))
	}
	f.store(c.Lease, ark, 1, files...)
	var got []string
	after := ""
	for {
		page, err := f.Files(f.Context(), ark, 0, after, 3)
		f.must(err)
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
	f.collection("other", registry.Profile{Owner: owner})
	var c []registry.Claim
	for _, collection := range []string{mnemonic, "other", mnemonic, mnemonic} {
		c = append(c, f.takeItem(f.waitingAt(registry.Process, collection, 1, false)[0]))
	}
	var arks []string
	for i := range 3 {
		f.clock.pass(time.Second)
		id := f.locks(c[i].Lease, fmt.Sprintf("loc-%d", i))
		arks = append([]string{id.ARK}, arks...)
		v := versionRecord(f, c[i].Lease, id.ARK, 1, nil)
		v.Title, v.Collection = fmt.Sprintf("50%% of 100_%d", i), []string{mnemonic, "other", mnemonic}[i]
		f.intend(c[i].Lease, id.ARK, 1, `{}`)
		f.must(f.RecordVersion(f.Context(), c[i].Lease, v))
	}
	f.locks(c[3].Lease, "loc-9") // named only
	for _, tt := range []struct {
		name string
		q    registry.ObjectQuery
		want []string
	}{
		{"all", registry.ObjectQuery{}, arks},
		{"paged", registry.ObjectQuery{Limit: 1}, arks},
		{"collection", registry.ObjectQuery{Collection: mnemonic}, []string{arks[0], arks[2]}},
		{"local id", registry.ObjectQuery{LocalID: "loc-1"}, arks[1:2]},
		{"title", registry.ObjectQuery{Text: "100_2"}, arks[:1]},
		{"no pattern", registry.ObjectQuery{Text: "1_0"}, nil},
		{"percent", registry.ObjectQuery{Text: "50% OF"}, arks},
		{"ark", registry.ObjectQuery{Text: arks[2]}, arks[2:]},
	} {
		var got []string
		for q := tt.q; ; {
			page, err := f.Objects(f.Context(), q)
			f.must(err)
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
	}
}

func storageKnown(f *fixture) {
	holds := func(storage string, want bool) {
		f.Helper()
		got, err := f.HasReplicas(f.Context(), storage)
		f.must(err)
		if got != want {
			f.Errorf("storage %q: replicas %v, want %v", storage, got, want)
		}
	}
	knows := func(id string, want bool) {
		f.Helper()
		got, err := f.KnowsObject(f.Context(), id)
		f.must(err)
		if got != want {
			f.Errorf("object %q: known %v, want %v", id, got, want)
		}
	}
	holds(registry.DefaultStorage, false)
	announced := "ark:/99999/announced"
	l := f.takeItem(f.job(registry.Process)).Lease
	_, err := f.Identify(f.Context(), l, registry.IdentifyRequest{Owner: owner, Proposed: announced})
	f.must(err)
	knows(announced, false) // only a name
	f.intend(l, announced, 1, `{}`)
	knows(announced, true)
	ark := f.object()
	knows(ark, true)
	knows("ark:/99999/none", false)
	knows("no such\x00name", false)
	holds(registry.DefaultStorage, true)
	holds("second", false)
	holds("no such\x00name", false)
	c := f.take(registry.Delete, f.approved(ark).ID)
	_, err = f.LockObject(f.Context(), c.Lease, ark)
	f.must(err)
	holds(registry.DefaultStorage, true)
	_, err = f.MarkDeleting(f.Context(), c.Lease, ark, registry.Remains{Version: 1})
	f.must(err)
	f.must(f.RecordDeletion(f.Context(), c.Lease, ark, nil))
	holds(registry.DefaultStorage, false)
	knows(ark, true)
}

// An object tells the recorded digests of its versions' inventories, and which version is being written.
func inventoriesTold(f *fixture) {
	c := f.processing(2)
	var ark string
	for i, inventory := range []string{"sha512:ab", ""} {
		l := c[i].Lease
		ark = f.identify(l, registry.IdentifyRequest{Owner: owner, LocalIDs: []string{"x"}, Proposed: "ark:/99999/p"}).ARK
		f.intend(l, ark, i+1, `{}`)
		if i > 0 {
			o, err := f.Object(f.Context(), ark)
			f.must(err)
			if o.Announced != i+1 || o.Head != i {
				f.Errorf("announced=%d head=%d, want %d and %d", o.Announced, o.Head, i+1, i)
			}
		}
		files := []registry.File{file(fmt.Sprintf("producer/%d", i))}
		f.must(f.RecordFiles(f.Context(), l, ark, i+1, files))
		v := versionRecord(f, l, ark, i+1, files)
		v.Inventory, v.Files, v.SizeBytes = inventory, int64(i+1), 5*int64(i+1)
		f.must(f.RecordVersion(f.Context(), l, v))
		f.done(l)
		f.finish(c[i].Item.ID)
	}
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if o.Announced != 0 || len(o.Versions) != 2 || o.Versions[0].Inventory != "sha512:ab" || o.Versions[1].Inventory != "" {
		f.Errorf("object %+v, want the inventory of version 1 and nothing announced", o)
	}
}
