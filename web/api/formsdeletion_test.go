package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestForms_Deletion requests, approves and declines deletions on the pages, as two people. Others
// see the request but no buttons.
func TestForms_Deletion(t *testing.T) {
	b := newBench(t, withPages)
	const ark, other = "ark:/99999/fk4one", "ark:/99999/fk4two"
	b.preserve(t, ark, map[string]string{"producer/a": "a"})
	b.mark = "two"
	b.preserve(t, other, map[string]string{"producer/a": "a"})
	same := []string{"Sec-Fetch-Site", "same-origin"}
	who := map[registry.Role]*browser{}
	for _, role := range []registry.Role{registry.RoleOperator, registry.RoleAdmin, registry.RoleViewer, registry.RoleDepositor} {
		who[role] = newBrowser(t, b, role)
	}
	last := func(id string) *registry.Deletion {
		o, err := b.store.Object(t.Context(), id)
		must(t, err)
		return o.Deletion
	}
	buttons := func(role registry.Role, id string, want ...string) {
		t.Helper()
		answer, text := who[role].send(t, http.MethodGet, "/objects/"+id, nil)
		for _, d := range []string{"ask", "approve", "withdraw"} {
			has, wanted := strings.Contains(text, `<button name="decision" value="`+d+`"`), strings.Contains(strings.Join(want, " "), d)
			if answer.StatusCode != http.StatusOK || has != wanted {
				t.Errorf("%d, button %s of the %s: %v, want %v", answer.StatusCode, d, role, has, wanted)
			}
		}
	}
	// The form of a decision, as it is sent.
	form := func(role registry.Role, id, decision string) url.Values {
		t.Helper()
		answer, text := who[role].send(t, http.MethodGet, "/deletions/"+id+"?decision="+decision, nil)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("form %s of the %s: %d %s", decision, role, answer.StatusCode, text)
		}
		_, asked, _ := strings.Cut(text, `name="asked" value="`)
		asked, _, _ = strings.Cut(asked, `"`)
		return url.Values{"decision": {decision}, "asked": {asked}}
	}
	send := func(role registry.Role, id string, v url.Values, status int, header ...string) string {
		t.Helper()
		answer, text := who[role].send(t, http.MethodPost, "/deletions/"+id, v, header...)
		if answer.StatusCode != status || status == http.StatusSeeOther && answer.Header.Get("Location") != "/objects/"+id {
			t.Errorf("%v of the %s: %d to %q, want %d: %s", v, role, answer.StatusCode, answer.Header.Get("Location"), status, text)
		}
		return text
	}

	buttons(registry.RoleOperator, ark, "ask")
	buttons(registry.RoleViewer, ark)
	buttons(registry.RoleDepositor, ark)
	ask := form(registry.RoleOperator, ark, "ask")
	send(registry.RoleOperator, ark, ask, http.StatusUnprocessableEntity, same...) // without a reason
	ask.Set("reason", "deposited twice")
	for role, header := range map[registry.Role][]string{
		registry.RoleOperator: {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"}, registry.RoleAdmin: nil, registry.RoleViewer: same, registry.RoleDepositor: same,
	} {
		send(role, ark, ask, http.StatusForbidden, header...)
	}
	if d := last(ark); d != nil {
		t.Fatalf("asked for by whom nobody should have listened to: %+v", d)
	}
	send(registry.RoleOperator, ark, ask, http.StatusSeeOther, same...)
	send(registry.RoleOperator, ark, ask, http.StatusSeeOther, same...) // twice is once
	send(registry.RoleOperator, other, ask, http.StatusSeeOther, same...)
	for role := range who {
		for path, want := range map[string]string{"/objects/" + ark: "the operator", "/deletions": ark} {
			if answer, text := who[role].send(t, http.MethodGet, path, nil); answer.StatusCode != http.StatusOK || !strings.Contains(text, want) || !strings.Contains(text, "deposited twice") {
				t.Errorf("%s does not tell the %s of it: %s", path, role, text)
			}
		}
	}
	buttons(registry.RoleOperator, ark, "withdraw")
	buttons(registry.RoleAdmin, ark, "approve", "withdraw")
	buttons(registry.RoleViewer, ark)

	agree := form(registry.RoleAdmin, ark, "approve")
	if text := send(registry.RoleOperator, ark, agree, http.StatusForbidden, same...); !strings.Contains(text, "two people") {
		t.Errorf("whoever asked is told: %s", text)
	}
	// Withdrawn and asked for anew while the form was open: what was agreed to is not what is asked
	// now.
	send(registry.RoleOperator, ark, form(registry.RoleOperator, ark, "withdraw"), http.StatusSeeOther, same...)
	if d := last(ark); d.Status != registry.DeletionWithdrawn || d.WithdrawnBy != "the operator" {
		t.Errorf("withdrawn: %+v", d)
	}
	ask.Set("reason", "another reason")
	send(registry.RoleOperator, ark, ask, http.StatusSeeOther, same...)
	if text := send(registry.RoleAdmin, ark, agree, http.StatusConflict, same...); !strings.Contains(text, "new deletion request") || !strings.Contains(text, "another reason") {
		t.Errorf("a form of an earlier asking: %s", text)
	}
	if d := last(ark); d.Status != registry.DeletionAsked {
		t.Fatalf("approved by a form of an earlier asking: %+v", d)
	}
	send(registry.RoleAdmin, ark, form(registry.RoleAdmin, ark, "approve"), http.StatusSeeOther, same...)
	d := last(ark)
	if d.Status != registry.DeletionApproved || d.AskedBy != "the operator" || d.ApprovedBy != "the admin" || d.Reason != "another reason" {
		t.Errorf("approved: %+v", d)
	}
	if it, err := b.store.Item(t.Context(), d.ItemID); err != nil || it.Action != registry.DeleteObject {
		t.Errorf("its item: %+v %v", it, err)
	}
	buttons(registry.RoleAdmin, ark)
	if _, text := who[registry.RoleAdmin].send(t, http.MethodGet, "/deletions", nil); strings.Contains(text, ark) || !strings.Contains(text, other) {
		t.Errorf("the list is %s", text)
	}
	send(registry.RoleAdmin, other, form(registry.RoleAdmin, other, "withdraw"), http.StatusSeeOther, same...)
	if d := last(other); d.Status != registry.DeletionWithdrawn || d.WithdrawnBy != "the admin" {
		t.Errorf("declined: %+v", d)
	}
	for path, want := range map[string]int{
		"/deletions/" + other + "?decision=approve": http.StatusConflict, "/deletions/" + other + "?decision=x": http.StatusBadRequest,
		"/deletions/" + ark + "?decision=ask": http.StatusConflict, "/deletions/ark:/99999/none?decision=ask": http.StatusNotFound,
	} {
		if answer, text := who[registry.RoleAdmin].send(t, http.MethodGet, path, nil); answer.StatusCode != want {
			t.Errorf("%s: %d, want %d: %s", path, answer.StatusCode, want, text)
		}
	}
}
