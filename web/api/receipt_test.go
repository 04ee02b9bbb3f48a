package api_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/premis/premistest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

// TestReceipt checks that a receipt matches the files and verifies with a listed key.
func TestReceipt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	want := testFiles()
	b.preserve(t, objectARK, want)
	c := b.as(t, registry.RoleViewer)
	keys, err := c.ReceiptKeys(ctx)
	must(t, err)
	if len(keys) != 1 {
		t.Fatalf("keys %+v, want one", keys)
	}
	trusted, err := receipt.ParsePublicKeys([]byte(keys[0].PEM))
	must(t, err)
	for _, version := range []int{0, 1} {
		body, err := c.DepositReceipt(ctx, "ark:99999/fk4one", version)
		must(t, err)
		got := map[string]string{}
		r, err := receipt.Verify(body, receipt.Options{Keys: trusted, File: func(f receipt.File) error {
			got[f.Path] = want[f.Path]
			return nil
		}})
		must(t, errors.Join(err, body.Close()))
		if !r.Valid() || !r.Trusted || r.Header.Object != objectARK || r.Header.Version != 1 || r.Events != 1 || r.Header.Key != keys[0].ID {
			t.Errorf("version %d: %+v", version, r)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	_, err = c.DepositReceipt(ctx, objectARK, 2)
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	_, err = c.DepositReceipt(ctx, "ark:/99999/fk4none", 1)
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	address := "/api/v1/objects/" + url.PathEscape(objectARK) + "/versions/"
	for _, bad := range []string{"x/receipt", "-1/receipt", "1/receipt?vresion=1"} {
		answer, text := b.send(t, http.MethodGet, address+bad, "")
		wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
	}
}

// TestReceipts checks that a batch's receipts come as one tar, each as it comes alone.
func TestReceipts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiting, _ := b.batchOf(t, "waiting")
	address := "/api/v1/batches/" + waiting + "/receipts"
	answer, text := b.send(t, http.MethodGet, address, "")
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
	many := map[string]string{} // whose receipt is not kept in memory
	for i := range 900 {
		many[fmt.Sprintf("%s%d.txt", strings.Repeat("a-long-folder/", 20), i)] = "x"
	}
	for _, files := range []map[string]string{testFiles(), many} {
		b := newBench(t)
		batch, _ := b.preserve(t, objectARK, files)
		answer, text = b.send(t, http.MethodGet, "/api/v1/batches/"+batch+"/receipts", "")
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/x-tar" {
			t.Fatalf("%d %s: %.200s", answer.StatusCode, answer.Header.Get("Content-Type"), text)
		}
		in := tar.NewReader(strings.NewReader(text))
		entry, err := in.Next()
		must(t, err)
		if !strings.HasSuffix(entry.Name, ".v1.jsonl") || !strings.Contains(entry.Name, "99999_fk4one") {
			t.Errorf("the receipt is named %s", entry.Name)
		}
		r, err := receipt.Verify(in, receipt.Options{})
		must(t, err)
		if !r.Valid() || r.Header.Object != objectARK || r.Header.Files != int64(len(files)) {
			t.Errorf("%+v", r)
		}
		if _, err := in.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("more than one receipt: %v", err)
		}
		if large := entry.Size > 256<<10; large != (len(files) == len(many)) {
			t.Errorf("a receipt of %d files has %d bytes", len(files), entry.Size)
		}
	}
}

// TestReceipt_InventoryChanged checks that a changed inventory does not verify, and that the answer
// shows the change.
func TestReceipt_InventoryChanged(t *testing.T) {
	t.Parallel()
	for where, change := range map[string]func(*altered){
		"files":               func(a *altered) { a.file = func(f *registry.File) { f.SizeBytes++ } },
		"event 1 (ingestion)": func(a *altered) { a.event = func(e *registry.Premis) { e.Detail = "another" } },
	} {
		var a *altered
		b := newBench(t, func(_ *bench, o *api.Options) {
			a = &altered{Registry: o.Registry}
			o.Registry = a
		})
		b.preserve(t, objectARK, testFiles())
		change(a)
		body, err := b.as(t, registry.RoleViewer).DepositReceipt(t.Context(), objectARK, 1)
		must(t, err)
		r, err := receipt.Verify(body, receipt.Options{})
		must(t, body.Close())
		if r.Valid() || r.Faults[0].Where != where {
			t.Errorf("%v, want a fault of %s", r.Faults, where)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: the answer ended with %v, want it broken off", where, err)
		}
	}
}

// altered is a Registry whose inventory was changed behind its back.
type altered struct {
	scope.Registry
	file   func(*registry.File)
	event  func(*registry.Premis)
	object *registry.Object // the only one, with these rows
	files  []registry.File
	events []registry.Premis
}

func (a *altered) Files(ctx context.Context, id string, version int, after string, limit int) ([]registry.File, error) {
	files, err := a.Registry.Files(ctx, id, version, after, limit)
	for i := range files {
		if a.file != nil {
			a.file(&files[i])
		}
	}
	return files, err
}

