package sqlstore_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// TestR27_Credentials: a database of the version before, with what is in it, takes credentials once it is migrated, and is
// refused until then where it does not migrate by itself. Taken back to that version, it has everything else still.
func TestR27_Credentials(t *testing.T) {
	t.Parallel()
	const before = 5
	for name, address := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "registry.db") },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.Shared(t).Schema(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			kept := func(s *sqlstore.Store) {
				t.Helper()
				if c, err := s.Collection(t.Context(), "old"); err != nil || c.Profile.Name != "Old" {
					t.Errorf("collection %+v, %v", c, err)
				}
			}
			_, _, err := sqldb.Migrate(t.Context(), at)
			must(err)
			s := openURL(t, at, nil)
			must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "old", Profile: registry.Profile{Name: "Old"}}, "admin"))
			must(s.Close())
			must(sqldb.MigrateTo(t.Context(), at, before))
			if name == "PostgreSQL" {
				_, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: at})
				if old := new(sqldb.SchemaError); !errors.As(err, &old) || old.Have != before {
					t.Errorf("error %v, want one of schema %d", err, before)
				}
				_, _, err = sqldb.Migrate(t.Context(), at)
				must(err)
			}
			s = openURL(t, at, nil)
			kept(s)
			must(s.PutCredential(t.Context(), registry.Credential{
				Collection: "old", Origin: "https://h.test", Kind: registry.CredentialBearer, Sealed: "sealed", CreatedBy: "admin",
			}))
			if all, err := s.Credentials(t.Context(), "old"); err != nil || len(all) != 1 || all[0].Sealed != "sealed" {
				t.Errorf("credentials %+v, %v", all, err)
			}
			must(s.Close())
			must(sqldb.MigrateTo(t.Context(), at, before))
			_, _, err = sqldb.Migrate(t.Context(), at)
			must(err)
			kept(openURL(t, at, nil))
		})
	}
}
