package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// beeMark stands in everything of the collection that the depositor may not see.
const beeMark = "HONEYPOT"

// beePart finds beeMark in searches. Answers repeat what was searched for, which then is no leak.
const beePart = "HONEYPO"

// foreign is what lies in that collection.
type foreign struct{ batch, job, object, restore, upload, underway, hold, collection, graph, node, session, process, step, view string }

// unknown has ids of the same kinds that nothing has.
func unknown() foreign {
	const id = "01999999-9999-7999-8999-999999999999"
	return foreign{batch: id, job: id, restore: id, object: "ark:/99999/nothing", upload: id, underway: id, collection: "zzz", graph: id, node: id, session: id, process: "nothing", step: id, view: id}
}

// fill puts ids into a template.
func (f foreign) fill(template string) string {
	return strings.NewReplacer("BATCH", f.batch, "JOB", f.job, "ARK", strings.ReplaceAll(f.object, "/", "%2F"),
		"OBJECT", f.object, "RESTORE", f.restore, "UPLOAD", f.upload, "UNDERWAY", f.underway, "COLLECTION", f.collection, "GRAPH", f.graph, "NODE", f.node, "SESSION", f.session, "PROCESS", f.process, "STEP", f.step, "VIEW", f.view).Replace(template)
}

// strip takes what a request itself said, and what is its own, out of an answer.
func (f foreign) strip(text string) string {
	text = regexp.MustCompile(`urn:holdfast:request:\w+`).ReplaceAllString(text, "REQUEST")
	text = regexp.MustCompile(`<code>[A-Z2-7]{26}</code>`).ReplaceAllString(text, "REQUEST")
	text = regexp.MustCompile(`datetime="[^"]*"[^>]*>[^<]*`).ReplaceAllString(text, "TIME")
	for _, own := range []string{strings.ReplaceAll(f.object, "/", "%2F"), f.object, f.batch, f.job, f.restore, f.upload, f.underway, f.collection, f.graph, f.node, f.session, f.process, f.step, f.view} {
		if own != "" {
			text = strings.ReplaceAll(text, own, "ID")
		}
	}
	return text
}

// probe is a request of the depositor that names what is not theirs.
type probe struct{ method, path, body string }

