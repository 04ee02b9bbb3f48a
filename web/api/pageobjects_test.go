package api_test

import (
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

const objectPath = "/objects/" + objectARK

// pagePath is the address of a page about objectARK.
func pagePath(name, value string) string {
	return objectPath + "?" + url.Values{name: {value}}.Encode()
}

const evil = `<script>alert("evil")</script>`

// TestObjectPages_Content browses an object by folders and looks at its files. Whatever they are, a
// browser gets no page, script or style of our origin from them.
func TestObjectPages_Content(t *testing.T) {
	b := newBench(t, withPages)
	b.preserve(t, objectARK, map[string]string{
		"producer/a.html": evil, "producer/plates/recto/1.png": "\x89PNG" + evil, "producer/plates/x.svg": "<svg>" + evil + "</svg>", "producer/run.js": evil, "producer/look.css": evil,
		"producer/long.txt": strings.Repeat("ü", 40_000) + "END", "producer/" + evil + ".txt": "\x00\xff text", "system/own.txt": "about",
	})
	viewer := newBrowser(t, b, registry.RoleViewer)
	get := func(path string) string {
		t.Helper()
		answer, text := viewer.send(t, http.MethodGet, path, nil)
		if answer.StatusCode != http.StatusOK || strings.Contains(text, evil) || strings.Contains(text, "<iframe") || strings.Contains(text, "<object") || strings.Contains(text, "<embed") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
		return text
	}
	wants := func(path string, wants ...string) string {
		t.Helper()
		text := get(path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %s:\n%s", path, want, text)
			}
		}
		return text
	}
	source := template.HTMLEscapeString(evil)
	first := wants(objectPath, "a.html</a>", "plates/</span></a>", "<details><summary>System files", "own.txt</a>", "all there</span>", "/receipt", "/premis", "/export?")
	if strings.Contains(first, "1.png</a>") || strings.Contains(first, "<button name=") {
		t.Errorf("the first page has files of folders, or buttons for a viewer: %s", first)
	}
	wants(pagePath("folder", "producer/plates/"), "x.svg</a>", "recto/</span></a>", `aria-current="true" translate="no">plates`)
	wants(pagePath("folder", "system/"), "own.txt</a>")
	wants(pagePath("file", "producer/a.html"), "<pre", source)
	wants(pagePath("file", "producer/plates/x.svg"), "<pre", source)
	wants(pagePath("file", "producer/run.js"), "<pre", source)
	wants(pagePath("file", "producer/"+evil+".txt"), "<pre", "\uFFFD\uFFFD text")
	if text := wants(pagePath("file", "producer/long.txt"), "üüü", "This is the beginning"); strings.Contains(text, "END") || strings.Contains(text, "\uFFFD") {
		t.Error("the preview of a long text has its end, or half a character")
	}
	if text := wants(pagePath("file", "producer/plates/recto/1.png"), `<img src="/api/v1/objects/`, `>recto</a>`); strings.Contains(text, "<pre") {
		t.Errorf("an image is shown as text: %s", text)
	}
	for _, path := range []string{"a.html", "plates/x.svg", "run.js", "look.css", "long.txt", "plates/recto/1.png", evil + ".txt"} {
		answer, _ := viewer.send(t, http.MethodGet, "/api/v1/objects/"+url.PathEscape(objectARK)+"/content?path="+url.QueryEscape("producer/"+path), nil)
		h, kind := answer.Header, "application/octet-stream"
		switch {
		case strings.HasSuffix(path, ".png"):
			kind = "image/png"
		case strings.HasSuffix(path, ".txt"):
			kind = "text/plain"
		}
		if answer.StatusCode != http.StatusOK || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v, want %s", path, answer.StatusCode, h, kind)
		}
	}
	for path, want := range map[string]int{
		pagePath("file", "producer/none"): http.StatusNotFound, pagePath("file", "producer"): http.StatusNotFound, pagePath("folder", "producer/none/"): http.StatusNotFound,
		pagePath("version", "2"): http.StatusNotFound, pagePath("folder", "producer"): http.StatusUnprocessableEntity,
	} {
		if answer, text := viewer.send(t, http.MethodGet, path, nil); answer.StatusCode != want {
			t.Errorf("%s: %d, want %d: %s", path, answer.StatusCode, want, text)
		}
	}
	folder, err := b.objects.ObjectKey(objectARK)
	must(t, err)
	must(t, b.objects.Store().Delete(t.Context(), folder+"/v1/content/producer/a.html"))
	wants(pagePath("file", "producer/a.html"), "is damaged in storage")
}

