package api_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/premis/premistest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestEmbargo: during an embargo only admins read an object's files, by whatever way; what describes
// them stays open. When its day has come, or an admin has ended it, everybody can read them.
func TestEmbargo(t *testing.T) {
	b := newBench(t)
	b.preserve(t, objectARK, testFiles())
	restored := b.restored(t, objectARK, "the tar")
	admin := b.as(t, registry.RoleAdmin)
	until := b.now().Add(48 * time.Hour).UTC().Format(time.DateOnly)
	terms := registry.Terms{EmbargoUntil: until, EmbargoReason: "the donor's letter", PreservationLevel: "full"}
	o, err := admin.SetTerms(t.Context(), objectARK, terms, "asked by the donor")
	must(t, err)
	if diff := cmp.Diff(terms, o.Terms); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}

	at := "/api/v1/objects/" + url.PathEscape(objectARK)
	content := []string{at + "/content?path=producer/a", at + "/export", at + "/export?format=tar&bag=true", at + "/restores/1/content"}
	described := []string{at, at + "/files", at + "/folder?path=producer/", at + "/premis", at + "/events", at + "/restores"}
	want := func(what string, refused ...registry.Role) {
		t.Helper()
		for _, role := range []registry.Role{registry.RoleViewer, registry.RoleDepositor, registry.RoleOperator, registry.RoleAdmin} {
			for _, path := range described {
				if answer, text := b.send(t, http.MethodGet, path, "", "Authorization", "Bearer "+tokenText(role)); answer.StatusCode != http.StatusOK {
					t.Errorf("%s: %s reads %s: %d %s", what, role, path, answer.StatusCode, text)
				}
			}
			for _, path := range content {
				answer, text := b.send(t, http.MethodGet, path, "", "Authorization", "Bearer "+tokenText(role))
				status := http.StatusOK
				for _, no := range refused {
					if role == no {
						status = http.StatusForbidden
					}
				}
				if answer.StatusCode != status {
					t.Errorf("%s: %s reads %s: %d, want %d: %.200s", what, role, path, answer.StatusCode, status, text)
				}
				part, bytes := b.send(t, http.MethodGet, path, "", "Authorization", "Bearer "+tokenText(role), "Range", "bytes=0-1")
				ranged := !strings.Contains(path, "/export") // an export is streamed whole
				if refused := part.StatusCode == http.StatusForbidden; refused != (status == http.StatusForbidden) || !refused && ranged && (part.StatusCode != http.StatusPartialContent || len(bytes) != 2) {
					t.Errorf("%s: %s reads two bytes of %s: %d, %.200s", what, role, path, part.StatusCode, bytes)
				}
				if head, _ := b.send(t, http.MethodHead, path, "", "Authorization", "Bearer "+tokenText(role)); status == http.StatusForbidden && head.StatusCode < http.StatusBadRequest {
					t.Errorf("%s: %s asks for the head of %s: %d", what, role, path, head.StatusCode)
				}
				if status == http.StatusForbidden && (!strings.Contains(text, string(wire.CodeEmbargo)) || !strings.Contains(text, until) || !strings.Contains(text, "the donor's letter")) {
					t.Errorf("%s is refused with %s", path, text)
				}
			}
		}
	}
	others := []registry.Role{registry.RoleViewer, registry.RoleDepositor, registry.RoleOperator}
	want("under embargo", others...)
	_, err = b.as(t, registry.RoleDepositor).Restore(t.Context(), objectARK, 0, "to read it", "")
	var p *wire.Problem
	if !errors.As(err, &p) || p.Code != wire.CodeEmbargo {
		t.Errorf("a depositor restores it: %v", err)
	}
	if restored.N != 1 {
		t.Errorf("restore %+v", restored)
	}

	_, err = admin.SetTerms(t.Context(), objectARK, registry.Terms{}, "the donor agrees")
	must(t, err)
	want("ended")
	_, err = admin.SetTerms(t.Context(), objectARK, terms, "not yet")
	must(t, err)
	want("again", others...)
}

// TestTerms_Day: an embargo ends when its day begins, in UTC.
func TestTerms_Day(t *testing.T) {
	terms := registry.Terms{EmbargoUntil: "2030-01-01"}
	last := time.Date(2029, 12, 31, 23, 59, 59, 0, time.UTC)
	if !terms.Embargoed(last) || terms.Embargoed(last.Add(time.Second)) {
		t.Errorf("embargoed at %v: %v, a second later: %v", last, terms.Embargoed(last), terms.Embargoed(last.Add(time.Second)))
	}
	if !terms.Embargoed(last.In(time.FixedZone("", 12*3600))) {
		t.Error("it ends earlier in the east")
	}
	if (registry.Terms{}).Embargoed(last) {
		t.Error("no terms are an embargo")
	}
}