// probes has requests for every operation of the access table: the test fails when one is missing. Operations that a
// depositor's role may not do at all need none.
func probes() map[string][]probe {
	get := func(paths ...string) (out []probe) {
		for _, p := range paths {
			out = append(out, probe{"GET", "/api/v1" + p, ""})
		}
		return out
	}
	return map[string][]probe{
		"upload":          nil, // brings bytes and names nothing
		"upload-protocol": nil, // names nothing
		"list-uploads":    get("/uploads"),
		"read-upload":     get("/uploads/UPLOAD", "/uploads/UNDERWAY"),
		"upload-offset":   {{"HEAD", "/api/v1/uploads/UPLOAD", ""}, {"HEAD", "/api/v1/uploads/UNDERWAY", ""}},
		"continue-upload": {{"PATCH", "/api/v1/uploads/UPLOAD", "x"}, {"PATCH", "/api/v1/uploads/UNDERWAY", "x"}},
		"remove-upload":   {{"DELETE", "/api/v1/uploads/UPLOAD", ""}},
		"check":           {{"POST", "/api/v1/check?upload_id=UPLOAD", ""}},
		"submit-payload": {
			{"POST", "/api/v1/batches", `{"url":"http://h.test/x","collection":"COLLECTION"}`},
			{"POST", "/api/v1/batches", `{"upload_id":"UPLOAD","collection":"default"}`},
			{"POST", "/api/v1/batches", `{"url":"http://h.test/x","requires":[{"item_id":"JOB"}]}`},
			{"POST", "/api/v1/batches", `{"url":"http://h.test/x","corrects":{"batch_id":"BATCH"}}`},
			{"POST", "/api/v1/batches", `{"url":"http://h.test/x","corrects":{"batch_id":"BATCH","lines":[{"first":1,"last":9}]}}`},
			{"POST", "/api/v1/batches", `{"url":"http://h.test/x","requires":[{"item_id":"NODE","wait_for":"settled"}]}`},
		},
		"prepare-graph": {
			{"POST", "/api/v1/graphs", `{"nodes":[{"key":"a","url":"http://h.test/x","collection":"COLLECTION"}]}`},
			{"POST", "/api/v1/graphs", `{"nodes":[{"key":"a","url":"http://h.test/x","requires":[{"item_id":"JOB"}]}]}`},
			{"POST", "/api/v1/graphs", `{"nodes":[{"key":"a","upload_id":"UPLOAD"}]}`},
			{"POST", "/api/v1/graphs", `{"graph_id":"GRAPH","nodes":[{"key":"a","url":"http://h.test/x"}]}`},
			{"POST", "/api/v1/graphs", `{"graph_id":"GRAPH","nodes":[{"key":"a","url":"http://h.test/x","requires":[{"key":"k` + beeMark + `"}]}]}`},
			{"POST", "/api/v1/graphs", `{"nodes":[{"key":"a","task":{"function":"count","collection":"COLLECTION","requires":[{"item_id":"JOB"}]}}]}`},
		},
		"list-functions": get("/functions"),
		"seal-graph":     {{"POST", "/api/v1/graphs/GRAPH/seal", ""}},
		"read-graph":     get("/graphs/GRAPH"),
		"graph-nodes":    get("/graphs/GRAPH/nodes"),
		"item-around":    get("/items/JOB/around", "/items/NODE/around"),
		"item-edges":     get("/items/JOB/edges", "/items/NODE/edges"),
		"count-items": get("/items/count", "/items/count?q=collection:COLLECTION", "/items/count?q=batch:BATCH", "/items/count?q=graph:GRAPH",
			"/items/count?q=id:JOB", "/items/count?q="+beePart),
		"list-failures":      get("/failures", "/failures?q=collection:COLLECTION", "/failures?q=batch:BATCH", "/failures?q=id:JOB", "/failures?q="+beePart),
		"queue-status":       get("/queue"),
		"read-accepting":     get("/queue/accepting"),
		"list-batches":       get("/batches", "/batches?collection=COLLECTION", "/batches?text="+beePart, "/batches?status=completed"),
		"read-batch":         get("/batches/BATCH"),
		"cancel-batch":       {{"POST", "/api/v1/batches/BATCH/cancel", "{}"}, {"POST", "/api/v1/batches/JOB/cancel", `{"reason":"x"}`}},
		"batch-progress":     get("/batches/BATCH/progress"),
		"list-batch-jobs":    get("/batches/BATCH/jobs"),
		"batch-report":       get("/batches/BATCH/report", "/batches/BATCH/report?closing=1"),
		"list-batch-reports": get("/batches/BATCH/reports"),
		"batch-report-json":  get("/batches/BATCH/report.json"),
		"batch-report-csv":   get("/batches/BATCH/report.csv", "/batches/BATCH/report.csv?closing=1"),
		"batch-report-jobs":  get("/batches/BATCH/report/jobs", "/batches/BATCH/report/jobs?list=completed"),
		"batch-receipts":     get("/batches/BATCH/receipts"),
		"list-items": get("/items", "/items?parent=BATCH", "/items?collection=COLLECTION", "/items?text="+beePart, "/items?q=collection:COLLECTION",
			"/items?q=graph:GRAPH", "/items?q=id:JOB", "/items?q=batch:BATCH"),
		"read-item":             get("/items/JOB", "/items/BATCH"),
		"item-history":          get("/items/JOB/history", "/items/COLLECTION/history"),
		"item-attempts":         get("/items/JOB/attempts"),
		"item-log":              get("/items/JOB/log"),
		"item-why":              get("/items/JOB/why"),
		"list-reasons":          get("/items/reasons?ids=JOB", "/items/reasons?ids=BATCH,NODE"),
		"list-holds":            get("/holds"),
		"list-collections":      get("/collections"),
		"read-collection":       get("/collections/COLLECTION"),
		"list-profile-versions": get("/collections/COLLECTION/versions"),
		"read-profile-version":  get("/collections/COLLECTION/versions/1"),
		"list-objects":          get("/objects", "/objects?collection=COLLECTION", "/objects?text="+beePart, "/objects?local_id=local"+beeMark),
		"list-deletions":        get("/deletions"),
		"read-object":           get("/objects/ARK"),
		"object-files":          get("/objects/ARK/files", "/objects/ARK/files?version=1", "/objects/ARK/files?path=producer/a"),
		"object-content":        get("/objects/ARK/content?path=producer/a"),
		"object-export":         get("/objects/ARK/export", "/objects/ARK/export?format=tar&bag=true"),
		"object-folder":         get("/objects/ARK/folder?path=producer/"),
		"object-changes":        get("/objects/ARK/changes?since=0"),
		"object-events":         get("/objects/ARK/events"),
		"object-premis":         get("/objects/ARK/premis"),
		"restore-object":        {{"POST", "/api/v1/objects/ARK/restores", "{}"}, {"POST", "/api/v1/objects/ARK/restores", `{"version":1}`}},
		"list-restores":         get("/objects/ARK/restores"),
		"read-restore":          get("/objects/ARK/restores/1"),
		"item-restore":          get("/items/RESTORE/restore"),
		"restored-content":      get("/objects/ARK/restores/1/content"),
		"object-receipt":        get("/objects/ARK/versions/1/receipt"),
		"receipt-keys":          get("/receipt-keys"),
		"list-feed":             get("/feed?limit=500", "/feed?limit=500&item=JOB", "/feed?limit=500&collections=COLLECTION", "/feed?types=token-created,hold,refused"),
		"events":                get("/events?item=JOB"), // and TestIsolation_Stream
		"list-namespaces":       get("/namespaces"),
		"list-processes":        get("/processes", "/processes?namespace=states", "/processes?text="+beePart),
		"read-process":          get("/processes/states/PROCESS", "/processes/states/PROCESS?wait=0.01"),
		"trace-process":         get("/processes/states/PROCESS/steps"),
		"read-answer":           get("/answers/STEP", "/answers/STEP?wait=0.01"),
		"list-views":            get("/views"),
		"read-view":             get("/views/VIEW"),
		"add-view":              nil, // names nothing of others
		"edit-view":             {{"PUT", "/api/v1/views/VIEW", `{"name":"x"}`}},
		"remove-view":           {{"DELETE", "/api/v1/views/VIEW", ""}},
		"own-token":             get("/token"),
		"create-sign-in-link":   nil, // names nothing
		"list-sessions":         get("/sessions"),
		"end-session":           {{"DELETE", "/api/v1/sessions/SESSION", ""}},
		"pages": {
			{"GET", "/operations", ""},
			{"GET", "/items", ""},
			{"GET", "/items?q=" + beePart, ""},
			{"GET", "/items?view=VIEW", ""},
			{"GET", "/batches/BATCH", ""},
			{"GET", "/deposits?of=all", ""},
			{"GET", "/deposits?q=" + beePart, ""},
			{"GET", "/deposits/BATCH", ""},
			{"GET", "/deposits/BATCH/cancel", ""},
			{"GET", "/deposit?from=BATCH", ""},
			{"GET", "/deposit?upload=UPLOAD", ""},
			{"GET", "/items/JOB", ""},
			{"GET", "/objects", ""},
			{"GET", "/objects?text=" + beePart, ""},
			{"GET", "/objects/OBJECT", ""},
			{"GET", "/objects/OBJECT?file=producer%2Fa", ""},
			{"GET", "/objects?collection=COLLECTION", ""},
			{"GET", "/holds", ""},
			{"GET", "/deletions", ""},
			{"GET", "/deletions/OBJECT?decision=approve", ""},
		},
	}
}

