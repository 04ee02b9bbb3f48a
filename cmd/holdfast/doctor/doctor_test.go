package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/backup"
	"github.com/holdfast/holdfast/clamd/clamdtest"
	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/ezid/ezidtest"
	"github.com/holdfast/holdfast/format/siegfried/siegfriedtest"
	"github.com/holdfast/holdfast/interim/redis/redistest"
	"github.com/holdfast/holdfast/mail/mailtest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

func TestMain(m *testing.M) {
	code := postgrestest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		code = 1
	}
	os.Exit(code)
}

// do runs one check.
func do(t *testing.T, s *site, run func(context.Context, *site, *report)) []Finding {
	t.Helper()
	if s.now == nil {
		s.now = time.Now
	}
	var r report
	run(t.Context(), s, &r)
	return r.list
}

// wants requires a finding with this result that says these words, and no worse one.
func wants(t *testing.T, list []Finding, result Result, says ...string) {
	t.Helper()
	order := []Result{OK, Skipped, Warning, Fault}
	found := false
	for _, f := range list {
		if slices.Index(order, f.Result) > slices.Index(order, result) {
			t.Errorf("found %+v, want nothing worse than %s", f, result)
		}
		if (f.Result == Warning || f.Result == Fault) && f.Fix == "" {
			t.Errorf("%+v does not say what to do", f)
		}
		all := f.Result == result
		for _, text := range says {
			all = all && strings.Contains(f.About+": "+f.Found, text)
		}
		found = found || all
	}
	if !found {
		t.Errorf("found %+v; want %s that says %q", list, result, says)
	}
}

var silent = slog.New(slog.DiscardHandler)

