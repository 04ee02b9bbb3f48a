package node_test

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/web/api/checkpoint"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReconcile_OlderThanCheckpoint: a Registry that lacks events which a signed checkpoint names, and no
// storage has, is not released, whatever is accepted.
func TestReconcile_OlderThanCheckpoint(t *testing.T) {
	t.Parallel()
	folder, place := t.TempDir(), t.TempDir()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLiteAt(t, filepath.Join(folder, "registry.db")), ReceiptKey: sqlstoretest.ReceiptKey(t)})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, s.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: registry.Profile{Name: "Maps", Owner: registrybench.Owner}}, "test"))
	preserve := func() {
		t.Helper()
		_, err := registrybench.Preserve(t.Context(), s, "maps", 1, 1)
		must(t, err)
	}
	database := "sqlite:" + filepath.Join(folder, "registry.db")
	keyless := filepath.Join(folder, "keyless.db")
	must(t, sqldb.Copy(t.Context(), database, keyless))
	preserve() // so that the backup has the key
	older := filepath.Join(folder, "older.db")
	must(t, sqldb.Copy(t.Context(), database, older))
	preserve()
	store, err := dir.Open(place)
	must(t, err)
	defer func() { must(t, store.Close()) }()
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	must(t, err)
	roots := ocfl.Roots{{Root: root, Name: "archive"}}
	must(t, (&checkpoint.Checkpointer{Registry: s, Objects: roots}).Make(t.Context()))

	reconcile := func(database, accepted string, keys ...receipt.PublicKey) node.Reconciled {
		t.Helper()
		out, err := node.Reconcile(t.Context(), node.Common{Log: slog.New(slog.DiscardHandler)}, node.ReconcileOptions{
			Stored: node.Stored{
				Database: "sqlite:" + database, Lease: time.Second, Keys: keys,
				Storages: []node.Storage{{Name: "archive", Address: (&url.URL{Scheme: "file", Path: place}).String()}},
			},
			Apply: true, Restored: true, Accepted: accepted,
		})
		must(t, err)
		return out
	}
	// A backup from before the first receipt does not know who signed the checkpoint.
	known := filepath.Join(folder, "known.db")
	must(t, sqldb.Copy(t.Context(), "sqlite:"+keyless, known))
	out := reconcile(known, "the disk died", sqlstoretest.ReceiptKey(t).Public())
	if len(out.Unverified) > 0 || !slices.Equal(out.Older, []string{"archive"}) || out.Released {
		t.Errorf("with the key it came to %+v", out)
	}
	for _, accepted := range []string{"", "the checkpoint is lost"} {
		out := reconcile(keyless, accepted)
		if len(out.Unverified) != 1 || !strings.Contains(out.Unverified[0], "in storage archive") || out.Released != (accepted != "") {
			t.Errorf("without the key, accepted %q, it came to %+v", accepted, out)
		}
	}
	out = reconcile(older, "the disk died")
	if !slices.Equal(out.Older, []string{"archive"}) || out.Released {
		t.Errorf("it came to %+v", out)
	}
}