// isolated is a server with something in both collections, and what lies in the other one.
func isolated(t *testing.T) (*bench, foreign) {
	t.Helper()
	b := newBench(t, withPages)
	ctx := t.Context()
	must(t, b.store.PutCollection(ctx, registry.Collection{
		Mnemonic: "hiveb", Profile: registry.Profile{Name: beeMark, Owner: "ark:/99999/" + beeMark},
	}, "test"))
	must(t, b.store.AddToken(ctx, registry.Token{
		ID: "hiveb", Hash: signin.Hash("hf_bee"), Name: beeMark, Role: registry.RoleDepositor, Collections: []string{"hiveb"},
	}))
	b.preserve(t, "ark:/99999/mine", map[string]string{"producer/a": "mine"})
	b.collection, b.mark = "hiveb", beeMark
	f := foreign{collection: "hiveb", object: "ark:/99999/bee1"}
	f.batch, f.job = b.preserve(t, f.object, map[string]string{"producer/a": beeMark})
	f.restore = b.restored(t, f.object, beeMark).ItemID
	held, _ := b.batchOf(t, "held"+beeMark)
	b.collection, b.mark = "", ""
	_, err := b.store.AskDeletion(ctx, f.object, beeMark, beeMark)
	must(t, err)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldCollection, Key: "hiveb"}, {Scope: registry.HoldBatch, Key: held}, {Scope: registry.HoldItem, Key: held},
	} {
		h.Reason, h.Actor = beeMark, beeMark
		must(t, b.store.AddHold(ctx, h))
	}
	f.hold = held
	bee := &caller{client.New(b.server.URL, "hf_bee", client.Options{}), b.server.URL, "hf_bee"}
	t.Cleanup(bee.Close)
	u, err := bee.SendUpload(ctx, oneRequest{Filename: beeMark + ".txt", Body: strings.NewReader(beeMark), Size: int64(len(beeMark))})
	must(t, err)
	f.upload = u.ID
	on, err := b.store.BeginUpload(ctx, registry.NewUpload{ID: "underway", Filename: beeMark, SizeBytes: 9, CreatedBy: beeMark, Keep: time.Hour})
	must(t, err)
	f.underway = on.ID
	g, err := bee.Prepare(ctx, registry.Graph{Nodes: []registry.Node{{Key: "k" + beeMark, Submission: registry.Submission{
		Collection: "hiveb", Name: beeMark, Spec: registry.Spec{URL: "http://h.test/" + beeMark}, Requires: []registry.Requirement{{ItemID: held}},
	}}}})
	must(t, err)
	f.graph, f.node = g.GraphID, g.Items["k"+beeMark]
	signedIn, err := b.store.AddSession(ctx, registry.Session{
		ID: "the session of " + beeMark, Hash: beeMark, TokenID: "hiveb", Method: registry.SignInToken, Agent: beeMark,
	}, registry.Lifetime{Idle: time.Hour, Most: time.Hour})
	must(t, err)
	f.session = signedIn.ID
	must(t, b.store.AnnounceNamespaces(ctx, []registry.Namespace{{Name: "states"}}))
	f.process = "p" + beeMark
	started, err := b.store.InitProcess(ctx, registry.NewProcess{ProcessKey: registry.ProcessKey{Namespace: "states", ProcessID: f.process}, Collection: "hiveb"})
	must(t, err)
	f.step = started.ItemID
	view, err := b.store.AddView(ctx, registry.View{Owner: beeMark, Name: beeMark, Query: "collection:hiveb", Shared: true})
	must(t, err)
	f.view = view.ID
	return b, f
}