// upOn runs `up` on a folder until the test ends.
func upOn(t *testing.T, folder string) *node.Node {
	t.Helper()
	template, err := config.Default().Template()
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.Up(t.Context(), node.UpOptions{
		Common: node.Common{Listen: "127.0.0.1:0", Log: silent, Version: "dev"}, Dir: folder,
		Work: node.Work{Template: template, StagingFull: 1, StagingFullUnestimated: 1, StagingReserve: 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// says requires these words on standard output.
func says(t *testing.T, r clitest.Result, words ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(r.Out), " ") // lines are wrapped
	for _, word := range words {
		if !strings.Contains(flat, word) {
			t.Errorf("does not say %q:\n%s", word, r.Out)
		}
	}
}

var program = clitest.Commands(func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })

// The whole command on a laptop: sound while it runs; without it the service does not answer.
func TestDoctor_Up(t *testing.T) {
	clitest.NoEnvironment(t)
	folder := filepath.Join(t.TempDir(), "data")
	n := upOn(t, folder)
	sound := program.Run(t, "", "doctor", "--dir", folder).Wants(t, exit.OK)
	for strings.Contains(sound.Out, "0 workers live") { // its worker announces itself soon
		sound = program.Run(t, "", "doctor", "--dir", folder).Wants(t, exit.OK)
	}
	says(t, sound, "0 faults", "checked as up", "version dev, health ok", "1 worker lives", "holdfast up, admin", "it agrees", "schema version", "wrote, read back and deleted", "4 files with secrets, private")
	if err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, "doctor") {
			t.Errorf("%s is left", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if h, err := node.AskHealth(t.Context(), n.URL(), nil); err != nil || !strings.HasPrefix(h.Registry, "urn:uuid:") {
		t.Errorf("health %+v, %v", h, err)
	}
	t.Run("another token", func(t *testing.T) {
		t.Setenv("HOLDFAST_URL", n.URL())
		t.Setenv("HOLDFAST_TOKEN", "hf_SECRETSECRET")
		r := program.Run(t, "", "doctor", "--for", "download", "--json")
		says(t, r.Wants(t, exit.Failed), `"check":"token","result":"fault"`)
		if strings.Contains(r.Out+r.Err, "SECRETSECRET") {
			t.Errorf("prints the token:\n%s%s", r.Out, r.Err)
		}
	})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	says(t, program.Run(t, "", "doctor", "--dir", folder).Wants(t, exit.Temporary), "1 fault,", "connection refused", "the service does not answer", "start it, or correct HOLDFAST_URL")
	for _, err := range []error{os.WriteFile(filepath.Join(folder, "registry.db"), []byte("no database"), 0o600), os.RemoveAll(filepath.Join(folder, "staging"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	says(t, program.Run(t, "", "doctor", "--dir", folder).Wants(t, exit.Failed), "the file is damaged, or is another one", "restore a backup", "make the folder, or correct --dir")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	says(t, program.Run(t, "", "doctor", "--dir", folder).Wants(t, exit.Usage), "there is no folder", "1 fault, 0 warnings, 0 ok, 0 skipped")
}

func TestDoctor_Usage(t *testing.T) {
	clitest.NoEnvironment(t)
	program.Run(t, "", "doctor", "--for", "nobody").Wants(t, exit.Usage).Says(t, "--for nobody: unknown")
	program.Run(t, "", "doctor", "--timeout", "0s").Wants(t, exit.Usage)
}

func TestSettings(t *testing.T) {
	clitest.NoEnvironment(t)
	a := cli.New("dev", strings.NewReader(""), io.Discard, io.Discard)
	a.Dir = t.TempDir()
	wants(t, do(t, examine(t.Context(), a, options{}), checkSettings), OK, "checked as up")
	t.Setenv("HOLDFAST_LISTENN", "127.0.0.1:1")
	t.Setenv("HOLDFAST_MAIL_URL", "nonsense")
	list := do(t, examine(t.Context(), a, options{}), checkSettings)
	wants(t, list, Fault, "did you mean HOLDFAST_LISTEN?")
	wants(t, list, Fault, "HOLDFAST_MAIL_URL", "nonsense")
	if code := verdict(list); code != exit.Usage {
		t.Errorf("exit code %d for wrong settings only", code)
	}
	a.Dir = ""
	wants(t, do(t, examine(t.Context(), a, options{role: "registry"}), checkSettings), Fault, "HOLDFAST_DATABASE_URL", "needs it")
	t.Setenv("HOLDFAST_DATABASE_URL", "sqlite:"+filepath.Join(t.TempDir(), "registry.db"))
	if s := examine(t.Context(), a, options{}); s.role != roleRegistry || s.address != "http://127.0.0.1:8080" {
		t.Errorf("a Registry without an address is looked for as %s at %q", s.role, s.address)
	}
	t.Setenv("HOLDFAST_DATABASE_URL", "")
	t.Setenv("HOLDFAST_EZID_URL", "https://user:password@ezid.example.org")
	wants(t, do(t, examine(t.Context(), a, options{role: "download"}), checkSettings), Fault, "HOLDFAST_REDIS_URL", "needs it")
	s := examine(t.Context(), a, options{role: "download"})
	s.faults, s.config.Unknown = nil, []config.Unknown{{Name: "HOLDFAST_OF_ANOTHER_VERSION"}}
	wants(t, do(t, s, checkSettings), Warning, "HOLDFAST_OF_ANOTHER_VERSION: unknown to this version")
	wants(t, do(t, s, checkSettings), Warning, "download does not use", "HOLDFAST_EZID_URL")
}

// A service that is failing, of another version, or an hour late.
func TestService(t *testing.T) {
	health, date := `{"status":"ok","version":"dev"}`, time.Now
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", date().UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, health)
	}))
	defer web.Close()
	s := &site{address: web.URL, version: "dev"}
	s.config.MailURL = web.URL
	wants(t, do(t, s, checkService), OK, "version dev")
	wants(t, do(t, s, checkClock), OK, "it agrees")
	wants(t, do(t, s, checkPages), OK, "answers at the address")
	health = `{"status":"ok","version":"1.0.0"}`
	wants(t, do(t, s, checkService), Warning, "1.0.0")
	health = `{"status":"failing","version":"dev","checks":{"database":"no answer","queue":"ok"}}`
	wants(t, do(t, s, checkService), Fault, "failing")
	wants(t, do(t, s, checkService)[:1], Warning, "database: no answer")
	date = func() time.Time { return time.Now().Add(-time.Hour) }
	wants(t, do(t, s, checkClock), Fault, "differ by 59m")
	web.Close()
	wants(t, do(t, s, checkService), Fault, "refused")
	wants(t, do(t, s, checkPages), Fault, "links in mails lead there")
}

// The address of the pages leads to another installation, through a redirect, to another page, and
// by TLS with a certificate of nobody.
func TestPages(t *testing.T) {
	answers := func(registry string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"ok","version":"dev","registry":"`+registry+`"}`)
		}
	}
	serve := func(h http.Handler) string {
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		return web.URL
	}
	s := &site{address: serve(answers("urn:uuid:one"))}
	pages := func(address string) []Finding {
		t.Helper()
		s.config.MailURL = address
		return do(t, s, checkPages)
	}
	wants(t, pages(s.address), OK, "answers at the address")
	wants(t, pages(serve(answers("urn:uuid:two"))), Fault, "another installation", "urn:uuid:two", "urn:uuid:one")
	wants(t, pages(serve(answers(""))), OK, "answers at the address") // of an older version
	wants(t, pages(serve(http.RedirectHandler(s.address+"/healthz", http.StatusMovedPermanently))), Warning, "leads on to "+s.address)
	wants(t, pages(serve(http.RedirectHandler("https://login.example.org/?next=x", http.StatusFound))), Fault, "another page: https://login.example.org/")
	var round string
	round = serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, round+"/healthz", http.StatusFound)
	}))
	wants(t, pages(round), Fault, "leads on to "+round)
	wants(t, pages(serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))), Fault, "something else than Holdfast")
	secure := httptest.NewTLSServer(answers("urn:uuid:one"))
	defer secure.Close()
	secure.Config.ErrorLog = slog.NewLogLogger(silent.Handler(), slog.LevelError)
	wants(t, pages(secure.URL), Fault, "certificate signed by unknown authority")
}

func TestClock(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for theirs, want := range map[time.Duration]Result{0: OK, 4 * time.Second: OK, 30 * time.Second: Warning, -30 * time.Second: Warning, time.Hour: Fault, -time.Hour: Fault} {
		var r report
		compareClock(&r, at, at.Add(theirs), at.Add(10*time.Millisecond), 0)
		wants(t, r.list, want)
	}
}

func TestWorkers(t *testing.T) {
	worker := func(id, version string, stage registry.Stage) registry.WorkerInfo {
		return registry.WorkerInfo{ID: id, Version: version, Capacity: map[registry.Stage]int{stage: 1}}
	}
	all := []registry.WorkerInfo{worker("a", "2.0.0", registry.Download), worker("b", "2.0.0", registry.Process)}
	waiting := registry.QueueStatus{Stages: []registry.StageQueue{{Stage: registry.Download, Ready: 2, Capacity: 1}, {Stage: registry.Record}}}
	judge := func() []Finding {
		var r report
		judgeWorkers(&r, "2.0.0", all, waiting)
		return r.list
	}
	wants(t, judge(), OK, "2 workers live")
	waiting.Stages[1].Ready = 3
	wants(t, judge(), Fault, "3 items are ready at record")
	waiting.Stages[1].Ready = 0
	all[0].Clock, all[0].SeenAt = time.Unix(1000, 0), time.Unix(1020, 0)
	wants(t, judge(), OK, "2 workers live")
	all[0].SeenAt = time.Unix(1600, 0)
	wants(t, judge(), Warning, "clocks differ", "worker a by 10m0s")
	all[0].SeenAt = all[0].Clock
	all[1].Version = "1.9.0"
	wants(t, judge(), Warning, "1.9.0: worker b (process)", "2.0.0: Registry, worker a (download)")
}

func TestDatabase_SQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s := &site{role: roleRegistry}
	s.config.DatabaseURL = "sqlite:" + path
	wants(t, do(t, s, checkDatabase), Fault, "no such file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, do(t, s, checkDatabase), Fault, "no tables of Holdfast yet")
	if _, _, err := sqldb.Migrate(t.Context(), s.config.DatabaseURL); err != nil {
		t.Fatal(err)
	}
	wants(t, do(t, s, checkDatabase), OK, "sqlite 3.", "schema version")
	change(t, "sqlite", path, "UPDATE setting SET value = '100000' WHERE name = 'schema-serves'", "INSERT INTO goose_db_version (version_id, is_applied) VALUES (100000, 1)")
	wants(t, do(t, s, checkDatabase), Fault, "run a newer holdfast")
}

func change(t *testing.T, driver, address string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestDatabase_PostgreSQL(t *testing.T) {
	address := postgrestest.Shared(t).Schema(t) // its durability is off
	s := &site{role: roleRegistry}
	s.config.DatabaseURL = address
	wants(t, do(t, s, checkDatabase), Fault, "no tables of Holdfast yet")
	if _, _, err := sqldb.Migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	list := do(t, s, checkDatabase)
	wants(t, list, Fault, "fsync is off")
	wants(t, list, Fault, "synchronous_commit is off")
	if clock := list[len(list)-1]; clock.About != "its clock" || clock.Result != OK {
		t.Errorf("the clock: %+v", clock)
	}
	s.now = func() time.Time { return time.Now().Add(-time.Hour) }
	wants(t, do(t, s, checkDatabase), Fault, "its clock", "differ by")
	s.now = nil
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/absent"
	s.config.DatabaseURL = u.String()
	wants(t, do(t, s, checkDatabase), Fault, "absent")
}

func TestDatabase_Durable(t *testing.T) {
	var r report
	judgeDatabase(&r, sqldb.Examination{Settings: map[string]string{"fsync": "on", "synchronous_commit": "remote_apply", "full_page_writes": "on", "transaction_read_only": "off", "journal_mode": "wal"}})
	if len(r.list) > 0 {
		t.Errorf("found %+v in sound settings", r.list)
	}
	judgeDatabase(&r, sqldb.Examination{Settings: map[string]string{"full_page_writes": "off", "journal_mode": "delete"}})
	wants(t, r.list, Warning, "full_page_writes")
	judgeDatabase(&r, sqldb.Examination{Settings: map[string]string{"transaction_read_only": "on"}})
	wants(t, r.list, Fault, "standby")
}

func TestQueue(t *testing.T) {
	b, err := broker.New(broker.Options{Log: silent, AuthSecret: "sixteen-letters-or-more"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s := &site{role: roleRegistry}
	s.config.NSQDAddrs = []string{b.Addr()}
	wants(t, do(t, s, checkQueue), Fault, "requires a secret")
	s.config.NSQAuthSecret = "sixteen-letters-or-more"
	wants(t, do(t, s, checkQueue), OK, "--max-msg-timeout=15m")
	nodes := `{"producers":[{"broadcast_address":"127.0.0.1","tcp_port":` + b.Addr()[strings.LastIndex(b.Addr(), ":")+1:] + `}]}`
	known := nodes
	lookup := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if topic := r.URL.Query().Get("topic"); topic != "" {
			_, _ = io.WriteString(w, known)
			return
		}
		_, _ = io.WriteString(w, nodes)
	}))
	defer lookup.Close()
	s.config.NSQDAddrs, s.config.NSQLookupdAddrs = nil, []string{lookup.URL}
	wants(t, do(t, s, checkQueue), OK, "1 nsqd and all topics")
	known = `{"producers":[]}`
	wants(t, do(t, s, checkQueue), Warning, "ingest.download")
	nodes = known
	wants(t, do(t, s, checkQueue), Fault, "it knows no nsqd")
	lookup.Close()
	wants(t, do(t, s, checkQueue), Fault, "refused")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	s.config.NSQDAddrs = []string{b.Addr()}
	wants(t, do(t, s, checkQueue), Fault, "nsqd", "refused")
}

func TestRedis(t *testing.T) {
	s := &site{}
	s.config.RedisURL = redistest.Start(t, "--appendonly", "yes").URL()
	wants(t, do(t, s, checkRedis), OK, "appendonly yes")
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	s.config.RedisURL = server.URL()
	wants(t, do(t, s, checkRedis), Warning, "appendonly is no")
	wants(t, do(t, s, checkRedis), Warning, "maxmemory-policy is allkeys-lru")
	server.Kill()
	wants(t, do(t, s, checkRedis), Fault, "refused")
	for version, old := range map[string]bool{"6.0.16": true, "5.9": true, "6.2.0": false, "7.0.1": false, "10.0": false, "": false} {
		if isOld(version) != old {
			t.Errorf("isOld(%q) is %t", version, !old)
		}
	}
}

func TestStorage_Folder(t *testing.T) {
	folder := t.TempDir()
	s := &site{role: roleWorker, now: time.Now}
	s.config.StagingURL, s.config.StorageURL = "file://"+folder, "file://"+folder+"/objects"
	wants(t, do(t, s, checkStorages), Fault, "objects")
	if err := os.Mkdir(folder+"/objects", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range do(t, s, checkStaging) {
		if f.Result != OK && !strings.Contains(f.Found, "free") { // the test's volume may be full
			t.Errorf("staging: %+v", f)
		}
	}
	wants(t, do(t, s, checkStorages), Warning, "there is no storage root") // and no Registry to ask
}

// A storage root that is gone although the Registry knows objects in it.
func TestStorage_Unmounted(t *testing.T) {
	folder := t.TempDir()
	s := &site{role: roleRegistry, now: time.Now}
	s.config.DatabaseURL, s.config.StorageURL = "sqlite:"+folder+"/registry.db", "file://"+folder+"/objects"
	if err := os.Mkdir(folder+"/objects", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sqldb.Migrate(t.Context(), s.config.DatabaseURL); err != nil {
		t.Fatal(err)
	}
	root := func() []Finding {
		return slices.DeleteFunc(do(t, s, checkStorages), func(f Finding) bool { return f.Result == OK || strings.Contains(f.Found, "are free") })
	}
	if list := root(); len(list) > 0 {
		t.Errorf("a new storage: %+v", list)
	}
	change(t, "sqlite", folder+"/registry.db",
		"INSERT INTO object (id, minted_for, tenant, collection, owner, created_at, updated_at) VALUES ('ark:/99999/fk4x', '', 'default', 'default', '', 0, 0)",
		"INSERT INTO replica (object_id, version, storage, verified_at) VALUES ('ark:/99999/fk4x', 1, 'storage', 0)")
	wants(t, root(), Fault, "no storage root, although the Registry knows objects")

	// A new, empty root; another Registry's storage; and the right one.
	store, err := dir.Open(folder + "/objects")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	made, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(id string) {
		t.Helper()
		at, err := made.ObjectKey(id)
		if err != nil {
			t.Fatal(err)
		}
		inventory := `{"id":"` + id + `","type":"https://ocfl.io/1.1/spec/#inventory","digestAlgorithm":"sha512","head":"v1","contentDirectory":"content"}`
		for name, content := range map[string]string{"/0=ocfl_object_1.1": "ocfl_object_1.1\n", "/inventory.json": inventory} {
			if _, err := storage.Put(t.Context(), store, at+name, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wants(t, root(), Fault, "none of the objects that were looked for, such as ark:/99999/fk4x")
	put("ark:/99999/fk4stranger")
	wants(t, root(), Fault, "it is another one", "such as ark:/99999/fk4stranger", "such as ark:/99999/fk4x")
	put("ark:/99999/fk4x")
	if list := root(); len(list) > 0 {
		t.Errorf("the right storage: %+v", list)
	}
}

// What a killed doctor left is removed later; what another doctor is using is not.
func TestProbe_Leftovers(t *testing.T) {
	folder := t.TempDir()
	s, err := dir.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := storage.Put(t.Context(), s, probeFolder+"left", []byte("probe")); err != nil {
		t.Fatal(err)
	}
	for now, left := range map[time.Time]bool{time.Now(): true, time.Now().Add(2 * probeAge): false} {
		if left {
			if err := probe(t.Context(), s, now); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stat(t.Context(), probeFolder+"left"); err != nil {
				t.Errorf("the probe of another doctor is gone: %v", err)
			}
		}
	}
	if err := probe(t.Context(), s, time.Now().Add(2*probeAge)); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), "") {
		t.Errorf("left: %+v, %v", info, err)
	}
}

// broken is a store with faults.
type broken struct {
	storage.Store
	change func([]byte) []byte
	listed error
}

func (b broken) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := b.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return io.NopCloser(strings.NewReader(string(b.change(text)))), err
}

func (b broken) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	if b.listed != nil {
		return func(yield func(storage.Info, error) bool) { yield(storage.Info{}, b.listed) }
	}
	return b.Store.List(ctx, prefix)
}

func TestProbe_Faults(t *testing.T) {
	s, err := dir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	flip := broken{Store: s, change: func(b []byte) []byte { b[7] ^= 1; return b }}
	if err := probe(t.Context(), flip, time.Now()); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("a flipped bit: %v", err)
	}
	denied := errors.New("access denied")
	if err := probe(t.Context(), broken{Store: s, listed: denied}, time.Now()); !errors.Is(err, denied) {
		t.Errorf("a refused list: %v", err)
	}
	for info := range s.List(t.Context(), "") {
		t.Errorf("left: %+v", info)
	}
}

func TestStorage_S3(t *testing.T) {
	server := s3test.Start(t)
	s3test.Setenv(t)
	s := &site{role: roleWorker}
	s.config.StagingURL = server.Address("staging")
	for _, f := range do(t, s, checkStaging) {
		if f.Result == Fault {
			t.Errorf("found %+v", f)
		}
	}
	wants(t, do(t, s, checkClock), OK, "of S3 at", "it agrees")
	s.now = func() time.Time { return time.Now().Add(-time.Hour) }
	wants(t, do(t, s, checkClock), Fault, "of S3 at", "differ by 59m")
	s.now = time.Now
	s.config.StagingURL = strings.Replace(server.Address("staging"), s3test.Bucket, "absent", 1)
	wants(t, do(t, s, checkClock), OK, "of S3 at", "it agrees") // a refusal tells the time, too
	wants(t, do(t, s, checkStaging), Fault, "no such bucket")
}

func TestMail(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{Security: "starttls", User: "holdfast", Password: "correct"})
	s := &site{mailRoots: server.Roots()}
	s.config.SMTPURL, s.config.MailFrom = server.URL(), "holdfast@example.org"
	wants(t, do(t, s, checkMail), OK, "nothing was sent")
	if n, logins := len(server.Got()), server.Logins(); n != 0 || logins != 1 {
		t.Errorf("%d mails, %d logins", n, logins)
	}
	s.mailTo = "someone@example.org"
	wants(t, do(t, s, checkMail), OK, "someone@example.org")
	if got := server.Got(); len(got) != 1 || got[0].Subject != "Holdfast: test mail" {
		t.Errorf("sent %+v", got)
	}
	s.mailTo = "Some One <someone@example.org>"
	wants(t, do(t, s, checkMail), Fault, "not a mail address")
	s.mailTo = ""
	s.config.SMTPURL = strings.Replace(server.URL(), "correct", "wrong", 1)
	wants(t, do(t, s, checkMail), Fault, server.URL()[strings.LastIndex(server.URL(), "@")+1:len(server.URL())-len("?tls=starttls")])
	s.mailRoots = x509.NewCertPool()
	s.config.SMTPURL = server.URL()
	wants(t, do(t, s, checkMail), Fault, "certificate")
	s.config.SMTPURL, s.mailTo = "", "someone@example.org"
	wants(t, do(t, s, checkMail), Fault, "HOLDFAST_SMTP_URL is not set")
}

func TestClamd(t *testing.T) {
	s := &site{role: "scan"}
	s.config.ClamdAddr = clamdtest.Start(t).Addr
	wants(t, do(t, s, checkClamd), OK, "ClamAV")
	s.config.ClamdAddr = "127.0.0.1:1"
	wants(t, do(t, s, checkClamd), Fault, "127.0.0.1:1")
	now := time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)
	var old, young report
	judgeSignatures(&old, "ClamAV 1.4.6/27500/Sat Jan  3 08:25:40 2026", now)
	wants(t, old.list, Warning, "2026-01-03")
	judgeSignatures(&young, "ClamAV 1.4.6/27500/Mon Jan 19 08:25:40 2026", now)
	wants(t, young.list, OK, "27500")
}

func TestSiegfried(t *testing.T) {
	s := &site{role: "process"}
	s.config.SiegfriedURL = "http://127.0.0.1:1"
	wants(t, do(t, s, checkSiegfried), Fault, "127.0.0.1:1")
	s.config.SiegfriedURL = siegfriedtest.Start(t)
	wants(t, do(t, s, checkSiegfried), OK, "siegfried")
}

func TestEZID(t *testing.T) {
	server := ezidtest.New(t)
	s := &site{role: "process"}
	s.config.EZIDURL = server.URL()
	wants(t, do(t, s, checkEZID), OK, "accepts the account")
	s.config.EZIDURL = server.With(ezidtest.User, "wrong")
	list := do(t, s, checkEZID)
	wants(t, list, Fault, "denies access")
	if strings.Contains(list[0].Found, "wrong") {
		t.Errorf("prints the password: %+v", list)
	}
	if names := server.Names(); len(names) > 0 {
		t.Errorf("made names: %v", names)
	}
}

func TestCertificate(t *testing.T) {
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	cert := web.Certificate()
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
	s := &site{address: web.URL, trust: &tls.Config{MinVersion: tls.VersionTLS12}}
	s.config.TLSCert = file
	for at, want := range map[time.Time]Result{
		cert.NotAfter.AddDate(0, -2, 0): OK, cert.NotAfter.AddDate(0, 0, -5): Warning, cert.NotAfter.Add(time.Hour): Fault, cert.NotBefore.AddDate(0, 0, -1): Fault,
	} {
		s.now = func() time.Time { return at }
		list := do(t, s, checkCertificate)
		wants(t, list, want)
		if len(list) != 2 {
			t.Errorf("found %+v, want the certificate of the file and that of the service", list)
		}
	}
	s.config.TLSCert = filepath.Join(t.TempDir(), "absent.pem")
	wants(t, do(t, s, checkCertificate)[:1], Fault, "cannot be read")
}

func TestDisk(t *testing.T) {
	for free, want := range map[int64]Result{500 << 30: OK, 50 << 30: Warning, 5 << 30: Fault, 1 << 20: Fault} {
		r := &report{list: []Finding{{Result: OK}}}
		judgeRoom(r, storage.Space{Total: 1000 << 30, Used: 1000<<30 - free})
		wants(t, r.list, want)
	}
	s := &site{role: roleWorker}
	s.config.TempDir = filepath.Join(t.TempDir(), "absent")
	wants(t, do(t, s, checkDisk), Fault, "no such file")
	s.config.TempDir = t.TempDir()
	if list := do(t, s, checkDisk); len(list) == 0 {
		t.Error("the folder for temporary files was not looked at")
	}
}

func TestFiles(t *testing.T) {
	name := clitest.WriteFile(t, filepath.Join(t.TempDir(), "holdfast.env"), "HOLDFAST_TOKEN=x\n")
	s := &site{role: roleWorker}
	s.config.ConfigFile = name
	for mode, want := range map[os.FileMode]Result{0o600: OK, 0o644: Warning, 0o660: Warning} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		wants(t, do(t, s, checkFiles), want)
	}
}

func TestBackup(t *testing.T) {
	folder, place := filepath.Join(t.TempDir(), "data"), t.TempDir()
	upOn(t, folder)
	s := &site{role: roleUp, dir: folder, now: time.Now}
	wants(t, do(t, s, checkBackup), Skipped, "HOLDFAST_BACKUP_TO")
	s.config.BackupTo, s.config.BackupEvery = place, config.Duration(time.Hour)
	wants(t, do(t, s, checkBackup), Warning, "no backup of this Registry")
	source := node.BackupSource{Database: node.DatabaseIn(folder), Dir: folder}
	o, err := source.Options(place, backup.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Make(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	wants(t, do(t, s, checkBackup), OK, "the newest")
	s.now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	wants(t, do(t, s, checkBackup), Fault, "should not be older than")
	s.config.BackupTo = filepath.Join(place, "absent")
	wants(t, do(t, s, checkBackup), Fault, "no such file")
}

// A check that hangs does not keep the others from being reported.
func TestRunAll_Hangs(t *testing.T) {
	release := make(chan struct{})
	before := checks
	defer func() { checks = before }()
	checks = []check{
		{"hangs", func(context.Context, *site, *report) { <-release }},
		{"sound", func(_ context.Context, _ *site, r *report) { r.ok("fine") }},
	}
	list := (&site{}).runAll(t.Context(), time.Millisecond)
	close(release)
	if len(list) != 2 || list[0].Result != Fault || list[1].Found != "fine" || verdict(list) != exit.Temporary {
		t.Errorf("found %+v", list)
	}
}
