package sqlstore_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// TestTitlesMigrate indexes the titles of items that were there before, and of those of programs that
// do not write them.
func TestTitlesMigrate(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			address := database(t)
			s := openURL(t, address, nil)
			if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, title := range []string{"Psalter \"of\" 1150", "Other psalter", ""} {
				r, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Name: "title.zip", Spec: registry.Spec{Title: title, URL: "https://h.test/" + title}})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, r.BatchID)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, version := range []int64{24, 1 << 30} {
				if err := sqldb.MigrateTo(t.Context(), address, version); err != nil {
					t.Fatal(err)
				}
			}
			s = openURL(t, address, nil)
			for range 2 {
				q, err := query.Parse("title:psalter")
				if err != nil {
					t.Fatal(err)
				}
				page, err := s.Items(t.Context(), registry.ItemQuery{Match: q})
				if err != nil {
					t.Fatal(err)
				}
				var found []string
				for _, it := range page.Rows {
					found = append(found, it.ID)
				}
				if want := []string{ids[1], ids[0]}; !slices.Equal(found, want) {
					t.Errorf("found %v, want %v", found, want)
				}
				registrytest.CheckInvariants(t, s)
				spec := string(page.Rows[0].Spec) // as a program of the version before writes the item
				for _, statement := range [][]any{{`DELETE FROM work_detail WHERE item_id = $1`, ids[1]}, {`UPDATE work_item SET title = '' WHERE id = $1`, ids[1]}, {`INSERT INTO work_detail (item_id, spec) VALUES ($1, $2)`, ids[1], spec}} {
					if err := s.Exec(t.Context(), statement[0].(string), statement[1:]...); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestR27_HistoryMigrates takes a Registry with data to the schema of the first release and back: its
// events keep their ids and numbers, and the next ones follow them.
func TestR27_HistoryMigrates(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			address := database(t)
			first := openURL(t, address, nil)
			if err := errors.Join(first.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"), first.Close()); err != nil {
				t.Fatal(err)
			}
			submit := func(times int) (feed, audit []registry.Event) {
				s := openURL(t, address, nil)
				for range times {
					if _, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Actor: "somebody"}); err != nil {
						t.Fatal(err)
					}
				}
				feed, err := s.Feed(t.Context(), registry.FeedQuery{Limit: 100})
				if err != nil {
					t.Fatal(err)
				}
				page, err := s.Audit(t.Context(), registry.AuditQuery{})
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range feed {
					if of, err := s.Events(t.Context(), e.ItemID, e.Seq-1, 1); err != nil || len(of) != 1 || !reflect.DeepEqual(of[0], e) {
						t.Errorf("event %d of item %s is %+v, %v", e.Seq, e.ItemID, of, err)
					}
				}
				registrytest.CheckInvariants(t, s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return feed, page.Rows
			}
			feed, audit := submit(3)
			for _, version := range []int64{1, 1 << 30} {
				if err := sqldb.MigrateTo(t.Context(), address, version); err != nil {
					t.Fatal(err)
				}
			}
			again, audited := submit(0)
			if len(feed) == 0 || len(audit) == 0 || !reflect.DeepEqual(again, feed) || !reflect.DeepEqual(audited, audit) {
				t.Errorf("%+v\n%+v\nbecame\n%+v\n%+v", feed, audit, again, audited)
			}
			more, _ := submit(1)
			for i, e := range more {
				if want := int64(i + 1); e.Seq != want || i < len(feed) && !reflect.DeepEqual(e, feed[i]) {
					t.Errorf("event %d is %+v", want, e)
				}
			}
			if len(more) <= len(feed) {
				t.Errorf("%d events, want more than %d", len(more), len(feed))
			}
		})
	}
}