// TestIsolation_EveryOperation checks that a depositor's token gets no byte of another collection
// from any operation, and cannot distinguish hidden from missing things.
func TestIsolation_EveryOperation(t *testing.T) {
	b, theirs := isolated(t)
	nothing := unknown()
	all := probes()
	for id, roles := range access.Roles() {
		list, known := all[id]
		if !slices.Contains(roles, registry.RoleDepositor) {
			continue
		}
		if !known {
			t.Errorf("operation %s is a depositor's, and nobody has tried what it tells of other collections", id)
		}
		for _, p := range list {
			name := p.method + " " + p.path
			answer, text := b.ask(t, p, theirs, registry.RoleDepositor)
			there := theirs.strip(text)
			for _, found := range []string{beeMark, theirs.batch, theirs.job, theirs.object, theirs.restore, theirs.hold, theirs.upload, theirs.underway, theirs.graph, theirs.node, theirs.session, theirs.process, theirs.step, theirs.view, "hiveb"} {
				if strings.Contains(there, found) {
					t.Errorf("%s tells %s: %s", name, found, text)
				}
			}
			control, text := b.ask(t, p, nothing, registry.RoleDepositor)
			if not := nothing.strip(text); control.StatusCode != answer.StatusCode || not != there {
				t.Errorf("%s: what is there can be told from what is not:\n%d %s\n%d %s", name, answer.StatusCode, there, control.StatusCode, not)
			}
			if p.method != http.MethodGet || id == "events" {
				continue // would change what the next one asks about, or not end
			}
			// The probe means something only if there is something to be told.
			if seen, text := b.ask(t, p, theirs, registry.RoleAdmin); seen.StatusCode != http.StatusOK && !strings.Contains(p.path, "/items/COLLECTION") {
				t.Errorf("%s as admin: %d %s", name, seen.StatusCode, text)
			}
		}
	}
	if _, err := b.store.UploadByID(t.Context(), theirs.upload); err != nil || !slices.Contains(b.staged(t), "uploads/"+theirs.upload+"/payload") {
		t.Errorf("the other depositor's upload is gone: %v, staged %v", err, b.staged(t))
	}
	if g, err := b.store.Graph(t.Context(), theirs.graph); err != nil || g.Sealed || len(g.Items) != 1 {
		t.Errorf("the other depositor's graph was changed: %+v %v", g, err)
	}
	if page, err := b.store.Items(t.Context(), registry.ItemQuery{Within: []string{"default"}}); err != nil || len(page.Rows) != 2 {
		t.Errorf("%d items of the depositor's own %v, want a batch and its job: something was submitted that names another's", len(page.Rows), err)
	}
}

