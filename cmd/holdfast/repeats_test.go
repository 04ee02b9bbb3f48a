package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// identicalRows: both of two identical rows become jobs, and the repetition is shown: in the report
// as text, JSON and CSV, at the item, and once in the batch's history.
func identicalRows(t *testing.T, in func(...string) clitest.Result) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("the file at " + r.URL.Path)) }))
	defer site.Close()
	row := func(name, id string) string {
		return site.URL + "/" + name + " | | | | | " + name + " | | " + id + " | | |\n"
	}
	manifest := "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n" +
		row("same.txt", "twice") + row("other.txt", "once") + row("same.txt", "twice") + "#%eof\n"
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "twice.checkm"), manifest)
	s := in("submit", file, "--wait", "--json").Wants(t, exit.OK).Summary(t)
	if s.Completed != 3 || len(s.Jobs) != 3 {
		t.Fatalf("summary %+v, want three completed jobs", s)
	}
	for _, tt := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"batch", "report", s.BatchID}, []string{"1 row repeats an earlier row; each became a job of its own", "Rows that repeat an earlier row", "row 1, line 6  " + s.Jobs[2].ItemID}},
		{[]string{"batch", "report", s.BatchID, "--json"}, []string{`"repeats":1`, `"repeats":{"row":1,"line":6}`}},
		{[]string{"batch", "report", s.BatchID, "--csv"}, []string{",repeats_row,repeats_line,title\n", ",true,1,6,"}},
		{[]string{"item", "show", s.Jobs[2].ItemID}, []string{"row 1, line 6, which says the same"}},
	} {
		out := in(tt.args...).Wants(t, exit.OK).Out
		for _, want := range tt.wants {
			if strings.Count(out, want) != 1 {
				t.Errorf("%v: %q is there %d times, want once:\n%s", tt.args, want, strings.Count(out, want), out)
			}
		}
	}
	if out := in("item", "history", s.BatchID, "--json").Wants(t, exit.OK).Out; strings.Count(out, "rows-repeated") != 1 || !strings.Contains(out, "row 3, line 8 repeats row 1, line 6") {
		t.Errorf("history:\n%s", out)
	}
}
