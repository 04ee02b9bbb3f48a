package page

import (
	"encoding/json"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/lang"
)

// TestHeading: what the Registry made is called by what it does, in the reader's language; what people
// made, or what has no spec, is called as they did.
func TestHeading(t *testing.T) {
	t.Parallel()
	all, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	const id = "0199f3c2-7abc-7000-8000-000000000001"
	failed, err := query.Parse("state:failed")
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := query.Parse("id:" + id + ",0199f3c2-7abc-7000-8000-000000000002")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[registry.Action]bool{}
	for _, tt := range []struct {
		action          registry.Action
		spec            any
		english, german string
	}{
		{registry.Bulk, registry.BulkSpec{Act: registry.ActRequeue, Match: failed}, "Requeue: state:failed", "Erneut einreihen: state:failed"},
		{registry.Bulk, registry.BulkSpec{Act: registry.ActRequeue, Match: chosen}, "Requeue: 2 chosen items", "Erneut einreihen: 2 ausgewählte Vorgänge"},
		{registry.Bulk, registry.BulkSpec{Act: registry.ActAbort, Parent: id}, "Abort: the jobs of batch " + id + "", "Endgültig beenden: die Aufträge des Stapels " + id + ""},
		{registry.DeliverMessage, registry.DeliverySpec{Mail: registry.MailReport, Closing: 1, Subject: id}, "Mail: report 1 of batch " + id + "", "E-Mail: Bericht 1 des Stapels " + id + ""},
		{registry.DeliverMessage, registry.DeliverySpec{Mail: registry.MailDigest}, "Mail: what waits for operators", "E-Mail: was auf Operatoren wartet"},
		{registry.DeliverMessage, registry.DeliverySpec{Callback: registry.Callback{URL: "https://h.test/x"}, State: registry.StateFailed, Subject: id, About: "Glass plates"}, "Callback to https://h.test about job Glass plates: Failed", "Rückruf an https://h.test zu Auftrag Glass plates: Fehlgeschlagen"},
		{registry.DeliverMessage, registry.DeliverySpec{Callback: registry.Callback{URL: "https://h.test/x"}, State: registry.StateFailed, Subject: id}, "Callback to https://h.test about job " + id + ": Failed", "Rückruf an https://h.test zu Auftrag " + id + ": Fehlgeschlagen"},
		{registry.Tidy, registry.TidySpec{Subject: id}, "Clear the staging of item " + id + "", "Zwischenspeicher von Vorgang " + id + " leeren"},
		{registry.Tidy, registry.TidySpec{Orphans: &registry.OrphanSearch{Remove: true}}, "Remove orphaned data from staging", "Verwaiste Daten im Zwischenspeicher entfernen"},
		{registry.FixityCheck, registry.ObjectSpec{ObjectID: "ark:/1/2", File: []byte("v1/a.tif")}, "Fixity check of ark:/1/2 v1/a.tif", "Integritätsprüfung von ark:/1/2 v1/a.tif"},
		{registry.DeleteObject, registry.ObjectSpec{ObjectID: "ark:/1/2"}, "Deletion of ark:/1/2", "Löschung von ark:/1/2"},
		{registry.RestoreObject, registry.ObjectSpec{ObjectID: "ark:/1/2"}, "Restore of ark:/1/2", "Wiederherstellung von ark:/1/2"},
		{registry.CopyObject, registry.ObjectSpec{ObjectID: "ark:/1/2", Version: 3}, "Copy of ark:/1/2", "Kopie von ark:/1/2"},
		{registry.Batch, registry.Spec{Title: "Mail: report 1"}, "Mail: report 1", "Mail: report 1"},
		{registry.Ingest, registry.Spec{Title: "Letters"}, "Letters", "Letters"},
		{registry.Task, registry.TaskSpec{}, "stored", "stored"},
		{registry.StepProcess, registry.TaskSpec{}, "stored", "stored"},
		{registry.Bulk, nil, "stored", "stored"},
	} {
		tested[tt.action] = true
		it := registry.WorkItem{ID: id, Action: tt.action, Name: "stored"}
		if tt.spec != nil {
			if it.Spec, err = json.Marshal(tt.spec); err != nil {
				t.Fatal(err)
			}
		}
		for tag, want := range map[string]string{"en": tt.english, "de": tt.german} {
			v := &view{texts: all.In(tag)}
			if got := v.heading(it); got != want {
				t.Errorf("%s, %s %s: %q, want %q", tag, it.Action, it.Spec, got, want)
			}
		}
	}
	for _, a := range registry.Actions() {
		if !tested[a] {
			t.Errorf("no case says what an item of action %s is called", a)
		}
	}
}
