package catalogtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// history lists the file rows of an object, two at a time.
func (f *fixture) history(object string) (out []string) {
	f.Helper()
	for after := (registry.FilePlace{}); ; {
		rows, err := f.Store.FileHistory(f.Context(), object, after, 2)
		f.Must(err)
		for _, r := range rows {
			after = registry.FilePlace{Path: r.Path, Version: r.Version}
			text := fmt.Sprintf("%s@%d", r.Path, r.Version)
			if r.Deleted {
				text += " gone"
			}
			out = append(out, text)
		}
		if len(rows) < 2 {
			return out
		}
	}
}

func filesHistory(f *fixture) {
	c := f.Processing(2)
	ark := f.Named(c[0].Lease, "x").ARK
	f.Preserve(c[0].Lease, ark, 1, registrytest.File("a"), registrytest.File("b\xe9"))
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	f.Named(c[1].Lease, "x")
	gone := registrytest.File("a")
	gone.Deleted = true
	f.Intend(c[1].Lease, ark, 2, `{}`)
	f.Must(f.Store.RecordFiles(f.Context(), c[1].Lease, ark, 2, []registry.File{gone, registrytest.File("c")}))
	f.Must(f.Store.RecordVersion(f.Context(), c[1].Lease, registrytest.VersionRecord(f.Fixture, c[1].Lease, ark, 2, []registry.File{gone, registrytest.File("c")})))
	want := []string{"a@1", "a@2 gone", "b\xe9@1", "c@2"}
	if got := f.history(ark); !slices.Equal(got, want) {
		f.Errorf("history %q, want %q", got, want)
	}
}

// versionsDiffer: what was added, removed, changed and renamed between two versions is told, page by
// page. Bytes that several paths had or have are no renamed file.
func versionsDiffer(f *fixture) {
	file := func(path, content string) registry.File {
		out := registrytest.File("producer/" + path)
		out.ContentPath = content
		return out
	}
	gone := func(path string) registry.File {
		out := file(path, "")
		out.Deleted = true
		return out
	}
	c := f.Processing(3)
	ark := f.Named(c[0].Lease, "x").ARK
	f.Preserve(c[0].Lease, ark, 1, file("kept", "k"), file("plate.tif", "p"), file("list.csv", "l1"), file("old", "o"),
		file("twin 1", "t"), file("twin 2", "t"), file("a", "a"), file("b", "b"))
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	for i, files := range [][]registry.File{
		{gone("plate.tif"), file("plates/1.tif", "p"), file("list.csv", "l2"), gone("old"), file("new", "n"), file("brief", "x")},
		{gone("twin 1"), gone("twin 2"), file("twin", "t"), file("a", "b"), file("b", "a"), gone("brief"), file("system", "s")},
	} {
		l := c[i+1].Lease
		f.Named(l, "x")
		f.Intend(l, ark, i+2, `{}`)
		f.Must(f.Store.RecordFiles(f.Context(), l, ark, i+2, files))
		whole := make([]registry.File, 9-i) // so many files the versions have
		f.Must(f.Store.RecordVersion(f.Context(), l, registrytest.VersionRecord(f.Fixture, l, ark, i+2, whole)))
		f.Done(l)
		f.Finish(c[i+1].Item.ID)
	}
	changes := func(since, version, limit int, folder string) (out []string) {
		f.Helper()
		q := registry.FileChangesQuery{ObjectID: ark, Since: since, Version: version, Folder: folder, Limit: limit}
		for {
			page, err := f.Store.FileChanges(f.Context(), q)
			f.Must(err)
			for _, c := range page.Rows {
				if (c.Before != nil) != (c.Change == registry.FileChanged || c.Change == registry.FileRemoved || c.To != "") || (c.After == nil) != (c.Change == registry.FileRemoved || c.To != "") {
					f.Errorf("%s %s has before %v and after %v", c.Path, c.Change, c.Before, c.After)
				}
				text := strings.TrimPrefix(c.Path, "producer/") + " " + string(c.Change)
				for _, other := range []string{c.From, c.To} {
					if other != "" {
						text += " " + strings.TrimPrefix(other, "producer/")
					}
				}
				out = append(out, text)
			}
			if q.After = page.Next; q.After == "" {
				return out
			}
		}
	}
	second := []string{"brief added", "list.csv changed", "new added", "old removed", "plate.tif renamed plates/1.tif", "plates/1.tif renamed plate.tif"}
	third := []string{"a changed", "b changed", "brief removed", "system added", "twin added", "twin 1 removed", "twin 2 removed"}
	both := []string{
		"a changed", "b changed", "list.csv changed", "new added", "old removed", "plate.tif renamed plates/1.tif", "plates/1.tif renamed plate.tif",
		"system added", "twin added", "twin 1 removed", "twin 2 removed",
	}
	for _, c := range []struct {
		since, version int
		folder         string
		want           []string
	}{{1, 2, "", second}, {2, 3, "", third}, {1, 0, "", both}, {1, 2, "producer/plates/", second[5:]}, {1, 2, "system/", nil}} {
		for _, limit := range []int{1, 2, 50} {
			if diff := cmp.Diff(c.want, changes(c.since, c.version, limit, c.folder)); diff != "" {
				f.Errorf("from %d to %d in %q, %d a page (-want +got):\n%s", c.since, c.version, c.folder, limit, diff)
			}
		}
	}
	if n := len(changes(0, 1, 3, "")); n != 8 {
		f.Errorf("%d files in the first version", n)
	}
	for q, want := range map[registry.FileChangesQuery]error{
		{ObjectID: ark, Since: 1, Version: 4}: registry.ErrNotFound, {ObjectID: "ark:/99999/none", Version: 1}: registry.ErrNotFound,
		{ObjectID: ark, Since: 2, Version: 2}: registry.ErrInvalid, {ObjectID: ark, Since: -1, Version: 2}: registry.ErrInvalid,
	} {
		_, err := f.Store.FileChanges(f.Context(), q)
		f.Is(err, want)
	}
}