// TestTerms_Faults: faults of terms are told in their fields, in submissions, profiles and by admins.
func TestTerms_Faults(t *testing.T) {
	b := newBench(t)
	b.preserve(t, objectARK, testFiles())
	for body, field := range map[string]string{
		`{"embargo_until":"1 May"}`:                                                    "embargo_until",
		`{"embargo_until":"2030-02-30"}`:                                               "embargo_until",
		`{"embargo_reason":"why"}`:                                                     "embargo_until",
		`{"preservation_level":"a\u0007b"}`:                                            "preservation_level",
		`{"rights":{"basis":"wish"}}`:                                                  "rights.basis",
		`{"rights":{"basis":"copyright"}}`:                                             "rights.status",
		`{"rights":{"basis":"copyright","statement":"x"}}`:                             "rights.jurisdiction", // and its status
		`{"rights":{"basis":"copyright","status":"mine","jurisdiction":"de"}}`:         "rights.status",
		`{"rights":{"basis":"copyright","status":"unknown"}}`:                          "rights.jurisdiction",
		`{"rights":{"basis":"copyright","status":"unknown","jurisdiction":"Germany"}}`: "rights.jurisdiction",
		`{"rights":{"basis":"statute","jurisdiction":"de"}}`:                           "rights.statement",
		`{"rights":{"basis":"license"}}`:                                               "rights.statement",
		`{"rights":{"basis":"license","uri":"javascript:alert(1)"}}`:                   "rights.uri",
		`{"rights":{"basis":"other"}}`:                                                 "rights.statement",
		`{"rights":{"basis":"other","statement":"a deed","jurisdiction":"de"}}`:        "rights.jurisdiction",
	} {
		for path, whole := range map[string][2]string{
			"PUT /api/v1/objects/" + url.PathEscape(objectARK) + "/terms": {`{"reason":"because","terms":`, `}`},
			"POST /api/v1/batches":         {`{"url":"https://example.org/a.zip","collection":"demo","terms":`, `}`},
			"PUT /api/v1/collections/demo": {`{"owner":"ark:/99999/owner","collections":["ark:/99999/c"],"terms":`, `}`},
		} {
			method, at, _ := strings.Cut(path, " ")
			answer, text := b.send(t, method, at, whole[0]+body+whole[1])
			if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, `"body.terms.`+field+`"`) {
				t.Errorf("%s with %s: %d %s, want a fault in %s", path, body, answer.StatusCode, text, field)
			}
		}
	}
	o, err := b.as(t, registry.RoleViewer).Object(t.Context(), objectARK)
	must(t, err)
	if !o.Terms.IsZero() {
		t.Errorf("refused terms were kept: %+v", o.Terms)
	}
}

// TestTerms_PREMIS: the PREMIS document has rights, level and embargo, and is valid with them.
func TestTerms_PREMIS(t *testing.T) {
	b := newBench(t)
	b.preserve(t, objectARK, testFiles())
	admin := b.as(t, registry.RoleAdmin)
	const uri = "https://rightsstatements.org/vocab/InC/1.0/"
	for _, r := range []*registry.Rights{
		nil,
		{Basis: registry.Copyright, Status: "copyrighted", Jurisdiction: "de", Statement: "until 2037", URI: uri},
		{Basis: registry.License, URI: uri},
		{Basis: registry.Statute, Jurisdiction: "de", Statement: "§ 60e UrhG"},
		{Basis: registry.OtherRights, Statement: "a deed"},
	} {
		_, err := admin.SetTerms(t.Context(), objectARK, registry.Terms{Rights: r, PreservationLevel: "full", EmbargoUntil: "2030-01-01", EmbargoReason: "a letter"}, "because")
		must(t, err)
		body, err := admin.PREMIS(t.Context(), objectARK)
		must(t, err)
		root, err := premistest.Read(body)
		must(t, err)
		must(t, body.Close())
		if err := premistest.Validate(root); err != nil {
			t.Errorf("%v: the schema refuses it: %v", r, err)
		}
		basis := "other"
		if r != nil {
			basis = string(r.Basis)
		}
		statement := root.Find("rights", "rightsStatement")
		if len(statement) != 1 || statement[0].Find("rightsBasis")[0].Text != basis || statement[0].Find("rightsGranted", "restriction")[0].Text != "embargo until 2030-01-01: a letter" {
			t.Errorf("%v: rights %+v", r, statement)
		}
		if level := root.Find("object", "preservationLevel", "preservationLevelValue"); len(level) != 1 || level[0].Text != "full" {
			t.Errorf("level %+v", level)
		}
	}
}
