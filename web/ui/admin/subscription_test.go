package admin_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

func TestSubscriptions(t *testing.T) {
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	s := withKeys(t)
	admin, operator := as(t, s, registry.RoleAdmin), as(t, s, registry.RoleOperator)
	as(t, s, registry.RoleDepositor).Get(t, "/subscriptions", http.StatusForbidden)
	has(t, admin.Get(t, "/subscriptions", http.StatusOK), "There are no subscriptions", "/new/subscription", "All were delivered")
	form := url.Values{"name": {"archive"}, "target": {"ftp://h.test"}, "types": {"submit, preserved"}, "from": {"start"}, "key": {key}}
	w := admin.Post(t, "/new/subscription", form)
	has(t, w.Body.String(), "Refused:", `value="ftp://h.test"`, `value="start" checked`)
	lacks(t, w.Body.String(), key)
	form.Set("target", "https://h.test/hook")
	led(t, admin.Post(t, "/new/subscription", form), "/subscriptions/archive")
	has(t, admin.Post(t, "/new/subscription", form).Body.String(), "There is a subscription of this name")
	text := admin.Get(t, "/subscriptions/archive", http.StatusOK)
	has(t, text, "https://h.test/hook", "types submit, preserved", "behind", "Rewind, or skip")
	lacks(t, admin.Get(t, "/subscriptions/archive/credentials", http.StatusOK), key, "Of a bucket")
	has(t, admin.Get(t, "/subscriptions/archive/credentials", http.StatusOK), "signing:default")
	for _, other := range []string{operator.Get(t, "/subscriptions/archive", http.StatusOK), s.Get(t, "/subscriptions", http.StatusOK)} {
		lacks(t, other, `method="post" class="act"`, "/edit", "/new/subscription")
	}
	operator.Get(t, "/subscriptions/archive/edit", http.StatusForbidden)
	operator.Get(t, "/subscriptions/archive/credentials", http.StatusForbidden)
	for _, do := range []string{"pause", "resume", "rewind", "remove"} {
		if w := operator.Post(t, "/subscriptions/archive", url.Values{"do": {do}, "reason": {"r"}}); w.Code != http.StatusForbidden {
			t.Errorf("an operator may %s: %d", do, w.Code)
		}
	}
	if w := admin.Post(t, "/subscriptions/archive", url.Values{"do": {"pause"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a pause without a reason: %d", w.Code)
	}
	led(t, admin.Post(t, "/subscriptions/archive", url.Values{"do": {"pause"}, "reason": {hostile}}), "/subscriptions/archive")
	text = admin.Get(t, "/subscriptions/archive", http.StatusOK)
	has(t, text, "paused", "&lt;script&gt;")
	lacks(t, text, "<script>alert", "<img")
	led(t, admin.Post(t, "/subscriptions/archive", url.Values{"do": {"resume"}}), "/subscriptions/archive")
	led(t, admin.Post(t, "/subscriptions/archive", url.Values{"do": {"rewind"}, "cursor": {""}}), "/subscriptions/archive")
	has(t, admin.Get(t, "/subscriptions/archive", http.StatusOK), `<dd class="figures">1, the first`) // that of the rewind itself
	led(t, admin.Post(t, "/subscriptions/archive", url.Values{"do": {"rewind"}, "cursor": {"0"}, "reason": {"lost"}}), "/subscriptions/archive")
	has(t, admin.Get(t, "/subscriptions/archive", http.StatusOK), "behind")
	has(t, admin.Get(t, "/subscriptions/archive/edit", http.StatusOK), `value="submit, preserved"`)
	led(t, admin.Post(t, "/subscriptions/archive/edit", url.Values{"target": {"https://h.test/other"}, "collections": {"default"}}), "/subscriptions/archive")
	has(t, admin.Get(t, "/subscriptions/archive", http.StatusOK), "https://h.test/other", "collections default")
	led(t, admin.Post(t, "/subscriptions/archive", url.Values{"do": {"remove"}}), "/subscriptions")
	admin.Get(t, "/subscriptions/archive", http.StatusNotFound)
}
