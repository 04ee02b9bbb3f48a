package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// TestR27_StoredFiles: what was recorded before stored files had rows of their own gets those rows by the migration, as it
// would have got them when it was recorded, and is checked in its turn.
func TestR27_StoredFiles(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			address := database(t)
			clock := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
			now := func() time.Time { return clock }
			s := openURL(t, address, now)
			const ark = "ark:/99999/fk4old"
			lease := recording(t, s, ark)
			content := func(path, contentPath string, size int64) registry.File {
				return registry.File{
					Path: path, ContentPath: contentPath, SizeBytes: size, MIMEType: "text/plain",
					Digests: map[string]string{"sha512": fmt.Sprintf("%0128x", size)},
				}
			}
			recordVersion(t, s, lease, ark, 1, 3, 5, content("producer/a", "v1/content/producer/a", 1), content("producer/b", "v1/content/producer/b", 2), content("producer/c", "v1/content/producer/b", 2))
			clock = clock.Add(24 * time.Hour)
			recordVersion(t, s, lease, ark, 2, 3, 6, content("producer/a", "v2/content/producer/a", 3), content("producer/d", "v1/content/producer/a", 1), registry.File{Path: "producer/b", Deleted: true})
			rows := func(s *sqlstore.Store) []string {
				t.Helper()
				rows, err := s.StoredFiles(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return rows
			}
			want := rows(s)
			if len(want) != 5 { // three contents and two inventories
				t.Fatalf("rows %q", want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			const before = 14
			if err := sqldb.MigrateTo(t.Context(), address, before); err != nil {
				t.Fatal(err)
			}
			if from, _, err := sqldb.Migrate(t.Context(), address); err != nil || from != before {
				t.Fatalf("migrated from %d: %v", from, err)
			}
			s = openURL(t, address, now)
			if diff := cmp.Diff(want, rows(s)); diff != "" {
				t.Errorf("rows differ from those of a new database (-want +got):\n%s", diff)
			}
			every := 10 * 24 * time.Hour
			clock = clock.Add(every - time.Hour)
			for _, want := range []int{3, 2} { // what came with the first version is older by a day
				done, err := s.Recheck(t.Context(), registry.RecheckRequest{Every: every, Outstanding: 10, Keep: time.Hour})
				if err != nil || done.Queued != want {
					t.Errorf("queued %+v, %v, want %d", done, err, want)
				}
				clock = clock.Add(24 * time.Hour)
			}
		})
	}
}

// recording is an item that has an object for itself.
func recording(t *testing.T, s *sqlstore.Store, ark string) registry.Lease {
	t.Helper()
	ctx := t.Context()
	if err := s.PutCollection(ctx, registry.Collection{Mnemonic: "c", Profile: registry.Profile{Owner: "o"}}, "a"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Submit(ctx, registry.Submission{Collection: "c", Spec: registry.Spec{URL: "http://h/a", Type: registry.FileType}, Actor: "a"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(ctx, registry.ClaimRequest{Stage: registry.Expand, Worker: "w", RequestID: "r", Lease: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Identify(ctx, c.Lease, registry.IdentifyRequest{Owner: "o", LocalIDs: []string{"l"}, Proposed: ark}); err != nil {
		t.Fatal(err)
	}
	return c.Lease
}

// recordVersion records a version as a worker does, whose rows are of state files and bytes.
func recordVersion(t *testing.T, s *sqlstore.Store, l registry.Lease, ark string, version int, files, size int64, rows ...registry.File) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.Intend(ctx, l, registry.Intent{ObjectID: ark, Version: version, Plan: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		rows[i].Version = version
	}
	if err := s.RecordFiles(ctx, l, ark, version, rows); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordVersion(ctx, l, registry.VersionRecord{
		ObjectID: ark, Version: version, Collection: "c", Owner: "o", Files: files, SizeBytes: size, CreatedAt: time.Now(),
		Inventory: "sha512:ab", Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}},
	}); err != nil {
		t.Fatal(err)
	}
}
