package ui_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// person is somebody who uses the pages without scripts. Sending a form is noted.
type person struct {
	*uitest.Visitor
	t       testing.TB
	pattern func(method, path string) string
	store   *sqlstore.Store
	sent    map[string]bool // patterns of the routes to which forms were sent, and what was asked of them
}

// asked is what a form asks of a route: the route's pattern, and the act if the form names one.
func asked(pattern string, sends url.Values) string {
	for _, name := range []string{"act", "do", "decision"} {
		if sends.Get(name) != "" {
			return pattern + " " + sends.Get(name)
		}
	}
	return pattern
}

// settings are the events of acts that set something. Sent again, they set it to what it is already.
var settings = []string{
	string(registry.ActHold), "limit", "accepting", "drain", registry.EventCredentialSet, registry.EventSubscriptionPaused, registry.EventSubscriptionRewound,
	registry.EventSchedulePaused, registry.EventLinkMade, registry.EventStorage,
}

// do sends the form of a page to an address. It must be carried out, and lead to a page that says so.
// A form that is sent twice acts once.
func (p *person) do(page, action string, set url.Values) uitest.Visited {
	p.t.Helper()
	route := p.pattern(http.MethodPost, action)
	v, sends := p.Send(p.Open(page), action, set)
	p.sent[route], p.sent[asked(route, sends)] = true, true
	if v.Status != http.StatusOK && v.Status != http.StatusCreated {
		p.t.Fatalf("%s of %s: %d at %s:\n%s", action, page, v.Status, v.Path, v.Main())
	}
	end, err := p.store.FeedEnd(p.t.Context())
	must(p.t, err)
	p.Resend()
	again, err := p.store.Feed(p.t.Context(), registry.FeedQuery{After: end})
	must(p.t, err)
	for _, e := range again {
		if !slices.Contains(settings, e.Type) {
			p.t.Errorf("%s of %s, sent again, does it again: %s of %s %s", action, page, e.Type, e.ItemID, e.Data)
		}
	}
	return v
}

// previews are what forms are asked without being carried out: the next page shows the form again.
var previews = []string{"check", "try", "replace", "form", "yaml", "json"}