func (a *altered) PremisEvents(ctx context.Context, id, after string, limit int) (registry.Page[registry.Premis], error) {
	if a.object != nil {
		return registry.Page[registry.Premis]{Rows: a.events}, nil
	}
	page, err := a.Registry.PremisEvents(ctx, id, after, limit)
	for i := range page.Rows {
		if a.event != nil {
			a.event(&page.Rows[i])
		}
	}
	return page, err
}

func (a *altered) Object(ctx context.Context, id string) (registry.Object, error) {
	if a.object != nil {
		return *a.object, nil
	}
	return a.Registry.Object(ctx, id)
}

// FileHistory is asked of an object that is given only.
func (a *altered) FileHistory(context.Context, string, registry.FilePlace, int) ([]registry.File, error) {
	return a.files, nil
}

// TestPREMIS checks that the document is valid PREMIS 3 and complete, whatever its texts contain.
func TestPREMIS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := testFiles()
	files["producer/control-\x01"] = "y"
	b.preserve(t, objectARK, files)
	body, err := b.as(t, registry.RoleViewer).PREMIS(t.Context(), objectARK)
	must(t, err)
	root, err := premistest.Read(body)
	must(t, errors.Join(err, body.Close()))
	must(t, premistest.Validate(root))
	kinds := map[string]int{}
	digests := 0
	names := map[string]bool{}
	for _, o := range root.Find("object") {
		kinds[o.Attrs["type"]]++
		digests += len(o.Find("objectCharacteristics", "fixity"))
		for _, v := range o.Find("objectIdentifier", "objectIdentifierValue") {
			names[v.Text] = true
		}
	}
	if diff := cmp.Diff(map[string]int{"intellectualEntity": 1, "representation": 1, "file": len(files)}, kinds); diff != "" || digests != len(files) {
		t.Errorf("objects (-want +got), %d digests:\n%s", digests, diff)
	}
	for _, id := range []string{objectARK, objectARK + "/v1", objectARK + "/v1/producer/control-%01", objectARK + "/v1/producer/a b/ü%252F.x"} {
		if !names[id] {
			t.Errorf("no object is called %s among %v", id, names)
		}
	}
	// What relationships and events name is there.
	for _, path := range [][]string{
		{"object", "relationship", "relatedObjectIdentifier", "relatedObjectIdentifierValue"},
		{"event", "linkingObjectIdentifier", "linkingObjectIdentifierValue"},
	} {
		found := root.Find(path...)
		if len(found) == 0 {
			t.Errorf("no %v", path)
		}
		for _, n := range found {
			if !names[n.Text] {
				t.Errorf("%v names %s, which is not there", path, n.Text)
			}
		}
	}
	if events := root.Find("event", "eventType"); len(events) != 1 || events[0].Text != "ingestion" {
		t.Errorf("events %v", events)
	}
	_, err = b.as(t, registry.RoleViewer).PREMIS(t.Context(), "ark:/99999/fk4none")
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
}

