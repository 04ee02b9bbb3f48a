package page

import (
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// TermsOf are the terms of a form. Its fields have the names that the API's faults have.
func TermsOf(form url.Values) registry.Terms {
	text := func(name string) string { return strings.TrimSpace(form.Get("terms." + name)) }
	t := registry.Terms{PreservationLevel: text("preservation_level"), EmbargoUntil: text("embargo_until"), EmbargoReason: text("embargo_reason")}
	rights := registry.Rights{
		Basis: registry.RightsBasis(text("rights.basis")), Status: text("rights.status"), Jurisdiction: text("rights.jurisdiction"),
		Statement: text("rights.statement"), URI: text("rights.uri"),
	}
	if rights != (registry.Rights{}) {
		t.Rights = &rights
	}
	return t
}
