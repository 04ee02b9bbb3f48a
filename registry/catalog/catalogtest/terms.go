package catalogtest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func termsTests() tests {
	return tests{
		"an_object_has_the_terms_of_its_submission_over_its_collections": termsKept,
		"an_admin_replaces_terms":                             termsReplaced,
		"another_submission_with_other_terms_is_no_duplicate": termsCount,
	}
}

var licensed = &registry.Rights{Basis: registry.License, URI: "https://example.org/license"}

// preservedWith records a version of an object whose deposit has these terms.
func (f *fixture) preservedWith(local string, version int, terms registry.Terms) (ark string) {
	f.Helper()
	_, jobs := f.Batch(1, func(s *registry.Submission) { s.Spec.Terms, s.Force = terms, true })
	f.Bring(jobs[0], registry.Process)
	c := f.TakeItem(jobs[0])
	ark = f.Named(c.Lease, local).ARK
	f.Preserve(c.Lease, ark, version, registrytest.File("producer/a"))
	f.Done(c.Lease)
	f.Finish(jobs[0])
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if _, r := f.receipt(ark, version); r.Header.Terms != receipt.TermsOf(o.Terms) {
		f.Errorf("the receipt of version %d has %+v, and the object %+v", version, r.Header.Terms, o.Terms)
	}
	return ark
}

// haveTerms checks what terms an object has.
func (f *fixture) haveTerms(what, ark string, want registry.Terms) {
	f.Helper()
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if diff := cmp.Diff(want, o.Terms); diff != "" {
		f.Errorf("%s: terms (-want +got):\n%s", what, diff)
	}
	page, err := f.Store.Objects(f.Context(), registry.ObjectQuery{Limit: 100})
	f.Must(err)
	for _, listed := range page.Rows {
		if listed.ID == ark && !cmp.Equal(want, listed.Terms) {
			f.Errorf("%s: listed with %+v", what, listed.Terms)
		}
	}
}

func termsKept(f *fixture) {
	ark := f.preservedWith("none", 1, registry.Terms{})
	f.haveTerms("without terms", ark, registry.Terms{})

	c, err := f.Store.Collection(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	c.Profile.Terms = registry.Terms{PreservationLevel: "bit-level", EmbargoUntil: "2030-01-01", EmbargoReason: "the donor's letter"}
	f.Collection(registrytest.Mnemonic, c.Profile)

	ark = f.preservedWith("some", 1, registry.Terms{Rights: licensed, EmbargoUntil: "2028-01-01", EmbargoReason: "a wish"})
	want := registry.Terms{Rights: licensed, PreservationLevel: "bit-level", EmbargoUntil: "2030-01-01", EmbargoReason: "the donor's letter"}
	f.haveTerms("the later embargo counts", ark, want)

	f.preservedWith("some", 2, registry.Terms{PreservationLevel: "full"})
	want.PreservationLevel = "full"
	f.haveTerms("a version that names one", ark, want)

	f.preservedWith("some", 3, registry.Terms{EmbargoUntil: "2031-01-01"})
	want.PreservationLevel, want.EmbargoUntil, want.EmbargoReason = "bit-level", "2031-01-01", ""
	f.haveTerms("a version that lengthens the embargo", ark, want)
}

func termsReplaced(f *fixture) {
	ark := f.preservedWith("x", 1, registry.Terms{EmbargoUntil: "2030-01-01"})
	by := f.By(registrytest.Approver)
	set := func(terms registry.Terms) error {
		return by.SetTerms(f.Context(), ark, terms, "the donor agrees", registrytest.Approver)
	}
	before := f.history(ark)
	f.Must(set(registry.Terms{EmbargoUntil: "2030-01-01"}))
	if got := f.history(ark); !cmp.Equal(before, got) {
		f.Errorf("the same terms made events:\n%s", cmp.Diff(before, got))
	}
	f.Must(set(registry.Terms{Rights: licensed}))
	f.haveTerms("replaced", ark, registry.Terms{Rights: licensed})
	f.Must(set(registry.Terms{}))
	f.haveTerms("ended", ark, registry.Terms{})

	page, err := f.Store.PremisEvents(f.Context(), ark, registry.AfterSeq(0), 0)
	f.Must(err)
	var said []string
	for i, e := range page.Rows {
		if e.Seq != int64(i+1) {
			f.Errorf("event %d has the number %d", i, e.Seq)
		}
		if e.Type == "policy assignment" {
			said = append(said, e.Detail)
		}
	}
	want := []string{
		fmt.Sprintf(`rights: license, https://example.org/license, set by %s: the donor agrees. As data: {"rights":{"basis":"license","uri":"https://example.org/license"}}`, registrytest.Approver),
		fmt.Sprintf(`no rights, preservation level or embargo, set by %s: the donor agrees. As data: {}`, registrytest.Approver),
	}
	if diff := cmp.Diff(want, said); diff != "" {
		f.Errorf("preservation events (-want +got):\n%s", diff)
	}
	odd := registry.Terms{EmbargoUntil: "2030-01-01", EmbargoReason: "so. As data: {}"}
	if got, ok := registry.TermsIn(odd.Detail("a. As data: {}", "b")); !ok || got != odd {
		f.Errorf("of odd texts: %+v, %v", got, ok)
	}
	for i, terms := range []registry.Terms{{Rights: licensed}, {}} {
		if got, ok := registry.TermsIn(said[i]); !ok || !cmp.Equal(terms, got) {
			f.Errorf("%q has the terms %+v, %v", said[i], got, ok)
		}
	}
	audit, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 10})
	f.Must(err)
	var noted int
	for _, e := range audit.Rows {
		if e.Type == "terms-set" {
			noted++
			if e.Actor != registrytest.Approver || !strings.Contains(string(e.Data), ark) {
				f.Errorf("audit entry %+v", e)
			}
		}
	}
	if noted != 2 {
		f.Errorf("%d entries in the audit list, want 2: %+v", noted, audit.Rows)
	}

	f.Is(by.SetTerms(f.Context(), "ark:/99999/none", registry.Terms{}, "because", registrytest.Approver), registry.ErrNotFound)
	c := f.TakeItem(f.ApprovedDeletion(ark).ID)
	f.LockObject(c.Lease, ark)
	_, err = f.Store.MarkDeleting(f.Context(), c.Lease, ark, registry.Remains{Version: 1})
	f.Must(err)
	var gone *registry.GoneError
	if err := set(registry.Terms{PreservationLevel: "full"}); !errors.As(err, &gone) {
		f.Errorf("the terms of a deleted object: %v", err)
	}
}

func termsCount(f *fixture) {
	submit := func(terms registry.Terms) registry.Submitted {
		s := registrytest.Submission()
		s.Spec.URL, s.Spec.Terms = registry.UploadURL("u"), terms
		done, err := f.Store.Submit(f.Context(), s)
		f.Must(err)
		return done
	}
	f.Upload("u", "aa")
	first := submit(registry.Terms{})
	if again := submit(registry.Terms{}); !again.Duplicate {
		f.Errorf("the same again: %+v after %+v", again, first)
	}
	if again := submit(registry.Terms{PreservationLevel: "full"}); again.Duplicate || again.BatchID == first.BatchID {
		f.Errorf("with other terms: %+v after %+v", again, first)
	}
}
