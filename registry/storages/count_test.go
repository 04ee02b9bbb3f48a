package storages_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// TestCount_Restart: who asks a process that has just begun gets the kept count of the one before, and waits
// for no other. The process counts by itself when that is too old.
func TestCount_Restart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	url := "sqlite:" + filepath.Join(t.TempDir(), "registry.db")
	now := time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)
	open := func() *sqlstore.Store {
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, Now: func() time.Time { return now }})
		must(err)
		s.SetTakesLong(0) // as if there were many objects
		return s
	}
	add := func(s *sqlstore.Store, ark string) {
		o := registry.Object{ID: ark, Collection: "test", Owner: "ark:/99999/owner", Head: 1, Place: registry.Place{Adopted: 1}}
		_, err := s.NameAdopted(ctx, o, "storage")
		must(err)
		v := registry.ObjectVersion{Version: 1, CreatedAt: now, RecordedAt: now, Replicas: []registry.Replica{{Storage: "storage", VerifiedAt: now}}}
		_, err = s.Enter(ctx, registry.Entered{ObjectID: ark, Versions: []registry.EnteredVersion{{ObjectVersion: v}}})
		must(err)
		o.Versions = []registry.ObjectVersion{v}
		must(s.RecordAdopted(ctx, registry.AdoptedObject{Object: o}))
	}
	want := func(s *sqlstore.Store, what string, objects int64, at time.Time) {
		t.Helper()
		report, err := s.Storages(ctx, nil)
		must(err)
		if len(report.Collections) != 1 || report.Collections[0].Objects != objects || !report.At.Equal(at) {
			t.Errorf("%s: %+v, want %d objects at %v", what, report, objects, at)
		}
	}
	align := func(s *sqlstore.Store) {
		_, err := s.Align(ctx, registry.AlignRequest{Outstanding: 1, Keep: time.Hour})
		must(err)
	}

	first := open()
	add(first, "ark:/99999/fk4a")
	align(first)
	counted := now
	add(first, "ark:/99999/fk4b")
	must(first.Close())
	second := open()
	defer second.Close()
	now = now.Add(time.Hour)
	want(second, "just begun", 1, counted)
	align(second)
	want(second, "after a moment", 2, now)
	third := open() // beside it
	defer third.Close()
	align(third)
	want(third, "beside it", 2, now)
}