// TestActs_WithoutScripts does every act of the pages with forms alone, and looks in the Registry for
// what it did. A form's address that is not tried fails the test.
func TestActs_WithoutScripts(t *testing.T) {
	keys, err := secret.Parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	must(t, err)
	s := siteOf(uitest.New(t, uitest.Options{Keys: keys}))
	start, _ := s.everything(t)
	ctx, store := t.Context(), s.store
	token := s.TokenOf(t, "keeper", registry.RoleAdmin)
	offered, _, _ := s.walk(t, token, start)
	p := &person{s.Visit(t, token), t, uitest.Patterns(s.Site.Routes()), store, map[string]bool{}}
	item := func(id string) registry.WorkItem {
		t.Helper()
		it, err := store.Item(ctx, id)
		must(t, err)
		return it
	}
	jobs := func(what string) []registry.WorkItem {
		t.Helper()
		list, err := store.Items(ctx, registry.ItemQuery{Text: what})
		must(t, err)
		return slices.DeleteFunc(list.Rows, func(it registry.WorkItem) bool { return it.Action == registry.DeliverMessage })
	}
	last := func(path string) string {
		path, _, _ = strings.Cut(path, "?")
		return path[strings.LastIndex(path, "/")+1:]
	}
	step := func(name string, does func(t *testing.T)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			p.t = t
			p.For(t)
			does(t)
		})
	}

	step("collections", func(t *testing.T) {
		p.do("/new/collection", "/new/collection", url.Values{"mnemonic": {"maps"}, "owner": {"ark:/99999/o"}, "collections": {"ark:/99999/c"}, "do": {"save"}})
		p.do("/collections/maps/edit", "/collections/maps/edit", url.Values{"description": {"Maps of the coast"}, "do": {"save"}})
		c, err := store.Collection(ctx, "maps")
		must(t, err)
		if c.Version != 2 || c.Profile.Description != "Maps of the coast" {
			t.Errorf("the profile is %+v", c)
		}
		held := func() bool {
			holds, err := store.Holds(ctx)
			must(t, err)
			return slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.Scope == registry.HoldCollection && h.Key == "maps" })
		}
		p.do("/collections/maps", "/collections/maps/hold", url.Values{"reason": {"they are counted"}})
		if !held() {
			t.Error("it is not held")
		}
		p.do("/collections/maps", "/collections/maps/release", nil)
		if held() {
			t.Error("it is still held")
		}
		p.do("/collections/maps", "/collections/maps/limit", url.Values{"most": {"3"}})
		limits, err := store.Limits(ctx)
		must(t, err)
		if !slices.ContainsFunc(limits, func(l registry.Limit) bool { return l.Key == "maps" && l.Most == 3 }) {
			t.Errorf("limits %+v", limits)
		}
		const origin = "https://files.example.org"
		set := url.Values{"origin": {origin}, "kind": {"basic"}, "name": {"ann"}, "secret": {"x"}}
		p.do("/collections/maps/credentials", "/collections/maps/credentials", set)
		have, err := store.Credentials(ctx, "maps")
		must(t, err)
		if len(have) != 1 || have[0].Origin != origin {
			t.Errorf("credentials %+v", have)
		}
		p.do("/collections/maps/credentials", "/collections/maps/credentials/remove", nil)
		if have, err = store.Credentials(ctx, "maps"); err != nil || len(have) != 0 {
			t.Errorf("credentials %+v, %v", have, err)
		}
	})
	step("storages", func(t *testing.T) {
		p.do("/change/storage?act=place&name=storage&offsite=yes", "/change/storage", url.Values{"reason": {"the other site"}})
		p.do("/change/storage?act=add&name=storage", "/change/storage", url.Values{"reason": {"the other site"}})
		report, err := store.Storages(ctx, nil)
		must(t, err)
		i := slices.IndexFunc(report.Storages, func(s registry.Storage) bool { return s.Name == registry.DefaultStorage })
		if i < 0 || !report.Storages[i].Offsite || report.Storages[i].State != registry.StorageFilling || report.Storages[i].Reason != "the other site" {
			t.Errorf("the storages are %+v", report.Storages)
		}
	})
	step("subscriptions", func(t *testing.T) {
		find := func(name string) (found registry.Subscription, ok bool) {
			all, err := store.Subscriptions(ctx)
			must(t, err)
			i := slices.IndexFunc(all, func(s registry.Subscription) bool { return s.Name == name })
			if i < 0 {
				return found, false
			}
			return all[i], true
		}
		p.do("/new/subscription", "/new/subscription", url.Values{"name": {"index"}, "target": {"https://index.test/hook"}})
		p.do("/subscriptions/index/edit", "/subscriptions/index/edit", url.Values{"collections": {"maps"}})
		p.do("/subscriptions/index", "/subscriptions/index", url.Values{"reason": {"it moves"}, "do": {"pause"}})
		if got, _ := find("index"); got.Paused == nil || !slices.Equal(got.Filter.Collections, []string{"maps"}) {
			t.Errorf("it is %+v", got)
		}
		p.do("/subscriptions/index", "/subscriptions/index", url.Values{"do": {"resume"}})
		if got, _ := find("index"); got.Paused != nil {
			t.Error("it is still paused")
		}
		p.do("/subscriptions/index", "/subscriptions/index", url.Values{"do": {"rewind"}, "cursor": {"1"}})
		if got, _ := find("index"); got.Cursor != 1 {
			t.Errorf("it continues after %d", got.Cursor)
		}
		p.do("/subscriptions/index/credentials", "/subscriptions/index/credentials", url.Values{"origin": {"https://index.test"}, "kind": {"bearer"}, "secret": {"x"}})
		p.do("/subscriptions/index/credentials", "/subscriptions/index/credentials/remove", nil)
		p.do("/subscriptions/index", "/subscriptions/index", url.Values{"do": {"remove"}})
		if _, ok := find("index"); ok {
			t.Error("it is not removed")
		}
	})
	step("objects", func(t *testing.T) {
		const ark = "/objects/ark:/99999/fk4"
		p.do(ark+"?act=check", ark, url.Values{"reason": {"a doubt"}})
		if asked, err := store.Feed(ctx, registry.FeedQuery{Types: []string{registry.EventCheckAskedFor}}); err != nil || len(asked) != 1 {
			t.Errorf("%d checks are asked for, %v", len(asked), err)
		}
		if audited := p.do(ark+"?act=audit", ark, nil); !strings.Contains(audited.Main(), "The chain of events is complete") {
			t.Errorf("the audit says\n%s", audited.Main())
		}
		if verified := p.do(ark+"?act=verify", ark, nil); !strings.Contains(verified.Main(), "missing from the storage") {
			t.Errorf("verifying an object without bytes says\n%s", verified.Main())
		}
		p.do(ark+"?act=restore", ark, url.Values{"reason": {"a reader asks"}})
		if list, err := store.Items(ctx, registry.ItemQuery{Stage: registry.Restore}); err != nil || len(list.Rows) != 1 {
			t.Errorf("%d restores, %v", len(list.Rows), err)
		}
		terms := registry.Terms{
			Rights:            &registry.Rights{Basis: registry.Copyright, Status: "unknown", Jurisdiction: "de", Statement: "an estate", URI: "https://example.org/"},
			PreservationLevel: "full", EmbargoUntil: "2030-01-01", EmbargoReason: "a letter",
		}
		p.do(ark+"?act=terms", ark, url.Values{
			"terms.rights.basis": {"copyright"}, "terms.rights.status": {"unknown"}, "terms.rights.jurisdiction": {"de"}, "terms.rights.statement": {"an estate"},
			"terms.rights.uri": {"https://example.org/"}, "terms.preservation_level": {"full"}, "terms.embargo_until": {"2030-01-01"}, "terms.embargo_reason": {"a letter"},
			"reason": {"the donor asks"},
		})
		if o, err := store.Object(ctx, "ark:/99999/fk4"); err != nil || !cmp.Equal(terms, o.Terms) {
			t.Errorf("terms, %v (-want +got):\n%s", err, cmp.Diff(terms, o.Terms))
		}
		p.do("/deletions/ark:/99999/fk4?decision=ask", "/deletions/ark:/99999/fk4", url.Values{"reason": {"rights"}})
		if o, err := store.Object(ctx, "ark:/99999/fk4"); err != nil || o.Deletion == nil || o.Deletion.AskedBy != "keeper" {
			t.Errorf("the deletion is %+v, %v", o.Deletion, err)
		}
		p.do("/deletions/ark:/99999/fk4?decision=withdraw", "/deletions/ark:/99999/fk4", nil)
		p.do("/deletions/ark:/99999/fk4spare?decision=approve", "/deletions/ark:/99999/fk4spare", nil)
		if o, err := store.Object(ctx, "ark:/99999/fk4spare"); err != nil || o.Deletion == nil || o.Deletion.ApprovedBy != "keeper" {
			t.Errorf("the deletion is %+v, %v", o.Deletion, err)
		}
		if o, err := store.Object(ctx, "ark:/99999/fk4"); err != nil || o.Deletion.Status != registry.DeletionWithdrawn {
			t.Errorf("the deletion is %+v, %v", o.Deletion, err)
		}
	})
	step("items", func(t *testing.T) {
		waiting := jobs("waiting")[0]
		act := "/items/" + waiting.ID + "/acts"
		p.do(act+"?act=hold", act, url.Values{"reason": {"somebody looks"}})
		if it := item(waiting.ID); it.HeldBy == nil {
			t.Errorf("it is %s", it.State)
		}
		ask := func(id, act string, set url.Values) registry.WorkItem {
			t.Helper()
			p.do("/items/"+id+"/acts?act="+act, "/items/"+id+"/acts", set)
			return item(id)
		}
		if it := ask(waiting.ID, "release-hold", nil); it.HeldBy != nil {
			t.Errorf("it is still held by %+v", it.HeldBy)
		}
		if it := ask(waiting.ID, "priority", url.Values{"priority": {"-4"}}); it.Priority != -4 {
			t.Errorf("its priority is %d", it.Priority)
		}
		if it := ask(jobs("good")[0].ID, "retry-now", nil); it.RunAt.After(time.Now()) {
			t.Errorf("it is tried again at %s", it.RunAt)
		}
		if it := ask(waiting.ID, "cancel", nil); it.Status != registry.Cancelled {
			t.Errorf("it is %s", it.Status)
		}
		if it := ask(waiting.ID, "requeue", nil); it.Status != registry.Pending {
			t.Errorf("it is %s", it.Status)
		}
		if it := ask(jobs("unwanted")[0].ID, "abort", nil); it.Status != registry.Aborted {
			t.Errorf("it is %s", it.Status)
		}
		for act, set := range map[string]url.Values{"hold": {"reason": {"somebody looks"}}, "abort": {"confirm": {"yes"}}} {
			many := p.do("/items/act?q=name%3Aunwanted&all=yes&act="+act, "/items/act", set)
			if it := item(last(many.Path)); it.Action != registry.Bulk || !strings.Contains(string(it.Spec), `"act":"`+act+`"`) {
				t.Errorf("the act is %s", it.Spec)
			}
		}
		prior := p.do("/items/act?q=state%3Afailed&all=yes&act=priority", "/items/act", url.Values{"priority": {"3"}})
		if it := item(last(prior.Path)); it.Action != registry.Bulk || !strings.Contains(string(it.Spec), `"priority":3`) {
			t.Errorf("the act is %s", it.Spec)
		}
		bulk := p.do("/items/act?q=state%3Afailed&all=yes&act=requeue", "/items/act", url.Values{"reason": {"mended"}})
		p.do(bulk.Path, bulk.Path+"/stop", nil)
		if it := item(last(bulk.Path)); it.Status != registry.Cancelled {
			t.Errorf("the act is %s", it.Status)
		}
		failed := jobs("bad")[0]
		if it := item(failed.ID); it.Status != registry.Failed {
			t.Errorf("the job is %s: what was undone was done", it.Status)
		}
		_, causes, _ := strings.Cut(p.Open("/operations").Main(), `id="causes"`)
		cause := regexp.MustCompile(`name="q" value="([^"]+)"`).FindStringSubmatch(causes)
		if cause == nil {
			t.Fatalf("no cause can be requeued:\n%s", causes)
		}
		of := url.Values{"act": {"requeue"}, "all": {"yes"}, "q": {html.UnescapeString(cause[1])}}
		requeued := p.do("/items/act?"+of.Encode(), "/items/act", url.Values{"now": {"yes"}})
		if it := item(last(requeued.Path)); it.Action != registry.Bulk || !strings.Contains(string(it.Spec), "cause") {
			t.Errorf("requeueing makes %s of %s", it.Action, it.Spec)
		}
		told := jobs("told job")[0]
		delivery := p.do("/items/"+told.ID+"/redeliver", "/items/"+told.ID+"/redeliver", url.Values{"reason": {"it was lost"}})
		if it := item(last(delivery.Path)); it.Action != registry.DeliverMessage {
			t.Errorf("delivering again makes %s", it.Action)
		}
		of = url.Values{"reason": {"all were lost"}}
		if to := p.do("/batches/"+told.ParentID+"/redeliver", "/batches/"+told.ParentID+"/redeliver", of); !strings.Contains(to.Main(), told.ID) {
			t.Errorf("delivering all again leads to %s", to.Path)
		}
		p.do("/deposits/"+waiting.ID+"/cancel", "/deposits/"+waiting.ID+"/cancel", nil)
		if it := item(waiting.ID); it.Status != registry.Cancelled {
			t.Errorf("the deposit is %s", it.Status)
		}
		if it := ask(waiting.ID, "delete", nil); it.Status != registry.Deleted {
			t.Errorf("the deposit is %s", it.Status)
		}
		p.do("/items/"+waiting.ID+"/acts?act=purge", "/items/"+waiting.ID+"/acts", nil)
		if it, err := store.Item(ctx, waiting.ID); err == nil {
			t.Errorf("the deposit is still %+v", it)
		}
	})
	step("deposits", func(t *testing.T) {
		made := p.do("/deposit", "/deposit", url.Values{"collection": {"default"}, "title": {"A letter"}, "file": {"Dear Ann"}})
		if it := item(last(made.Path)); it.Status != registry.Pending || !strings.Contains(string(it.Spec), "A letter") {
			t.Errorf("the deposit is %+v", it)
		}
		failed := jobs("told job")[0].ParentID
		rows := "/deposits/" + failed + "/rows"
		corrected := p.do(rows, rows, url.Values{"url": {"https://h.test/mended.txt"}, "name": {"mended.txt"}})
		if id := last(corrected.Path); id == failed || item(id).Action != registry.Batch {
			t.Errorf("the corrected row leads to %s", corrected.Path)
		}
		p.do("/uploads/upload-default", "/uploads/upload-default", nil)
		if _, err := store.IncomingByID(ctx, "upload-default"); err == nil {
			t.Error("the upload is still there")
		}
	})
	step("the queue", func(t *testing.T) {
		paused := func() bool {
			q, err := store.QueueStatus(ctx)
			must(t, err)
			return q.Paused != nil
		}
		p.do("/operations/act?do=pause", "/operations/act", url.Values{"reason": {"the disks are changed"}})
		if !paused() {
			t.Error("it is not paused")
		}
		p.do("/operations/act?do=resume", "/operations/act", nil)
		if paused() {
			t.Error("it is still paused")
		}
		accepting := func() bool {
			a, err := store.Accepting(ctx)
			must(t, err)
			return a.On
		}
		p.do("/operations/act?do=refuse", "/operations/act", url.Values{"reason": {"the disks are changed"}})
		if accepting() {
			t.Error("submissions are still accepted")
		}
		p.do("/operations/act?do=accept", "/operations/act", nil)
		if !accepting() {
			t.Error("submissions are not accepted")
		}
		p.do("/operations/act?do=drain", "/operations/act", url.Values{"reason": {"an upgrade"}})
		if q, err := store.QueueStatus(ctx); err != nil || q.Drain == nil {
			t.Errorf("it does not drain: %+v, %v", q, err)
		}
		p.do("/operations/act?do=resume", "/operations/act", nil)
		p.do("/operations/act?do=hold-worker&worker=w-1", "/operations/act", url.Values{"reason": {"its host is old"}})
		if all, err := store.Holds(ctx); err != nil || !slices.ContainsFunc(all, func(h registry.Hold) bool { return h.Scope == registry.HoldWorker && h.Key == "w-1" }) {
			t.Errorf("holds %+v, %v", all, err)
		}
		p.do("/operations", "/operations/limits", url.Values{"scope": {"stage"}, "key": {"download"}, "most": {"2"}})
		limits, err := store.Limits(ctx)
		must(t, err)
		if !slices.ContainsFunc(limits, func(l registry.Limit) bool { return l.Key == "download" && l.Most == 2 }) {
			t.Errorf("limits %+v", limits)
		}
		holds := func() int {
			all, err := store.Holds(ctx)
			must(t, err)
			return len(all)
		}
		before := holds()
		p.do("/holds", "/holds", url.Values{"scope": {"stage"}, "key": {"download"}, "reason": {"the line is slow"}})
		if holds() != before+1 {
			t.Errorf("%d holds, before %d", holds(), before)
		}
		p.do("/holds/release?scope=stage&key=download", "/holds/release", nil)
		if holds() >= before+1 {
			t.Errorf("%d holds, before %d", holds(), before)
		}
		p.do("/holds/release-all?scope=stage", "/holds/release-all", nil)
		if all, err := store.Holds(ctx); err != nil || slices.ContainsFunc(all, func(h registry.Hold) bool { return h.Scope == registry.HoldStage }) {
			t.Errorf("holds %+v, %v", all, err)
		}
	})
	step("functions", func(t *testing.T) {
		p.do("/new/schedule", "/new/schedule", url.Values{"name": {"weekly"}, "cron": {"@weekly"}, "function": {"convert"}})
		p.do("/schedules/weekly/edit", "/schedules/weekly/edit", url.Values{"cron": {"@monthly"}})
		p.do("/schedules/weekly", "/schedules/acts", url.Values{"act": {"pause"}, "reason": {"holidays"}})
		if got, err := store.Schedule(ctx, "weekly"); err != nil || got.Cron != "@monthly" || got.Paused == nil {
			t.Errorf("the schedule is %+v, %v", got, err)
		}
		p.do("/schedules/weekly", "/schedules/acts", url.Values{"act": {"resume"}})
		if got, err := store.Schedule(ctx, "weekly"); err != nil || got.Paused != nil {
			t.Errorf("the schedule is %+v, %v", got, err)
		}
		if ran := p.do("/schedules/weekly", "/schedules/acts", url.Values{"act": {"run"}}); item(last(ran.Path)).Stage != "run:convert" {
			t.Errorf("running it leads to %s", ran.Path)
		}
		p.do("/schedules/weekly", "/schedules/weekly/remove", nil)
		if _, err := store.Schedule(ctx, "weekly"); err == nil {
			t.Error("the schedule is still there")
		}
		const letters, lists = "/processes/curate/letters", "/processes/curate/lists"
		p.do(letters, letters, url.Values{"do": {"retry"}, "reason": {"the scanner is on again"}})
		if retried, err := store.Feed(ctx, registry.FeedQuery{Types: []string{registry.EventProcessRetried}}); err != nil || len(retried) != 1 {
			t.Errorf("%d retries, %v", len(retried), err)
		}
		if repair := p.do(lists, lists, url.Values{"do": {"repair"}, "args": {`{"scanner": 2}`}}); item(last(repair.Path)).Stage != "step:curate" {
			t.Errorf("a repair leads to %s", repair.Path)
		}
		if called := p.do("/processes/curate/plates", "/processes/curate/plates", url.Values{"do": {"call"}, "args": {`{"n": 1}`}}); item(last(called.Path)).Stage != "step:curate" {
			t.Errorf("a call leads to %s", called.Path)
		}
		p.do("/processes/curate/plates", "/processes/curate/plates", url.Values{"do": {"remove"}, "reason": {"done with"}})
		if _, err := store.Process(ctx, registry.ProcessKey{Namespace: "curate", ProcessID: "plates"}, registry.HistoryRange{}); err == nil {
			t.Error("the process is still there")
		}
	})
	step("accounts", func(t *testing.T) {
		p.do("/help", "/preferences", url.Values{"lang": {"de"}})
		if text := p.Open("/help").Text; !strings.Contains(text, `<html lang="de"`) {
			t.Error("the page is not German")
		}
		p.do("/help", "/preferences", url.Values{"lang": {"en"}})
		made := p.do("/new/token", "/new/token", url.Values{"name": {"Reading room"}, "role": {"viewer"}})
		secret := regexp.MustCompile(`<code id="secret"[^>]*>([^<]+)<`).FindStringSubmatch(made.Text)
		if secret == nil {
			t.Fatalf("there is no secret:\n%s", made.Main())
		}
		viewer := s.Visit(t, secret[1])
		if who := viewer.Open("/account"); who.Status != http.StatusOK || !strings.Contains(who.Text, "Reading room") {
			t.Errorf("the token's account: %d", who.Status)
		}
		link := p.do("/account", "/account/link", nil)
		if !strings.Contains(link.Text, "/login?link=") {
			t.Errorf("there is no link:\n%s", link.Main())
		}
		all, err := store.Sessions(ctx)
		must(t, err)
		var id string
		for _, one := range all {
			if one.Name == "Reading room" {
				id = one.ID
			}
		}
		p.do("/sessions", "/sessions/end", url.Values{"id": {id}})
		if at := viewer.Open("/account"); at.Status == http.StatusOK {
			t.Errorf("the ended session sees %s", at.Path)
		}
		tokens, err := store.Tokens(ctx)
		must(t, err)
		i := slices.IndexFunc(tokens, func(one registry.Token) bool { return one.Name == "Reading room" })
		revoke := "/tokens/" + url.PathEscape(tokens[i].ID) + "/revoke"
		p.do(revoke, revoke, nil)
		if tokens, err = store.Tokens(ctx); err != nil || tokens[i].RevokedAt == nil {
			t.Errorf("the token is %+v, %v", tokens[i], err)
		}
	})

	step("views", func(t *testing.T) {
		saved := func() []registry.View {
			t.Helper()
			all, err := store.Views(ctx, "keeper")
			must(t, err)
			return all
		}
		p.do("/items?q=state%3Afailed", "/views", url.Values{"name": {"To mend"}, "shared": {"yes"}})
		all := saved()
		if len(all) != 1 || all[0].Query != "state:failed" || !all[0].Shared {
			t.Fatalf("views %+v", all)
		}
		page := "/items?view=" + all[0].ID
		p.do(page, "/views/"+all[0].ID, url.Values{"name": {"For the workshop"}})
		if all = saved(); all[0].Name != "For the workshop" {
			t.Errorf("renamed: %+v", all)
		}
		p.do(page, "/views/"+all[0].ID+"/remove", nil)
		if all = saved(); len(all) != 0 {
			t.Errorf("removed: %+v", all)
		}
	})

	for _, route := range s.Site.Routes() {
		if route == "POST /words" { // a script asks it for words; it changes nothing
			continue
		}
		if strings.HasPrefix(route, "POST ") && !p.sent[route] {
			t.Errorf("no form is sent to %s", route)
		}
	}
	for o, sends := range offered {
		act := asked(p.pattern(http.MethodPost, o.to), sends)
		if !p.sent[act] && !slices.Contains(previews, act[strings.LastIndex(act, " ")+1:]) {
			t.Errorf("nobody asks %s, which the pages offer", act)
		}
	}
}
