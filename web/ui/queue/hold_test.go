package queue_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// TestHolds checks that holds are added, counted, filtered and released, one and all.
func TestHolds(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	viewer := s.Token
	s.Token = s.TokenOf(t, "op", registry.RoleOperator)
	wants(t, s.Get(t, "/holds", http.StatusOK), []string{"There are no holds", `<option value="download">`, `<option value="default">`})
	batch := submit(t, s)
	for _, h := range []url.Values{
		{"scope": {"batch"}, "key": {batch}, "reason": {"ask <ann>"}},
		{"scope": {"stage"}, "key": {"expand"}, "reason": {"new disks"}},
		{"scope": {"ingest"}, "key": {""}, "reason": {"new disks"}},
	} {
		does(t, s, "/holds", "/holds", h)
	}
	text := s.Get(t, "/holds", http.StatusOK)
	wants(t, text, []string{"3 holds", "ask &lt;ann&gt;", `href="/batches/` + batch, "all deposits", `>1</a>`, "Release these 3", `id="hold-rows" data-live`})
	text = s.Get(t, "/holds?scope=stage&text=DISKS", http.StatusOK)
	wants(t, text, []string{"1 hold,", "expand"}, "ask &lt;ann&gt;")
	wants(t, s.Get(t, "/holds?text=nothing", http.StatusOK), []string{"No hold matches"})
	for name, bad := range map[string]url.Values{
		"no such collection": {"scope": {"collection"}, "key": {"mars"}, "reason": {"r"}}, "no reason": {"scope": {"all"}}, "no scope": {"scope": {"x"}, "reason": {"r"}},
	} {
		if w := s.Post(t, "/holds", bad); w.Code != http.StatusConflict {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	text = s.Get(t, "/holds/release-all?text=disks", http.StatusOK)
	wants(t, text, []string{"Release 2 holds", ">1 item</a>"}, "ask &lt;ann&gt;")
	both := url.Values{"scope": {"ingest", "stage"}, "key": {"", "expand"}}
	for range 2 { // the second finds nothing to release
		does(t, s, "/holds/release-all", "/holds", both)
	}
	does(t, s, "/holds/release", "/operations", url.Values{"scope": {"batch"}, "key": {batch}, "next": {"/operations"}})
	wants(t, s.Get(t, "/holds", http.StatusOK), []string{"There are no holds"})
	s.Get(t, "/holds/release-all", http.StatusConflict)
	s.Token = viewer
	wants(t, s.Get(t, "/holds", http.StatusOK), nil, "Add a hold")
	s.Get(t, "/holds/release-all", http.StatusForbidden)
	for _, path := range []string{"/holds", "/holds/release-all"} {
		if w := s.Post(t, path, both); w.Code != http.StatusForbidden {
			t.Errorf("a viewer posts %s: %d", path, w.Code)
		}
	}
}

// TestHolds_Release: the form of a hold on a collection says how much goes on, and leads back to the
// page that asked for it; elsewhere it leads nowhere outside the site.
func TestHolds_Release(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	form := "/holds/release?" + url.Values{"scope": {"stage"}, "key": {"expand"}, "next": {"/items"}}.Encode()
	s.Get(t, form, http.StatusForbidden)
	s.Token = s.TokenOf(t, "op", registry.RoleOperator)
	s.Get(t, form, http.StatusConflict) // there is none
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldStage, Key: "expand", Reason: "full <b>", Actor: "ann"}))
	submit(t, s)
	wants(t, s.Get(t, form, http.StatusOK), []string{"full &lt;b&gt;", "1 item waits under it, and goes on.", `name="next" value="/items"`, "by ann"})
	wants(t, s.Get(t, "/holds/release?scope=stage&key=expand&next=//example.org", http.StatusOK), []string{`name="next" value="/"`})
	sends := url.Values{"scope": {"stage"}, "key": {"expand"}, "next": {"/items"}}
	does(t, s, "/holds/release", "/items", sends)
	does(t, s, "/holds/release", "/items", sends) // sent twice
	if all, err := s.Store.Holds(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("holds %+v, %v", all, err)
	}
}
