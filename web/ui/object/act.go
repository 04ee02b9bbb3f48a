package object

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// Acts about an object, by the names that addresses have.
const (
	actVerify  = "verify"
	actCheck   = "check"
	actRestore = "restore"
	actAudit   = "audit"
	actTerms   = "terms"
)

// operations are the operations of the API that acts need.
var operations = map[string]string{actVerify: "verify-object", actCheck: "check-object", actRestore: "restore-object", actAudit: "audit-object", actTerms: "set-terms"}

// actLabel is the text of an act's button, in English.
func actLabel(act string) string {
	switch act {
	case actVerify:
		return "Verify now"
	case actCheck:
		return "Check in the queue"
	case actRestore:
		return "Restore as one file"
	case actAudit:
		return "Audit the events"
	case actTerms:
		return "Rights and embargo"
	}
	return act
}

// mostVerified is how much a page may ask to be read while somebody waits, in bytes.
const mostVerified = 20 << 30

// actsOf returns the acts about an object that the viewer can ask.
func (p pages) actsOf(r *http.Request, o registry.Object) (acts []string) {
	_, kept := p.Embargoed(r.Context(), o)
	for _, act := range []string{actVerify, actCheck, actRestore, actAudit, actTerms} {
		if kept && act == actRestore {
			continue
		}
		if p.May(r.Context(), operations[act]) && (o.Gone == "" || act == actAudit) && (act != actVerify || toRead(o) <= mostVerified) {
			acts = append(acts, act)
		}
	}
	return acts
}

// toRead is at most how many bytes all copies of an object have.
func toRead(o registry.Object) (bytes int64) {
	for _, v := range o.Versions {
		bytes += v.SizeBytes * int64(len(v.Replicas))
	}
	return bytes
}

// actPage is the form of an act.
type actPage struct {
	Object   registry.Object
	Act      string
	Version  int // to restore
	Size     int64
	Read     int64 // at most
	Storages int
	Key      string
}

// Rights are those of the object; empty if it has none.
func (a actPage) Rights() (r registry.Rights) {
	if a.Object.Terms.Rights != nil {
		r = *a.Object.Terms.Rights
	}
	return r
}

// Bases are the bases of rights.
func (actPage) Bases() []registry.RightsBasis { return registry.RightsBases() }

// Statuses are those of a copyright.
func (actPage) Statuses() []string { return registry.CopyrightStatuses() }

// verifiedPage is the result of a verification, or of an audit.
type verifiedPage struct {
	Object   registry.Object
	Verified *wire.VerifyReport
	Audited  *wire.AuditReport
}

// askAct shows the form of an act, with its consequences.
func (p pages) askAct(r *http.Request, o registry.Object, act string) (page.Page, error) {
	v, err := versionOf(r, o)
	if err == nil {
		err = p.canAct(r, o, act)
	}
	if err != nil {
		return page.Page{}, err
	}
	return p.actForm(r, actPage{Object: o, Act: act, Version: v.Version}), nil
}

// canAct returns why the viewer cannot ask an act, or nil.
func (p pages) canAct(r *http.Request, o registry.Object, act string) error {
	operation, known := operations[act]
	switch {
	case !known:
		return page.Invalid("unknown act %q", act)
	case !p.May(r.Context(), operation):
		return page.Forbidden()
	case slices.Contains(p.actsOf(r, o), act):
		return nil
	case o.Gone != "":
		return page.Refused("the object was deleted: %v", o.Deletion.Text())
	}
	if _, kept := p.Embargoed(r.Context(), o); kept && act == actRestore {
		return page.Refused("its files are under embargo until %s", o.Terms.EmbargoUntil)
	}
	return page.Refused("the object is too large to be read while somebody waits; check it in the queue, or use `holdfast object verify`")
}

func (p pages) actForm(r *http.Request, a actPage) page.Page {
	storages := map[string]bool{}
	for _, v := range a.Object.Versions {
		if v.Version == a.Version {
			a.Size = v.SizeBytes
		}
		for _, in := range v.Replicas {
			storages[in.Storage] = true
		}
	}
	a.Storages, a.Read, a.Key = len(storages), toRead(a.Object), page.NewKey()
	return page.Page{Name: "objectact", Title: p.Texts(r).T(actLabel(a.Act)) + ": " + a.Object.ID, Section: "objects", Content: a}
}

// act does what a form asks. A verification shows what it found; the others lead to the object.
func (p pages) act(r *http.Request) (string, *page.Page, error) {
	ctx := r.Context()
	o, err := p.objectOf(r)
	if err != nil {
		return "", nil, err
	}
	form, reason := actPage{Object: o, Act: r.PostForm.Get("act")}, strings.TrimSpace(r.PostForm.Get("reason"))
	if form.Version, err = strconv.Atoi(r.PostForm.Get("version")); err != nil || form.Version < 1 || form.Version > o.Head {
		return "", nil, page.Invalid("the form names no version of the object")
	}
	if err := p.canAct(r, o, form.Act); err != nil {
		return "", nil, err
	}
	key := r.PostForm.Get("key")
	if err := p.CheckReason(r, reason, key, form.Act == actTerms); err != nil {
		return "", nil, err
	}
	result := verifiedPage{Object: o}
	fragment := "copies"
	switch form.Act {
	case actVerify:
		var report wire.VerifyReport
		report, err = p.API.Verify(ctx, o.ID)
		result.Verified = &report
	case actAudit:
		var report wire.AuditReport
		report, err = p.API.AuditObject(ctx, o.ID)
		result.Audited = &report
	case actCheck:
		_, err = p.API.CheckObject(ctx, o.ID, reason, key)
	case actRestore:
		_, err = p.API.Restore(ctx, o.ID, form.Version, reason, key)
		fragment = "restores"
	case actTerms:
		_, err = p.API.SetTerms(ctx, o.ID, page.TermsOf(r.PostForm), reason)
		fragment = "about"
	}
	if err != nil {
		return "", nil, err
	}
	if result.Verified != nil || result.Audited != nil {
		return "", &page.Page{
			Name: "verified", Title: p.Texts(r).T(actLabel(form.Act)) + ": " + o.ID, Section: "objects", Status: http.StatusOK, Content: result,
		}, nil
	}
	return (&url.URL{Path: page.ObjectURL(o.ID), Fragment: fragment}).String(), nil, nil
}