func (b *bench) ask(t *testing.T, p probe, f foreign, role registry.Role) (reply, string) {
	t.Helper()
	header := []string{"Authorization", "Bearer " + tokenText(role)}
	if p.method == http.MethodHead || p.method == http.MethodPatch {
		header = append(header, "Tus-Resumable", "1.0.0", "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
	}
	return b.send(t, p.method, f.fill(p.path), f.fill(p.body), header...)
}

// TestIsolation_OwnIsSeen checks that a depositor sees its own things.
func TestIsolation_OwnIsSeen(t *testing.T) {
	b, _ := isolated(t)
	c := b.as(t, registry.RoleDepositor)
	batches, err := c.Batches(t.Context(), registry.ItemQuery{})
	must(t, err)
	objects, err := c.Objects(t.Context(), registry.ObjectQuery{})
	must(t, err)
	collections, err := c.Collections(t.Context())
	must(t, err)
	if len(batches.Rows) != 1 || len(objects.Rows) != 1 || objects.Rows[0].ID != "ark:/99999/mine" || len(collections) != 1 {
		t.Errorf("own: %+v %+v %+v, want one of each", batches.Rows, objects.Rows, collections)
	}
	if o, err := c.Object(t.Context(), "ark:/99999/mine"); err != nil || o.Versions[0].ItemID == "" {
		t.Errorf("own object: %+v %v", o, err)
	}
	if events, err := c.Events(t.Context(), batches.Rows[0].ID, 0, 100); err != nil || len(events) < 5 {
		t.Errorf("own history: %+v %v", events, err)
	}
	in, err := c.Content(t.Context(), "ark:/99999/mine", 1, "producer/a", "", 0)
	must(t, err)
	defer in.Close()
	if text, err := io.ReadAll(in); err != nil || string(text) != "mine" {
		t.Errorf("own content: %q %v", text, err)
	}
}

// TestIsolation_Stream checks that a stream has the events of a depositor's own collections, from
// the first one on.
func TestIsolation_Stream(t *testing.T) {
	b, theirs := isolated(t)
	mine, _ := b.batchOf(t, "last")
	done := errors.New("seen")
	n := 0
	err := b.as(t, registry.RoleDepositor).FollowEvents(t.Context(), registry.FeedQuery{}, func(e registry.Event) error {
		n++
		text, err := json.Marshal(e)
		must(t, err)
		for _, found := range []string{beeMark, theirs.batch, theirs.job, theirs.object, "hiveb"} {
			if strings.Contains(string(text), found) {
				t.Errorf("the stream tells %s: %s", found, text)
			}
		}
		if e.Collection != "default" {
			t.Errorf("event of collection %q: %s", e.Collection, text)
		}
		if e.ItemID == mine {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) || n < 10 {
		t.Errorf("followed %d events: %v", n, err)
	}
}

// TestIsolation_WhyNamesNoForeignItem checks an item that waits for one of another collection: it
// shows that it waits, but not for what.
func TestIsolation_WhyNamesNoForeignItem(t *testing.T) {
	b := newBench(t)
	must(t, b.store.PutCollection(t.Context(), registry.Collection{Mnemonic: "hiveb", Profile: registry.Profile{Owner: "ark:/99999/o"}}, "test"))
	b.collection = "hiveb"
	_, theirs := b.batchOf(t, "theirs")
	b.collection = ""
	_, mine := b.batchOf(t, "mine")
	for _, stage := range []registry.Stage{registry.Estimate, registry.Provision, registry.Download} {
		for range 2 {
			b.settle(t, registry.Settlement{Lease: b.claim(t, stage).Lease, Outcome: registry.OutcomeDone})
		}
	}
	w, err := b.store.Why(t.Context(), mine)
	must(t, err)
	if w.Reason != registry.ReasonLocked || !strings.Contains(w.Sentence, theirs) {
		t.Fatalf("why %+v, want locked by %s", w, theirs)
	}
	seen, err := b.as(t, registry.RoleDepositor).Why(t.Context(), mine)
	must(t, err)
	other, err := b.store.Item(t.Context(), theirs)
	must(t, err)
	if text := everything(t, seen); seen.Reason != registry.ReasonLocked || strings.Contains(text, theirs) || other.Name == "" || strings.Contains(text, `"`+other.Name+`"`) {
		t.Errorf("why %+v, want locked, without %s (%s)", seen, theirs, other.Name)
	}
	if w, err = b.as(t, registry.RoleViewer).Why(t.Context(), mine); err != nil || !strings.Contains(w.Sentence, theirs) {
		t.Errorf("why %+v %v, want a viewer to be told all", w, err)
	}
}

// everything is all that an explanation says, in all its parts.
func everything(t *testing.T, w registry.Why) string {
	t.Helper()
	raw, err := json.Marshal(w)
	must(t, err)
	return string(raw)
}

// TestIsolation_WhyNamesNoForeignTask checks a task that waits for one of another collection: neither
// its id nor its title shows.
func TestIsolation_WhyNamesNoForeignTask(t *testing.T) {
	b, _ := isolated(t)
	must(t, b.store.Announce(t.Context(), []registry.Function{{Name: "count"}}))
	theirs, err := b.store.AddTask(t.Context(), registry.NewTask{Function: "count", Title: "their (secret) title", Collection: "hiveb", Actor: "test"})
	must(t, err)
	mine, err := b.store.AddTask(t.Context(), registry.NewTask{
		Function: "count", Collection: "default", Actor: "test", Requires: []registry.Requirement{{ItemID: theirs.ID}},
	})
	must(t, err)
	w, err := b.as(t, registry.RoleDepositor).Why(t.Context(), mine.ID)
	must(t, err)
	if text := everything(t, w); w.Sentence != "waits for (of another collection), which is Pending" || strings.Contains(text, "secret") || strings.Contains(text, theirs.ID) {
		t.Errorf("why %+v", w)
	}
	if w, err = b.as(t, registry.RoleViewer).Why(t.Context(), mine.ID); err != nil || !strings.Contains(w.Sentence, "their (secret) title "+theirs.ID) {
		t.Errorf("a viewer sees %+v, %v", w, err)
	}
}

// TestIsolation_IdempotencyKeys checks that the equal idempotency keys of two depositors do not
// interfere.
func TestIsolation_IdempotencyKeys(t *testing.T) {
	b, _ := isolated(t)
	bee := client.New(b.server.URL, "hf_bee", client.Options{})
	t.Cleanup(bee.Close)
	first, err := bee.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/1", Collection: "hiveb"}, "key")
	must(t, err)
	mine, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/2"}, "key")
	must(t, err)
	if mine.Duplicate || mine.BatchID == first.BatchID {
		t.Errorf("mine=%+v, want a batch of its own", mine)
	}
	again, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/2"}, "key")
	must(t, err)
	if !again.Duplicate || again.BatchID != mine.BatchID {
		t.Errorf("again=%+v, want %s as a duplicate", again, mine.BatchID)
	}
}

// TestIsolation_UploadInUseElsewhere checks that an upload stays if an operator submitted it to a
// collection that its depositor does not see.
func TestIsolation_UploadInUseElsewhere(t *testing.T) {
	b, _ := isolated(t)
	u := b.upload(t, "a.txt", "text")
	taken, err := b.as(t, registry.RoleOperator).Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID, Collection: "hiveb"}, "")
	must(t, err)
	err = b.as(t, registry.RoleDepositor).RemoveUpload(t.Context(), u.ID)
	if p := problemOf(t, err, http.StatusConflict, wire.CodeConflict); strings.Contains(p.Detail, taken.BatchID) {
		t.Errorf("the depositor is told of batch %s: %s", taken.BatchID, p.Detail)
	}
	if !slices.Contains(b.staged(t), "uploads/"+u.ID+"/payload") {
		t.Error("bytes of a batch were removed")
	}
}

// TestScoped_WithoutAToken checks that nothing is visible without a request's token.
func TestScoped_WithoutAToken(t *testing.T) {
	b, theirs := isolated(t)
	r := scope.New(b.store)
	ctx := context.Background()
	if page, err := r.Items(ctx, registry.ItemQuery{}); err != nil || len(page.Rows) > 0 {
		t.Errorf("items %+v %v, want none", page, err)
	}
	if _, err := r.Item(ctx, theirs.job); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("item: %v, want ErrNotFound", err)
	}
	if events, err := r.Feed(ctx, registry.FeedQuery{}); err != nil || len(events) > 0 {
		t.Errorf("feed %+v %v, want none", events, err)
	}
	if holds, err := r.Holds(ctx); err != nil || len(holds) > 0 {
		t.Errorf("holds %+v %v, want none", holds, err)
	}
}

