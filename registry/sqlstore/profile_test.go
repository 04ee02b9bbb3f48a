package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// TestProfileVersions: the database itself adds a version for each saved profile, so that a batch's
// version is always that of its profile.
func TestProfileVersions(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*testing.T) (address, driver, source string){
		"SQLite": func(t *testing.T) (string, string, string) {
			path := filepath.Join(t.TempDir(), "registry.db")
			return "sqlite:" + path, "sqlite", path
		},
		"PostgreSQL": func(t *testing.T) (string, string, string) {
			address := postgrestest.Shared(t).Schema(t)
			return address, "pgx", address
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, driver, source := at(t)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := sqldb.Migrate(t.Context(), address)
			must(err)
			execute(t, driver, source, `INSERT INTO collection (mnemonic, tenant, profile, created_at) VALUES ('old', 'default', '{"name":"Old","owner":"o"}', 1772366400000000)`)
			s := openURL(t, address, nil)
			is := func(mnemonic string, names ...string) []registry.ProfileVersion {
				t.Helper()
				all, err := s.ProfileVersions(t.Context(), mnemonic, 0, 10)
				must(err)
				if len(all) != len(names) {
					t.Fatalf("versions %+v, want %v", all, names)
				}
				for i, v := range all {
					if v.Version != len(all)-i || v.Profile.Name != names[i] {
						t.Errorf("version %d is %q, want %d, %q", v.Version, v.Profile.Name, len(all)-i, names[i])
					}
				}
				c, err := s.Collection(t.Context(), mnemonic)
				must(err)
				if c.Version != len(names) || c.Profile.Name != names[0] {
					t.Errorf("collection %+v, want version %d, %q", c, len(names), names[0])
				}
				return all
			}
			if first := is("old", "Old")[0]; first.Actor != "" {
				t.Errorf("version 1: %+v, want it by nobody", first)
			}
			// As a program writes it that knows nothing of versions.
			put := func(mnemonic, profile string) {
				t.Helper()
				execute(t, driver, source, `INSERT INTO collection (mnemonic, tenant, profile, created_at) VALUES ('`+mnemonic+`', 'default', '`+profile+`', 1772366400000000)
					ON CONFLICT (mnemonic) DO UPDATE SET profile = '`+profile+`'`)
			}
			put("old", `{"name":"Changed","owner":"o"}`)
			put("old", `{"name":"Changed","owner":"o"}`)
			changed := is("old", "Changed", "Old")[0]
			if since := time.Since(changed.CreatedAt); changed.Actor != "" || since < -time.Minute || since > time.Hour {
				t.Errorf("version 2: %+v, want it by nobody, now", changed)
			}
			put("new", `{"name":"New","owner":"o"}`)
			is("new", "New")
			must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "old", Profile: registry.Profile{Name: "Ours", Owner: "o"}, Version: 2}, "admin"))
			if ours := is("old", "Ours", "Changed", "Old")[0]; ours.Actor != "admin" {
				t.Errorf("version 3: %+v, want it by admin", ours)
			}
			must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "ours", Profile: registry.Profile{Name: "Ours", Owner: "o"}}, "admin"))
			for mnemonic, want := range map[string]string{"old": "sha512", "new": "sha512", "ours": "sha256"} {
				if c, err := s.Collection(t.Context(), mnemonic); err != nil || c.Profile.Digests() != want {
					t.Errorf("%s: inventories by %s, %v; want %s", mnemonic, c.Profile.Digests(), err, want)
				}
			}
		})
	}
}
