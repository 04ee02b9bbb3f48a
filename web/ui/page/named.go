package page

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
)

// IDsAsked is for how many items [Site.ItemsOf] can ask at once. A query of so many ids is not longer
// than a query may be.
const IDsAsked = 50

// ItemsOf reads the items of a list's rows by id, with one request, so that the list can name them. It
// leaves out items that are unknown or that the viewer may not see, and ids after the first [IDsAsked].
func (s *Site) ItemsOf(ctx context.Context, ids []string) (map[string]registry.WorkItem, error) {
	items := map[string]registry.WorkItem{}
	ids = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(ids))), func(id string) bool { return !registry.IDStart(id) })
	ids = ids[:min(len(ids), IDsAsked)]
	if len(ids) == 0 {
		return items, nil
	}
	byID := registry.Query{Terms: []registry.Term{{Field: "id", Value: strings.Join(ids, ",")}}}
	list, err := s.API.Items(ctx, registry.ItemQuery{Match: byID, Limit: IDsAsked})
	if err != nil {
		return nil, err
	}
	for _, it := range list.Rows {
		items[it.ID] = it
	}
	return items, nil
}

// Heading returns what the viewer of a request calls an item.
func (s *Site) Heading(r *http.Request, it registry.WorkItem) string { return s.viewOf(r).heading(it) }

// heading returns an item's name for people: what it does, in the viewer's language, if the Registry made
// it; else its [registry.WorkItem.Heading], which is a person's or program's text.
func (v *view) heading(it registry.WorkItem) string { return cmp.Or(v.made(it), it.Heading()) }

// made names an item that the Registry made, by its spec; "" for other items, and without a spec. The
// Registry keeps an English title of it, for searches.
func (v *view) made(it registry.WorkItem) string {
	switch it.Action {
	case registry.Bulk:
		if s, ok := specIn[registry.BulkSpec](it); ok {
			return v.label(s.Act) + ": " + BulkSubject(v.texts, s)
		}
	case registry.Tidy:
		switch s, ok := specIn[registry.TidySpec](it); {
		case ok && s.Orphans != nil:
			return v.search(*s.Orphans)
		case ok:
			return v.texts.T("Clear the staging of item %s", s.Subject)
		}
	case registry.DeliverMessage:
		if s, ok := specIn[registry.DeliverySpec](it); ok {
			return v.message(s)
		}
	case registry.FixityCheck, registry.DeleteObject, registry.RestoreObject, registry.CopyObject:
		if s, ok := registry.ObjectSpecIn(it.Spec); ok {
			return v.objectAct(it.Action, s)
		}
	case registry.Ingest, registry.Batch, registry.Task, registry.StepProcess:
	}
	return ""
}

// specIn decodes an item's spec.
func specIn[S any](it registry.WorkItem) (spec S, ok bool) {
	return spec, len(it.Spec) > 0 && json.Unmarshal(it.Spec, &spec) == nil
}

// BulkSubject says on which items an act is.
func BulkSubject(t lang.Texts, s registry.BulkSpec) string {
	switch chosen := s.Match.Chosen(); {
	case s.Parent != "":
		return t.T("the jobs of batch %s", s.Parent)
	case chosen != nil:
		return t.T("%d chosen item|%d chosen items", len(chosen))
	}
	return s.Match.String()
}

// search names a search for orphaned data.
func (v *view) search(s registry.OrphanSearch) string {
	switch {
	case s.Strays:
		return v.texts.T("Search storages for files of no object")
	case s.Remove && s.Storages:
		return v.texts.T("Remove orphaned data from staging and storages")
	case s.Remove:
		return v.texts.T("Remove orphaned data from staging")
	case s.Storages:
		return v.texts.T("Search staging and storages for orphaned data")
	}
	return v.texts.T("Search staging for orphaned data")
}

// message names a callback or mail.
func (v *view) message(s registry.DeliverySpec) string {
	switch s.Mail {
	case "":
		return v.texts.T("Callback to %s about job %s: %s", s.Callback.Target(), s.Called(), v.term(s.State))
	case registry.MailQueued:
		return v.texts.T("Mail: batch %s was received", s.Called())
	case registry.MailReport:
		return v.texts.T("Mail: report %d of batch %s", s.Closing, s.Called())
	case registry.MailFailed:
		return v.texts.T("Mail: batch %s could not be read", s.Called())
	case registry.MailStopped:
		return v.texts.T("Mail: batch %s was ended by an admin", s.Called())
	case registry.MailSafe:
		return v.texts.T("Mail: all copies of batch %s are verified", s.Called())
	case registry.MailDigest:
		return v.texts.T("Mail: what waits for operators")
	}
	return ""
}

// objectAct names an act on an object or one of its files.
func (v *view) objectAct(a registry.Action, s registry.ObjectSpec) string {
	of := s.ObjectID
	if len(s.File) > 0 {
		of += " " + strings.ToValidUTF8(string(s.File), "\uFFFD")
	}
	switch a { //nolint:exhaustive // no other is about an object
	case registry.FixityCheck:
		return v.texts.T("Fixity check of %s", of)
	case registry.DeleteObject:
		return v.texts.T("Deletion of %s", of)
	case registry.RestoreObject:
		return v.texts.T("Restore of %s", of)
	case registry.CopyObject:
		return v.texts.T("Copy of %s", of)
	}
	return ""
}
