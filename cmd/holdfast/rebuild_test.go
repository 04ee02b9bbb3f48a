package main

import (
	"net/url"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/web/api/checkpoint"
)

// TestRebuild_ExitCode: the exit code and the last line say that something could not be read, and that
// a signed checkpoint is contradicted.
func TestRebuild_ExitCode(t *testing.T) {
	clitest.NoEnvironment(t)
	folder, place := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := dir.Open(place)
	must(err)
	defer func() { must(store.Close()) }()
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	must(err)
	at := "archive=" + (&url.URL{Scheme: "file", Path: place}).String()
	rebuild := func(database string, more ...string) clitest.Result {
		t.Helper()
		return holdfast(t, append([]string{"rebuild", "--database", "sqlite:" + filepath.Join(folder, database), "--storage", at}, more...)...)
	}
	rebuild("empty.db").Wants(t, exit.OK)

	_, err = storage.Put(t.Context(), store, "extensions/holdfast-tombstones/00.json", []byte("{}"))
	must(err)
	rebuild("unreadable.db").Wants(t, exit.Partly).Says(t, "NOT READABLE: 1 object")

	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLiteAt(t, filepath.Join(folder, "registry.db")), ReceiptKey: sqlstoretest.ReceiptKey(t)})
	must(err)
	defer func() { must(s.Close()) }()
	must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: registry.Profile{Name: "Maps", Owner: registrybench.Owner}}, "test"))
	_, err = registrybench.Preserve(t.Context(), s, "maps", 1, 1) // of which the storage has nothing
	must(err)
	must((&checkpoint.Checkpointer{Registry: s, Objects: ocfl.Roots{{Root: root, Name: "archive"}}}).Make(t.Context()))
	for database, more := range map[string][]string{"dry.db": {"--dry-run"}, "json.db": {"--json"}, "contradicted.db": nil} {
		rebuild(database, more...).Wants(t, exit.Failed).Says(t, "NOT READABLE: 1 object", "CONTRADICTED: ", "for 1 object ")
	}
}