// receipt assembles a version's receipt from the store and verifies it.
func (f *fixture) receipt(object string, version int) (registry.DepositReceipt, *receipt.Result) {
	f.Helper()
	kept, err := f.Store.DepositReceipt(f.Context(), object, version)
	f.Must(err)
	head, err := receipt.ParseHeader(kept.Head)
	f.Must(err)
	var b bytes.Buffer
	b.Write(receipt.Head(kept.Head, kept.Signature))
	for after := ""; ; {
		files, err := f.Store.Files(f.Context(), object, version, after, 500)
		f.Must(err)
		for _, row := range files {
			b.Write(receipt.FileOf(row, head.Format).Line())
			after = row.Path
		}
		if len(files) < 500 {
			break
		}
	}
	page, err := f.Store.PremisEvents(f.Context(), object, registry.AfterSeq(kept.FirstEvent-1), 500)
	f.Must(err)
	for _, e := range page.Rows {
		if e.Seq <= kept.LastEvent {
			b.Write(receipt.EventOf(e).Line(e.Hash))
		}
	}
	keys, err := f.Store.ReceiptKeys(f.Context())
	f.Must(err)
	if len(keys) != 1 || keys[0].ID != kept.KeyID {
		f.Fatalf("keys %+v, want one, %s", keys, kept.KeyID)
	}
	key, err := receipt.ParsePublicKey(keys[0].PublicKey)
	f.Must(err)
	r, err := receipt.Verify(&b, receipt.Options{Keys: []receipt.PublicKey{key}})
	f.Must(err)
	if !r.Valid() || !r.Trusted {
		f.Errorf("receipt of version %d: %v\n%s", version, r.Faults, b.String())
	}
	return kept, r
}

