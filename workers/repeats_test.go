package workers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/reportfile"
)

// wantRepeats checks that a batch's history tells once which of its rows repeat an earlier one.
func wantRepeats(t *testing.T, r *rig, batch string, want ...string) {
	t.Helper()
	events, err := r.registry.Events(t.Context(), batch, 0, 500)
	must(t, err)
	var told []string
	for _, e := range events {
		if e.Type != "rows-repeated" {
			continue
		}
		var data struct {
			Count int      `json:"count"`
			First []string `json:"first"`
		}
		must(t, json.Unmarshal(e.Data, &data))
		if told = append(told, data.First...); data.Count != len(want) {
			t.Errorf("%d rows are told to repeat others, want %d", data.Count, len(want))
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestExpand_IdenticalRowsAreTold: a row that repeats an earlier one still becomes a job. Job,
// history and report name the row and line that it repeats. Rows that differ in anything stored,
// and refused rows, repeat nothing.
func TestExpand_IdenticalRowsAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	file := checkm.Row{URL: r.site.put("f", "text"), Name: "f", LocalIDs: []string{"one"}, Title: "A title"}
	titled, named, other, bad, changed := file, file, file, file, file
	titled.Title, named.Name, other.LocalIDs, bad.URL = "Another", "g", []string{"two"}, r.site.put("bad", "text")
	changed.Modified = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	sized := file
	sized.Size = 4 // compared, and no part of what is stored
	url := r.site.manifest("b", checkm.FileBatch, file, titled, named, other, bad, file, bad, sized, titled, changed)
	r.site.put("b", strings.ReplaceAll(r.site.files["b"], bad.URL, "ftp://nowhere/f"))
	batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: url})
	jobs := r.expand(batch)
	line := func(row int) int64 { return jobs[row-1].Line }
	want := map[int64]registry.RowPlace{6: {Row: 1, Line: line(1)}, 8: {Row: 1, Line: line(1)}, 9: {Row: 2, Line: line(2)}}
	for _, j := range jobs {
		if j.Row == 5 || j.Row == 7 {
			isContent(t, j, "ftp://nowhere")
			continue
		}
		r.complete(j.ID)
	}
	wantRepeats(t, r, batch, "row 6, line 11 repeats row 1, line 6", "row 8, line 13 repeats row 1, line 6", "row 9, line 14 repeats row 2, line 7")
	if v, err := r.run(batch); err != nil || v.Status != registry.Failed {
		t.Fatalf("batch: %+v, %v", v, err)
	}
	report, err := r.registry.ReportOf(t.Context(), batch, 0)
	must(t, err)
	if report.Repeats != 3 || report.Completed != 8 {
		t.Errorf("report %+v, want 8 completed and 3 that repeat others", report)
	}
	got := map[int64]registry.RowPlace{}
	q := registry.ReportQuery{BatchID: batch, Closing: 1}
	for j, err := range reportfile.Jobs(t.Context(), r.registry, q) {
		must(t, err)
		if j.Repeats != nil {
			got[j.Row] = *j.Repeats
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the report's rows that repeat others (-want +got):\n%s", diff)
	}
	var csv, text strings.Builder
	must(t, reportfile.CSV(&csv, reportfile.Jobs(t.Context(), r.registry, q)))
	must(t, reportfile.JSON(t.Context(), &text, r.registry, report, q))
	for lines := strings.Split(csv.String(), "\n"); len(lines) > 0; lines = lines[1:] {
		if strings.HasPrefix(lines[0], "9,14,") && !strings.Contains(lines[0], ",2,7,") {
			t.Errorf("CSV: %s", lines[0])
		}
	}
	for _, words := range []string{`"repeats":3,`, `"repeats":{"row":2,"line":7}`} {
		if !strings.Contains(text.String(), words) {
			t.Errorf("JSON without %s:\n%s", words, text.String())
		}
	}
}

// TestMail_IdenticalRows: the mail of a batch's report names the rows that repeat others, in both
// of its forms.
func TestMail_IdenticalRows(t *testing.T) {
	t.Parallel()
	o := newOffice(t, registry.MailRules{})
	file := checkm.Row{URL: o.site.put("f", "text"), Name: "f <b>", LocalIDs: []string{"one"}}
	other := checkm.Row{URL: o.site.put("g", "text"), Name: "g"}
	o.settle(o.submit(registry.Spec{Type: registry.SingleFileBatch, URL: o.site.manifest("b", checkm.FileBatch, file, other, file), Notify: []string{"ann@example.org"}}))
	for _, m := range o.deliver() {
		if !strings.Contains(m.Header.Get("Subject"), "3 completed") {
			continue
		}
		for text, want := range map[string]string{m.Text: "  row 3, line 8 repeats row 1, line 6: f <b>", m.HTML: ">f &lt;b&gt;</a></li>"} {
			if strings.Count(text, "repeat an earlier row of the manifest") != 1 || !strings.Contains(text, want) {
				t.Errorf("without %q:\n%s", want, text)
			}
		}
		return
	}
	t.Error("no mail tells of three completed jobs")
}
