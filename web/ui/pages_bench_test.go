package ui_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/cputest"
	"github.com/holdfast/holdfast/internal/cputime"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

var (
	archiveFile   = flag.String("archive", "", "keeps the SQLite database of BenchmarkPages: it is made if there is none, and copied")
	archiveServer = flag.String("archive-server", "", "keeps the PostgreSQL database of BenchmarkPages at this address: it is filled if it is empty")
	archiveItems  = flag.Int("archive-items", 100_000, "items of BenchmarkPages, and jobs of its large batch")
)

// BenchmarkPages requests every page of the menu, and of each kind of record, with the queries that
// people ask: of 200,000 items, half of them in one batch, 10,000 objects, and an object of 105,000
// files. It does so without holds and with them, for an admin and for a depositor. The targets are
// 200 ms and 300 KiB a page.
func BenchmarkPages(b *testing.B) {
	for _, database := range []struct {
		name string
		make func(testing.TB) string
	}{{"SQLite", archiveSQLite}, {"PostgreSQL", archivePostgres}} {
		b.Run(database.name, func(b *testing.B) {
			a := openArchive(b, database.make(b))
			names := strings.NewReplacer(a.batch.ID, "LARGE", a.small.ID, "BATCH", a.object, "OBJECT")
			for _, holds := range []string{"free", "held"} {
				if holds == "held" {
					a.hold(b)
				}
				for _, role := range []registry.Role{registry.RoleAdmin, registry.RoleDepositor} {
					for _, path := range a.pages(role) {
						b.Run(holds+"/"+string(role)+names.Replace(path), func(b *testing.B) { a.measure(b, role, path) })
					}
				}
			}
		})
	}
}

// archiveSQLite returns a database with the archive.
func archiveSQLite(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive.db")
	kept := cmp.Or(*archiveFile, path)
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		fillArchive(t, "sqlite:"+kept)
	}
	if kept != path {
		text, err := os.ReadFile(kept)
		must(t, err)
		must(t, os.WriteFile(path, text, 0o600))
	}
	return "sqlite:" + path
}

func archivePostgres(t testing.TB) string {
	t.Helper()
	address := cmp.Or(*archiveServer, sqlstoretest.Postgres(t))
	_, _, err := sqldb.Migrate(t.Context(), address)
	must(t, err)
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: address})
	must(t, err)
	defer s.Close()
	if items, err := s.Items(t.Context(), registry.ItemQuery{Limit: 1}); err != nil || len(items.Rows) == 0 {
		must(t, err)
		fillArchive(t, address)
	}
	return address
}

func fillArchive(t testing.TB, address string) {
	t.Helper()
	_, _, err := sqldb.Migrate(t.Context(), address)
	must(t, err)
	n := *archiveItems
	must(t, registrybench.SeedArchive(t.Context(), address, sqlstoretest.ReceiptKey(t), registrybench.Archive{
		Items: n, Batch: n, Objects: n / 10, Files: n + n/20,
	}))
}

// archive is a server over a large Registry.
type archive struct {
	*uitest.Server
	address      string // of its database
	tokens       map[registry.Role]string
	batch, small registry.WorkItem // the large batch, and another
	object       string            // an object that is not large
}

func openArchive(t testing.TB, address string) *archive {
	t.Helper()
	_, _, err := sqldb.Migrate(t.Context(), address) // a kept one may be of an older program
	must(t, err)
	a := &archive{Server: uitest.New(t, uitest.Options{Database: address}), address: address, tokens: map[registry.Role]string{}}
	first := a.list(t, "action:ingest name:"+registrybench.ArchiveTitle, 1)[0]
	a.batch, err = a.Store.Item(t.Context(), first.ParentID)
	must(t, err)
	a.small = a.list(t, "action:batch state:failed -id:"+a.batch.ID, 1)[0]
	objects, err := a.Store.Objects(t.Context(), registry.ObjectQuery{Text: "Glass", Limit: 1})
	must(t, err)
	a.object = objects.Rows[0].ID
	a.tokens[registry.RoleAdmin] = a.TokenOf(t, "an admin", registry.RoleAdmin)
	a.tokens[registry.RoleDepositor] = "secret of a depositor"
	must(t, a.Store.AddToken(t.Context(), registry.Token{
		ID: "a depositor", Hash: signin.Hash("secret of a depositor"), Name: a.batch.CreatedBy, Role: registry.RoleDepositor,
		Collections: []string{a.batch.Collection},
	}))
	return a
}

func (a *archive) list(t testing.TB, text string, limit int) []registry.WorkItem {
	t.Helper()
	q, err := query.Parse(text)
	must(t, err)
	page, err := a.Store.Items(t.Context(), registry.ItemQuery{Match: q, Limit: limit})
	must(t, err)
	if len(page.Rows) < limit {
		t.Fatalf("%s: %d items, want %d", text, len(page.Rows), limit)
	}
	return page.Rows
}

// hold adds a hold of each scope that holds only a part.
func (a *archive) hold(t testing.TB) {
	t.Helper()
	for scope, key := range map[registry.HoldScope]string{
		registry.HoldCollection: "collection_05", registry.HoldBatch: a.small.ID, registry.HoldStage: string(registry.Provision),
		registry.HoldItem: a.list(t, "action:ingest status:pending batch:"+a.batch.ID, 1)[0].ID,
	} {
		must(t, a.Store.AddHold(context.WithoutCancel(t.Context()), registry.Hold{Scope: scope, Key: key, Reason: "to be looked at", Actor: "an admin"}))
	}
}