// eventsChained also checks that texts which the table cannot hold are hashed as they are stored.
func eventsChained(f *fixture) {
	c := f.Processing(2)
	ark := f.Named(c[0].Lease, "x").ARK
	var last receipt.Span
	for i := range 2 {
		f.Named(c[i].Lease, "x")
		f.Intend(c[i].Lease, ark, i+1, `{}`)
		v := registrytest.VersionRecord(f.Fixture, c[i].Lease, ark, i+1, nil)
		for n := range 3 {
			v.Events = append(v.Events, registry.Premis{
				ID: fmt.Sprintf("%d-%d", i, 3-n), ObjectID: ark, Version: i + 1, ItemID: c[i].Item.ID, Type: "fixity check", Agent: registrytest.Agent + "a\x00b",
				At: f.Clock.Now().Add(-time.Duration(n)*time.Hour + 7), Outcome: "success", Detail: "\xff\n" + strings.Repeat("é", 2000),
			})
		}
		v.Events = append(v.Events, v.Events[0]) // once more: it is left
		f.Must(f.Store.RecordVersion(f.Context(), c[i].Lease, v))
		f.Done(c[i].Lease)
		f.Finish(c[i].Item.ID)
		_, r := f.receipt(ark, i+1)
		span := r.Header.Events
		if span.First != int64(4*i+1) || span.Count != 4 || i > 0 && span.Before != last.After {
			f.Errorf("version %d: events %+v after %+v, want four that go on with the chain", i+1, span, last)
		}
		last = span
	}
	var seqs []int64
	for after := ""; ; {
		page, err := f.Store.PremisEvents(f.Context(), ark, after, 3)
		f.Must(err)
		for _, e := range page.Rows {
			seqs = append(seqs, e.Seq)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if !slices.Equal(seqs, []int64{1, 2, 3, 4, 5, 6, 7, 8}) {
		f.Errorf("events %v", seqs)
	}
	for _, bad := range []string{"x", "1.x.y", "1.2"} {
		_, err := f.Store.PremisEvents(f.Context(), ark, bad, 3)
		f.Is(err, registry.ErrNotFound)
	}
}

func oneReceipt(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	files := []registry.File{registrytest.File("producer/a"), registrytest.File("producer/%\n\xe9")}
	files[0].MIMEType, files[0].Format = "image/\"tiff\"", &registry.Format{PUID: "fmt/353", Name: "Tagged Image <File>", Version: "6", Registry: "v120", Warning: "é"}
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, files))
	_, err := f.Store.DepositReceipt(f.Context(), ark, 1)
	f.Is(err, registry.ErrNotFound)
	v := registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, files)
	v.Title, v.Inventory = "a \"title\"\n\xff\x00", "sha512:00"
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, v))
	before, r := f.receipt(ark, 1)
	if h := r.Header; h.Object != ark || h.Version != 1 || h.Files != 2 || h.Bytes != 10 || len(h.Replicas) != 1 ||
		h.Replicas[0].Storage != v.Replicas[0].Storage || h.Replicas[0].Inventory != "sha512:00" || !h.Replicas[0].Verified.Equal(v.Replicas[0].VerifiedAt) {
		f.Errorf("header %+v", h)
	}
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if h := r.Header; h.Format != receipt.Format || h.Collection != v.Collection || h.Item != c.Item.ID || h.Owner != o.Owner ||
		!slices.Equal(h.LocalIDs, []string{"x"}) || !h.Named.Equal(o.CreatedAt) || h.EZIDItem != "" {
		f.Errorf("identity in the header: %+v", h)
	}
	f.Clock.Pass(time.Minute)
	v.Title, v.Replicas[0].VerifiedAt = "another", f.Clock.Now()
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, v))
	f.Sweep(2 * registrytest.Lease) // killed before it settled
	l := f.TakeItem(c.Item.ID).Lease
	f.Is(f.Store.RecordVersion(f.Context(), c.Lease, v), registry.ErrClaimLost)
	f.Must(f.Store.RecordVersion(f.Context(), l, v))
	after, _ := f.receipt(ark, 1)
	if diff := cmp.Diff(before, after); diff != "" {
		f.Errorf("there is another receipt of the version:\n%s", diff)
	}
	for _, version := range []int{0, 2} {
		_, err := f.Store.DepositReceipt(f.Context(), ark, version)
		f.Is(err, registry.ErrNotFound)
	}
}

// manyReceipted checks that a receipt uses each path's last row, wherever the portions end. The
// second version's rows make the thousandth row fall between two rows of one path.
func manyReceipted(f *fixture) {
	const many, portion = 2500, 500
	c := f.Processing(2)
	ark := f.Named(c[0].Lease, "x").ARK
	record := func(l registry.Lease, version int, rows, state []registry.File) {
		f.Helper()
		f.Intend(l, ark, version, `{}`)
		slices.Reverse(rows) // in no order of their paths
		for part := range slices.Chunk(rows, portion) {
			f.Must(f.Store.RecordFiles(f.Context(), l, ark, version, part))
			f.Must(f.Store.RecordFiles(f.Context(), l, ark, version, part[:portion/5])) // whose answer was lost
		}
		v := registrytest.VersionRecord(f.Fixture, l, ark, version, state)
		f.Must(f.Store.RecordVersion(f.Context(), l, v))
		if _, r := f.receipt(ark, version); r.Files != v.Files {
			f.Errorf("receipt of version %d has %d files, want %d", version, r.Files, v.Files)
		}
	}
	var first, changes, second []registry.File
	for i := range many {
		one := registrytest.File(fmt.Sprintf("producer/%04d", i))
		first = append(first, one)
		switch i % 7 {
		case 0:
			one.Digests = map[string]string{"md5": fmt.Sprintf("%032x", i)}
			changes = append(changes, one)
		case 1:
			one.Deleted = true
			changes = append(changes, one)
			continue
		}
		second = append(second, one)
	}
	record(c[0].Lease, 1, first, first)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	f.Named(c[1].Lease, "x")
	record(c[1].Lease, 2, changes, second)
}

func notWhole(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	files := []registry.File{registrytest.File("a"), registrytest.File("b")}
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, files[:1]))
	v := registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, files)
	if err := f.Store.RecordVersion(f.Context(), c.Lease, v); err == nil {
		f.Error("a version was recorded with a file too few")
	}
	_, err := f.Store.Object(f.Context(), ark)
	f.Is(err, registry.ErrNotFound)
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, files))
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, v))
	f.receipt(ark, 1)
}