// TestIsolation_MixedGraph checks a graph with items of two collections: each depositor sees only
// its own.
func TestIsolation_MixedGraph(t *testing.T) {
	b, _ := isolated(t)
	node := func(key, collection string, requires ...registry.Requirement) registry.Node {
		return registry.Node{Key: key, Submission: registry.Submission{
			Collection: collection, Spec: registry.Spec{URL: "http://h.test/" + key}, Requires: requires,
		}}
	}
	g, err := b.as(t, registry.RoleAdmin).Prepare(t.Context(), registry.Graph{Nodes: []registry.Node{
		node("first", "default"), node("theirs"+beeMark, "hiveb"),
		node("last", "default", registry.Requirement{Key: "first"}, registry.Requirement{Key: "theirs" + beeMark}),
	}})
	must(t, err)
	c := b.as(t, registry.RoleDepositor)
	seen, err := c.Graph(t.Context(), g.GraphID)
	must(t, err)
	var parts []registry.GraphPart
	nodes := 0
	for after := ""; ; {
		p, err := c.GraphNodes(t.Context(), g.GraphID, after, 1)
		must(t, err)
		parts, nodes = append(parts, p), nodes+len(p.Nodes)
		if after = p.Next; after == "" {
			break
		}
	}
	around, err := c.Around(t.Context(), g.Items["last"], 0)
	must(t, err)
	if nodes < 2 || len(around.Nodes) != 2 {
		t.Errorf("pages %+v, around %+v, want what is the depositor's own", parts, around)
	}
	requires, required, err := c.Edges(t.Context(), g.Items["last"])
	must(t, err)
	why, err := c.Why(t.Context(), g.Items["last"])
	must(t, err)
	text, err := json.Marshal([]any{seen, parts, around, requires, required, why})
	must(t, err)
	if strings.Contains(string(text), beeMark) || strings.Contains(string(text), g.Items["theirs"+beeMark]) {
		t.Errorf("the depositor is told of the other collection's item: %s", text)
	}
	if len(seen.Items) != 2 || len(seen.Keys) != 2 || len(seen.Edges) != 1 || len(requires) != 1 || requires[0].RequiresID != g.Items["first"] {
		t.Errorf("graph %+v, edges %+v, want what is the depositor's own", seen, requires)
	}
	for what, err := range map[string]error{
		"seal": c.Seal(t.Context(), g.GraphID),
		"add":  second(c.Prepare(t.Context(), registry.Graph{ID: g.GraphID, Nodes: []registry.Node{node("more", "default")}})),
	} {
		if !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s: %v, want that there is no such graph", what, err)
		}
	}
}