// TestPREMIS_AnyHistory checks that the document has events of all types, agents and texts, and
// changed and deleted files.
func TestPREMIS_AnyHistory(t *testing.T) {
	t.Parallel()
	at := time.Now()
	var events []registry.Premis
	for i, kind := range []string{"fixity check", "replication", "deletion", "virus check", "format identification", "our own\x01"} {
		events = append(events, registry.Premis{
			ID: fmt.Sprint(i), ObjectID: objectARK, Version: i % 4, Type: kind, At: at, Agent: []string{"Holdfast 1", "ClamAV 1.0.7", "somebody \x02", ""}[i%4],
			Outcome: []string{"success", "fail", "warning", ""}[i%4], Detail: []string{"", " ", "a\x07b", "text"}[i%4],
		})
	}
	row := func(path string, version int, deleted bool) registry.File {
		return registry.File{Path: path, Version: version, ContentPath: "c", Digests: map[string]string{"sha512": "aa", "crc9": "b"}, Deleted: deleted}
	}
	known := func(path string, version int) registry.File {
		f := row(path, version, false)
		f.MIMEType, f.Format = "application/pdf", &registry.Format{PUID: "fmt/18", Name: "PDF", Version: "1.4", Warning: "by name alone"}
		return f
	}
	b := newBench(t, func(_ *bench, o *api.Options) {
		o.Registry = &altered{
			Registry: o.Registry,
			object: &registry.Object{ID: objectARK, ARK: objectARK, Head: 3, Title: "a\x01", LocalIDs: []string{"l\n1"}, Versions: []registry.ObjectVersion{
				{Version: 1, Replicas: []registry.Replica{{Storage: registry.DefaultStorage}, {Storage: "gone"}}},
				{Version: 2},
				{Version: 3, Replicas: []registry.Replica{{Storage: "b\x02"}}},
			}},
			files: []registry.File{
				row("producer/a", 1, false), known("producer/a", 3), row("producer/b", 1, false), row("producer/b", 2, true), row("producer/c", 4, false),
			},
			events: events,
		}
	})
	body, err := b.as(t, registry.RoleViewer).PREMIS(t.Context(), objectARK)
	must(t, err)
	root, err := premistest.Read(body)
	must(t, errors.Join(err, body.Close()))
	must(t, premistest.Validate(root))
	in := map[string][]string{}
	for _, o := range root.Find("object") {
		if o.Attrs["type"] == "file" {
			id := strings.TrimPrefix(o.Find("objectIdentifier", "objectIdentifierValue")[0].Text, objectARK)
			for _, r := range o.Find("relationship", "relatedObjectIdentifier", "relatedObjectIdentifierValue") {
				in[id] = append(in[id], strings.TrimPrefix(r.Text, objectARK))
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{"/v1/producer/a": {"/v1", "/v2"}, "/v3/producer/a": {"/v3"}, "/v1/producer/b": {"/v1"}}, in); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	agents := map[string]string{}
	for _, a := range root.Find("agent") {
		kind := ""
		if found := a.Find("agentType"); len(found) > 0 {
			kind = found[0].Text
		}
		agents[a.Find("agentIdentifier", "agentIdentifierValue")[0].Text] = kind
	}
	if diff := cmp.Diff(map[string]string{"Holdfast 1": "software", "ClamAV 1.0.7": "software", "somebody \ufffd": "software"}, agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"formatRegistryName": "PRONOM", "formatRegistryKey": "fmt/18"} {
		if found := root.Find("object", "objectCharacteristics", "format", "formatRegistry", path); len(found) != 1 || found[0].Text != want {
			t.Errorf("%s %v, want %s", path, found, want)
		}
	}
	if got := len(root.Find("event")); got != len(events) {
		t.Errorf("%d events, want %d", got, len(events))
	}
}

// TestPREMIS_Deleted checks the document of a deleted object: the event concerns all versions, no
// locations are left, and requester and approver are people.
func TestPREMIS_Deleted(t *testing.T) {
	t.Parallel()
	document := func(gone registry.DeletionStatus) *premistest.Node {
		b := newBench(t, func(_ *bench, o *api.Options) {
			at := []registry.Replica{{Storage: registry.DefaultStorage}}
			o.Registry = &altered{
				Registry: o.Registry,
				object: &registry.Object{
					ID: objectARK, ARK: objectARK, Head: 2, Gone: gone, Versions: []registry.ObjectVersion{{Version: 1, Replicas: at}, {Version: 2, Replicas: at}},
					Deletion: &registry.Deletion{ItemID: "item", Status: gone, AskedBy: "one", ApprovedBy: "two"},
				},
				files: []registry.File{{Path: "producer/a", Version: 1, ContentPath: "c", Digests: map[string]string{"sha512": "aa"}}},
				events: []registry.Premis{
					{ID: "0", ObjectID: objectARK, Version: 1, Type: "ingestion", At: time.Now(), Agent: "Holdfast 1.0"},
					{ID: premis.EventID("item", "deletion", "").Value, ObjectID: objectARK, Version: 2, Type: "deletion", At: time.Now(), Agent: "Holdfast 1.0"},
				},
			}
		})
		body, err := b.as(t, registry.RoleViewer).PREMIS(t.Context(), objectARK)
		must(t, err)
		root, err := premistest.Read(body)
		must(t, errors.Join(err, body.Close()))
		must(t, premistest.Validate(root))
		return root
	}
	texts := func(nodes []*premistest.Node) (out []string) {
		for _, n := range nodes {
			out = append(out, n.Text)
		}
		return out
	}
	if root := document(registry.DeletionDeleting); len(root.Find("object", "storage")) != 3 || len(root.Find("object", "linkingEventIdentifier")) != 0 {
		t.Error("an object that is being deleted is where it was")
	}
	root := document(registry.DeletionDeleted)
	if places := root.Find("object", "storage"); len(places) != 0 {
		t.Errorf("%d places of what is deleted", len(places))
	}
	deletion := premis.EventID("item", "deletion", "").Value
	if got := texts(root.Find("object", "linkingEventIdentifier", "linkingEventIdentifierValue")); !slices.Equal(got, []string{deletion, deletion, deletion}) {
		t.Errorf("versions and file name the events %v", got)
	}
	event := root.Find("event")[1]
	if got := texts(event.Find("linkingObjectIdentifier", "linkingObjectIdentifierValue")); !slices.Equal(got, []string{objectARK, objectARK + "/v1", objectARK + "/v2"}) {
		t.Errorf("it is about %v", got)
	}
	if got := texts(event.Find("linkingAgentIdentifier", "linkingAgentRole")); !slices.Equal(got, []string{"authorizer", "executing program", "implementer"}) {
		t.Errorf("roles %v", got)
	}
	if got := texts(root.Find("agent", "agentType")); !slices.Equal(got, []string{"person", "person", "software"}) {
		t.Errorf("agents %v", got)
	}
}