// TestObjectPages_Acts asks for each act, as each role, and sees what it did.
func TestObjectPages_Acts(t *testing.T) {
	b := newBench(t, withPages)
	b.preserve(t, objectARK, map[string]string{"producer/a.txt": "alpha", "producer/b.txt": "beta"})
	may := map[registry.Role]string{
		registry.RoleViewer: "", registry.RoleDepositor: "restore", registry.RoleOperator: "verify check restore audit", registry.RoleAdmin: "verify check restore audit terms",
	}
	acts := []string{"verify", "check", "restore", "audit", "terms"}
	button := regexp.MustCompile(`<button name="act" value="([a-z]+)"`)
	same := []string{"Sec-Fetch-Site", "same-origin"}
	form := func(act string) url.Values {
		return url.Values{"act": {act}, "version": {"1"}, "reason": {"a reader asked"}}
	}
	who := map[registry.Role]*browser{}
	for role, want := range may {
		who[role] = newBrowser(t, b, role)
		_, text := who[role].send(t, http.MethodGet, objectPath, nil)
		var has []string
		for _, found := range button.FindAllStringSubmatch(text, -1) {
			has = append(has, found[1])
		}
		if got := strings.Join(has, " "); got != want {
			t.Errorf("buttons of the %s: %s, want %s", role, got, want)
		}
		if has := strings.Contains(text, "/deposit?ark="); has == (role == registry.RoleViewer) {
			t.Errorf("a new version by the %s: %v", role, has)
		}
		for _, act := range acts {
			status := http.StatusForbidden
			if strings.Contains(want, act) {
				status = http.StatusOK
			}
			if answer, text := who[role].send(t, http.MethodGet, pagePath("act", act), nil); answer.StatusCode != status {
				t.Errorf("form %s of the %s: %d, want %d: %s", act, role, answer.StatusCode, status, text)
			}
			if status == http.StatusForbidden {
				if answer, text := who[role].send(t, http.MethodPost, objectPath, form(act), same...); answer.StatusCode != status {
					t.Errorf("%s by the %s: %d, want %d: %s", act, role, answer.StatusCode, status, text)
				}
			}
		}
	}
	operator := who[registry.RoleOperator]
	for act, want := range map[string]string{"verify": "Every byte is right", "audit": "The chain of events is complete"} {
		if answer, text := operator.send(t, http.MethodPost, objectPath, form(act), same...); answer.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", act, answer.StatusCode, text)
		}
	}
	for act, to := range map[string]string{"check": objectPath + "#copies", "restore": objectPath + "#restores"} {
		if answer, text := operator.send(t, http.MethodPost, objectPath, form(act), same...); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != to {
			t.Errorf("%s: %d to %s: %s", act, answer.StatusCode, answer.Header.Get("Location"), text)
		}
	}
	_, text := operator.send(t, http.MethodGet, objectPath, nil)
	for _, want := range []string{"A check of all stored files is running since", "a reader asked", `id="restores" data-live`, "sse-connect="} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %s", want, text)
		}
	}
	if o, err := b.store.Object(t.Context(), objectARK); err != nil || o.CheckAsked == nil {
		t.Errorf("%+v %v: no check was requested", o, err)
	}
	folder, err := b.objects.ObjectKey(objectARK)
	must(t, err)
	must(t, b.objects.Store().Replace(t.Context(), folder+"/v1/content/producer/a.txt", []byte("alphA")))
	if _, text := operator.send(t, http.MethodPost, objectPath, form("verify"), same...); !strings.Contains(text, "Something is wrong") || !strings.Contains(text, "producer/a.txt") {
		t.Errorf("a damaged object: %s", text)
	}
	for _, wrong := range []url.Values{{"act": {"verify"}}, {"act": {"verify"}, "version": {"9"}}, {"act": {"burn"}, "version": {"1"}}} {
		if answer, text := operator.send(t, http.MethodPost, objectPath, wrong, same...); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d %s", wrong, answer.StatusCode, text)
		}
	}
	if answer, _ := operator.send(t, http.MethodPost, objectPath, form("check"), "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: %d", answer.StatusCode)
	}
	asked, err := b.store.Restorations(t.Context(), objectARK, 0, 10)
	if err != nil || len(asked) != 1 {
		spec, _ := json.Marshal(asked)
		t.Errorf("%s %v: want one restore", spec, err)
	}
}

