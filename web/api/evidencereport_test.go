package api_test

import (
	"archive/zip"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/evidencereport"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/client"
)

// TestEvidenceReport: a report of a period that has ended is the same whenever it is made, signed by the
// service, and has what happened in the period.
func TestEvidenceReport(t *testing.T) {
	b := newBench(t, func(b *bench, o *api.Options) { o.Now = b.now })
	b.preserve(t, objectARK, testFiles())
	if answer, _ := b.send(t, http.MethodGet, exportPath(""), ""); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.StatusCode)
	}
	first := b.now().UTC()
	q := client.EvidenceQuery{From: first.AddDate(0, 0, -1).Format(time.DateOnly), To: first.AddDate(0, 0, 1).Format(time.DateOnly)}
	b.pass(48 * time.Hour)
	report := func(q client.EvidenceQuery) string {
		t.Helper()
		body, err := b.as(t, registry.RoleOperator).EvidenceReport(t.Context(), q)
		must(t, err)
		text, err := io.ReadAll(body)
		must(t, err)
		must(t, body.Close())
		return string(text)
	}
	text := report(q)
	b.send(t, http.MethodGet, exportPath(""), "") // after the period
	if again := report(q); again != text {
		t.Error("the same period gives other bytes")
	}
	files, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	must(t, err)
	keys, err := b.as(t, registry.RoleOperator).ReceiptKeys(t.Context())
	must(t, err)
	var trusted []receipt.PublicKey
	for _, k := range keys {
		key, err := receipt.ParsePublicKey(k.PublicKey)
		must(t, err)
		trusted = append(trusted, key)
	}
	if v, err := evidencereport.Check(files, trusted); err != nil || len(v.Faults) > 0 || !v.Trusted {
		t.Errorf("checked: %+v %v", v, err)
	}
	for name, part := range map[string]string{
		"README.txt": "accesses exported                                     1\n", "access.csv": "the admin,exported," + objectARK + ",1,default,API,zip", "holdings.csv": "default,0,1,0,1,0,6,",
		"ingests.csv": "default,1,0,6,", "storages.csv": registry.DefaultStorage + ",", "software.csv": "Holdfast test,", "policies.csv": "default,1,", "keys.csv": keys[0].PublicKey,
	} {
		content, err := fs.ReadFile(files, name)
		if err != nil || !strings.Contains(string(content), part) {
			t.Errorf("%s lacks %q: %v\n%s", name, part, err, content)
		}
	}
	for query, status := range map[string]int{
		"?from=2026-01-01": http.StatusUnprocessableEntity, "?from=2026-02-01&to=2026-01-01": http.StatusUnprocessableEntity, "?from=2026-01-01&to=2999-01-01": http.StatusUnprocessableEntity,
		"?from=1.1.2026&to=2026-01-01": http.StatusUnprocessableEntity, "?from=2026-01-01&to=2026-01-02&collection=none": http.StatusNotFound,
	} {
		if answer, text := b.send(t, http.MethodGet, "/api/v1/evidence-report"+query, ""); answer.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", query, answer.StatusCode, text, status)
		}
	}
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleWorker} {
		if _, err := b.as(t, role).EvidenceReport(t.Context(), q); err == nil {
			t.Errorf("role %s may have it", role)
		}
	}
}