// TestIsolation_PurgedItem checks that the history and attempts of a purged item stay visible to
// those who could see the item, and to nobody else.
func TestIsolation_PurgedItem(t *testing.T) {
	b, theirs := isolated(t)
	for id, sees := range map[string][]registry.Role{
		theirs.batch:   {registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin},
		ownBatch(t, b): {registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin},
	} {
		_, err := b.store.Command(t.Context(), registry.Command{ItemID: id, Act: registry.ActPurge, Actor: "boss", Confirmed: true})
		must(t, err)
		for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin} {
			c := b.as(t, role)
			if _, err := c.Item(t.Context(), id); !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("item as %s: %v, want that it is gone", role, err)
			}
			events, err := c.Events(t.Context(), id, 0, 100)
			attempts, gone := c.Attempts(t.Context(), id)
			if !slices.Contains(sees, role) {
				if !errors.Is(err, registry.ErrNotFound) || !errors.Is(gone, registry.ErrNotFound) {
					t.Errorf("history of another collection's item as %s: %+v %v, attempts %+v %v", role, events, err, attempts, gone)
				}
				continue
			}
			if err != nil || len(events) < 3 || events[len(events)-1].Type != string(registry.ActPurge) {
				t.Errorf("history as %s: %+v %v, want all of it", role, events, err)
			}
			if gone != nil || len(attempts) == 0 {
				t.Errorf("attempts as %s: %+v %v", role, attempts, gone)
			}
		}
	}
}

// ownBatch is the depositor's one batch.
func ownBatch(t *testing.T, b *bench) string {
	t.Helper()
	page, err := b.as(t, registry.RoleDepositor).Batches(t.Context(), registry.ItemQuery{})
	must(t, err)
	return page.Rows[0].ID
}