// TestObjectPages_Search finds objects by title, ARK, local id and collection.
func TestObjectPages_Search(t *testing.T) {
	b := newBench(t, withPages)
	b.preserve(t, objectARK, map[string]string{"producer/a": "a"})
	b.mark = "-of-harbours"
	b.preserve(t, "ark:/99999/fk4two", map[string]string{"producer/a": "b"})
	depositor := newBrowser(t, b, registry.RoleDepositor)
	for query, want := range map[string]string{
		"": "one two", "text=harbour": "two", "text=ark:99999/fk4-one": "one", "text=local": "one", "text=local-of-harbours": "two", "text=nothing": "",
		"collection=default": "one two", "collection=default&text=harbour": "two",
	} {
		answer, text := depositor.send(t, http.MethodGet, "/objects?"+query, nil)
		for _, name := range []string{"one", "two"} {
			has := strings.Count(text, `<a href="/objects/ark:/99999/fk4`+name+`"`)
			if wanted := strings.Count(want, name); answer.StatusCode != http.StatusOK || has != wanted {
				t.Errorf("%s: %d, %d of %s, want %d", query, answer.StatusCode, has, name, wanted)
			}
		}
	}
}

// TestObjectPages_Embargo: during an embargo the pages say so, and offer the files to admins only.
func TestObjectPages_Embargo(t *testing.T) {
	b := newBench(t, withPages)
	b.preserve(t, objectARK, map[string]string{"producer/a.txt": "alpha"})
	until := b.now().Add(48 * time.Hour).UTC().Format(time.DateOnly)
	_, err := b.as(t, registry.RoleAdmin).SetTerms(t.Context(), objectARK, registry.Terms{EmbargoUntil: until, EmbargoReason: "a letter"}, "because")
	must(t, err)
	for _, role := range []registry.Role{registry.RoleViewer, registry.RoleDepositor, registry.RoleOperator, registry.RoleAdmin} {
		who, admin := newBrowser(t, b, role), role == registry.RoleAdmin
		_, object := who.send(t, http.MethodGet, objectPath, nil)
		_, file := who.send(t, http.MethodGet, pagePath("file", "producer/a.txt"), nil)
		if !strings.Contains(object, "under embargo until") || !strings.Contains(object, until) || !strings.Contains(object, "a letter") {
			t.Errorf("the %s is not told of the embargo:\n%s", role, object)
		}
		for page, offers := range map[string]bool{
			"the object's": strings.Contains(object, "/export?") || strings.Contains(object, `value="restore"`),
			"the file's":   strings.Contains(file, "/content?") || strings.Contains(file, "alpha"),
		} {
			if offers != admin {
				t.Errorf("%s page offers the %s the content: %v", page, role, offers)
			}
		}
		if !admin && !strings.Contains(file, "The file is under embargo until") {
			t.Errorf("the file's page of the %s:\n%s", role, file)
		}
		if answer, text := who.send(t, http.MethodGet, pagePath("act", "restore"), nil); !admin && role != registry.RoleViewer && (answer.StatusCode == http.StatusOK || !strings.Contains(text, "under embargo until "+until)) {
			t.Errorf("the %s is shown the form to restore it: %d", role, answer.StatusCode)
		}
	}
}

// TestObjectPages_Damaged: the page of an object that has a damaged file calls nothing of it right, and
// leads to the checks.
func TestObjectPages_Damaged(t *testing.T) {
	b := newBench(t, withPages)
	b.preserve(t, objectARK, testFiles())
	viewer := newBrowser(t, b, registry.RoleViewer)
	says := func(want, not []string) {
		t.Helper()
		_, text := viewer.send(t, http.MethodGet, objectPath, nil)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the page does not say %q: %s", w, text)
			}
		}
		for _, n := range not {
			if strings.Contains(text, n) {
				t.Errorf("the page says %q: %s", n, text)
			}
		}
	}
	right, wrong := []string{"preserved</span>", "all there", "found right since"}, []string{"1 stored file is damaged", "/items?q=action%3afixity", "damaged</span> <span class=\"note\">1 file</span>"}
	says(right, wrong)
	must(t, b.store.AskForCheck(t.Context(), registry.CheckRequest{ObjectID: objectARK, Reason: "test", Actor: "test"}))
	_, err := b.store.Recheck(t.Context(), registry.RecheckRequest{Outstanding: 100, Keep: time.Hour})
	must(t, err)
	c := b.claim(t, registry.Fixity)
	must(t, b.store.RecordCheck(t.Context(), c.Lease, registry.CheckRecord{
		Replicas: []registry.ReplicaCheck{{Storage: registry.DefaultStorage, Outcome: registry.CheckDamaged}},
		Events:   []registry.Premis{{ID: c.Item.ID, ObjectID: objectARK, Version: 1, ItemID: c.Item.ID, Type: "fixity check", At: time.Now(), Agent: "Holdfast test"}},
	}))
	says(wrong, right)
}