// pages are the addresses to measure.
func (a *archive) pages(role registry.Role) (all []string) {
	add := func(path string, pairs ...string) {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		if len(v) > 0 {
			path += "?" + v.Encode()
		}
		all = append(all, path)
	}
	batch, by := a.batch.ID, `by:"`+a.batch.CreatedBy+`"`
	for _, q := range []string{"", by, "harbour", "batch-0", "class:jobs", "older:10d", "collection:" + a.batch.Collection} {
		add("/deposits", "q", q, "of", "all")
		add("/deposits", "q", q, "show", "needs")
	}
	for _, show := range []string{"open", "done"} {
		add("/deposits", "show", show, "of", "all")
	}
	for _, path := range []string{"/deposit", "/uploads", "/schedules", "/processes", "/help", "/api", "/account", "/sessions"} {
		add(path)
	}
	add("/deposits/" + batch)
	add("/deposits/" + a.small.ID)
	add("/deposits/" + batch + "/cancel")
	for _, id := range []string{batch, a.small.ID} {
		add("/batches/" + id)
		for _, show := range []string{"waiting", "held", "running", "failed", "stopped", "completed"} {
			add("/batches/"+id, "show", show)
		}
		for _, stage := range []registry.Stage{registry.Estimate, registry.Notify} {
			add("/batches/"+id, "stage", string(stage))
			add("/batches/"+id, "stage", string(stage), "show", "failed")
		}
		add("/items/" + id)
		for _, act := range []registry.Act{registry.ActCancel, registry.ActRequeue, registry.ActPriority, registry.ActHold} {
			add("/items/"+id+"/acts", "act", string(act))
		}
		add("/items/" + id + "/graph")
		add("/failures/requeue", "match", "batch:"+id)
	}
	for _, q := range []string{"glass", "box 00", "nowhere", "newspapers"} {
		add("/objects", "text", q)
	}
	add("/objects")
	add("/objects", "collection", "collection_00")
	for _, o := range []string{a.object, registrybench.ArchiveObject} {
		add("/objects/" + o)
		add("/objects/"+o, "version", "1")
		add("/objects/"+o, "act", "delete")
	}
	add("/objects/"+registrybench.ArchiveObject, "version", "1", "after", "producer/folder-050/")
	add("/objects/"+registrybench.ArchiveObject, "folder", "producer/folder-050")
	add("/objects/"+registrybench.ArchiveObject, "file", "producer/folder-050/file-050007.tif")
	if role == registry.RoleDepositor {
		return all
	}
	for _, path := range []string{
		"/operations", "/operations?span=day", "/operations?span=month", "/holds", "/holds/release-all", "/collections", "/collections/collection_00",
		"/collections/collection_00/edit", "/collections/collection_00/versions", "/deletions", "/subscriptions", "/tokens", "/audit", "/functions", "/failures/requeue",
	} {
		add(path)
	}
	for _, q := range []string{
		"", "harbour", "HARBOUR 0471", "thesis", "nowherenowhere", "timeout", "error:timeout", "harbour state:failed", "harbour batch:" + batch, "manuscript collection:collection_00", "thesis -state:completed",
		"pdf", "-harbour", "ha", "name:harbour state:pending",
		"collection:collection_00", "collection:" + a.batch.Collection, "collection:collection_00,collection_01 state:failed", "-collection:" + a.batch.Collection,
		"batch:" + batch, "batch:" + batch + " state:failed", "batch:" + batch + " state:held", "batch:" + a.small.ID, by, by + " state:failed", by + " action:batch",
		"state:failed", "state:completed", "state:pending", "state:held", "-state:completed", "status:running", "stage:download", "stage:download state:failed", "held:yes", "held:no", "delayed:yes", "class:content",
		"retries:>0", "priority:<6", "older:10d", "newer:1h", "action:batch",
	} {
		add("/items", "q", q)
		add("/items", "q", q, "order", "oldest")
	}
	for _, q := range []string{"", "harbour", "batch:" + batch, "collection:" + a.batch.Collection, "state:failed", by} {
		for _, act := range []registry.Act{registry.ActRequeue, registry.ActCancel} {
			add("/items/act", "q", q, "all", "yes", "act", string(act))
			add("/items/act", "q", q, "all", "yes", "act", string(act), "counted", "yes") // exact, which follows the page
		}
	}
	for _, q := range []string{"collection:c", "cause:", "har"} {
		add("/items/suggest", "q", q)
	}
	add("/find", "q", "harbour")
	for _, q := range []string{"", "harbour", "harbour batch:" + batch, "harbour action:batch"} { // exact, as the command line counts
		add("/api/v1/items/count", "q", q)
	}
	return all
}

// measure requests a page. cpu-ms is the processor time of this process and of the database's server.
func (a *archive) measure(b *testing.B, role registry.Role, path string) {
	b.Helper()
	a.Token = a.tokens[role]
	bytes, server := 0, a.serverUsed(b)
	used := cputest.Used(b)
	for b.Loop() {
		w := a.Send(b, http.MethodGet, path, nil)
		if w.Code >= http.StatusInternalServerError { // refusals take time, too
			b.Fatalf("status=%d: %s", w.Code, w.Body)
		}
		bytes = w.Body.Len()
	}
	used, server = cputest.Used(b)-used, a.serverUsed(b)-server
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/page")
	b.ReportMetric(float64((used+server).Microseconds())/1000/float64(b.N), "cpu-ms/page")
	b.ReportMetric(float64(bytes)/1024, "KiB/page")
	b.ReportMetric(0, "ns/op")
}

// serverUsed returns the processor time that PostgreSQL's processes have used, to a hundredth of a
// second; 0 with SQLite, which is a part of this process.
func (a *archive) serverUsed(b *testing.B) time.Duration {
	b.Helper()
	if strings.HasPrefix(a.address, "sqlite:") {
		return 0
	}
	used, err := cputime.Postgres(b.Context(), a.address)
	must(b, err)
	return used
}
