package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// TestChainEnds: chain ends are listed by page, each once, and their signing key stays listed.
func TestChainEnds(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(testing.TB) string{"SQLite": sqlstoretest.SQLite, "PostgreSQL": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: at, ReceiptKey: sqlstoretest.ReceiptKey(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			driver, dsn := "pgx", at
			if file, ok := strings.CutPrefix(at, "sqlite:"); ok {
				driver, dsn = "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)"
			}
			var want []receipt.ChainEnd
			for i := range 6 {
				id := fmt.Sprintf("ark:/99999/fk%d", i)
				execute(t, driver, dsn, fmt.Sprintf(`INSERT INTO object (id, minted_for, tenant, collection, owner, created_at, updated_at) VALUES ('%s', 'i', 't', 'c', 'o', 1, 1)`, id))
				for seq := range i + 1 { // the first has an event from before there were chains
					execute(t, driver, dsn, fmt.Sprintf(`INSERT INTO premis_event (id, object_id, version, item_id, type, at, agent, outcome, detail, seq, hash)
						VALUES ('%d-%d', '%s', 1, '', 't', 1, 'a', 'o', 'd', %d, 'h%d')`, i, seq, id, seq, seq))
				}
				if i > 0 {
					want = append(want, receipt.ChainEnd{Object: id, Seq: int64(i), Hash: fmt.Sprint("h", i)})
				}
			}
			// How far it lies here: a receipt of format 2 may not; one of format 3 does, if its step has ended and
			// a version here has it; and what was noted of segments.
			for _, row := range []struct {
				object, version int
				format          string
				last            int
				item, storage   string
			}{{1, 1, "2", 1, "", "here"}, {2, 1, "3", 1, "", "here"}, {2, 2, "3", 2, "at record", "here"}, {3, 1, "2", 1, "", "here"}, {3, 2, "3", 2, "at notify", "here"}, {3, 3, "3", 3, "", "there"}} {
				id := fmt.Sprintf("ark:/99999/fk%d", row.object)
				execute(t, driver, dsn, fmt.Sprintf(`INSERT INTO receipt (object_id, version, key_id, head, signature, first_event, last_event, last_hash)
					VALUES ('%s', %d, '', '{"holdfast_receipt":%s,', '', 1, %d, '')`, id, row.version, row.format, row.last))
				execute(t, driver, dsn, fmt.Sprintf(`INSERT INTO object_version (object_id, version, item_id, status, plan, created_at) VALUES ('%s', %d, '%s', 'recorded', '', 1)`, id, row.version, row.item))
				execute(t, driver, dsn, fmt.Sprintf(`INSERT INTO replica (object_id, version, storage, verified_at) VALUES ('%s', %d, '%s', 1)`, id, row.version, row.storage))
			}
			for i, stage := range []registry.Stage{registry.Record, registry.Notify} {
				execute(t, driver, dsn, fmt.Sprintf(`INSERT INTO work_item (id, seq, tenant, collection, action, stage, status, priority, rank, name, run_at, created_at, updated_at)
					VALUES ('at %s', %d, 't', 'c', 'ingest', '%[1]s', 'pending', 0, 0, 'n', 1, 1, 1)`, stage, i))
			}
			execute(t, driver, dsn, `INSERT INTO evidence (object_id, storage, seq, segments) VALUES ('ark:/99999/fk3', 'there', 3, 1), ('ark:/99999/fk4', 'here', 3, 1), ('ark:/99999/fk5', 'here', 3, 1)`)
			execute(t, driver, dsn, `UPDATE object SET gone = 'deleted' WHERE id = 'ark:/99999/fk5'`)
			want[1].Kept, want[2].Kept, want[3].Kept = 1, 2, 3
			var got []receipt.ChainEnd
			for after := ""; ; {
				ends, err := s.ChainEnds(t.Context(), "here", after, 2)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, ends...); len(ends) < 2 {
					break
				}
				after = ends[1].Object
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
			acceptOlder(t, s)
			text, err := s.SignCheckpoint(t.Context(), receipt.Checkpoint{At: time.Now(), Storage: "s"})
			keys, err2 := s.ReceiptKeys(t.Context())
			if err != nil || err2 != nil || len(keys) != 1 || !strings.Contains(string(text), keys[0].ID) {
				t.Errorf("signed %s, %v; keys %v, %v", text, err, keys, err2)
			}
			lost := []registry.LostEvents{{ObjectID: "ark:/99999/fk3", After: 1, To: 2, Hash: "a"}, {ObjectID: "ark:/99999/fk3", After: 3, To: 9, Hash: "b"}}
			for range 2 { // each later checkpoint repeats them
				if err := s.NoteLost(t.Context(), append(lost, registry.LostEvents{ObjectID: "ark:/99999/fk4", To: 2, Hash: "c"})); err != nil {
					t.Fatal(err)
				}
			}
			now, err := s.EvidencePlaces(t.Context(), "ark:/99999/fk3")
			if diff := cmp.Diff(registry.EvidencePlaces{Last: 3, Places: now.Places, Lost: lost, Keys: keys}, now); diff != "" || err != nil {
				t.Errorf("events whose loss was accepted: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// acceptOlder sees that two people have to agree about the same checkpoints, and that what they
// agreed to stands.
func acceptOlder(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	ctx := t.Context()
	if err := s.AddToken(ctx, registry.Token{ID: "made", Hash: "made", Name: "ann's second", Role: registry.RoleAdmin, CreatedBy: "ann"}); err != nil {
		t.Fatal(err)
	}
	both, other := []string{"s a", "s b"}, []string{"s c"}
	for i, step := range []struct {
		of      []string
		reason  string
		approve bool
		actor   string
		want    error
		by, and string // who asked, and who approved
		// shows: the approver has not seen it; replaces: whose asking goes.
		shows    bool
		replaces string
	}{
		{of: both, approve: true, actor: "ben", want: registry.ErrNoAcceptance},
		{of: both, reason: " ", actor: "ann", want: registry.ErrInvalid},
		{of: both, reason: "restored", actor: "ann", by: "ann"},
		{of: both, reason: "restored", actor: "ann", by: "ann"},
		{of: both, approve: true, actor: "ann", want: registry.ErrSamePerson},
		{of: both, approve: true, actor: "ann's second", want: registry.ErrSamePerson},
		{of: other, approve: true, actor: "ben", want: registry.ErrNoAcceptance},
		{of: nil, approve: true, actor: "ben", want: registry.ErrNoAcceptance},
		{of: both, reason: "another reason", actor: "cat", by: "cat", replaces: "ann"}, // who asked before has not agreed to this
		{of: both[1:], approve: true, actor: "ann", by: "cat", and: "ann", shows: true, replaces: "ann"},
		{of: both[:1], approve: true, actor: "cat", by: "cat", and: "ann", replaces: "ann"}, // the repeat after a kill, by whomever
		{of: both, reason: "once more", actor: "ben", by: "cat", and: "ann", replaces: "ann"},
		{of: other, reason: "the next backup", actor: "ben", by: "ben"},
		{of: both, approve: true, actor: "ann", want: registry.ErrNoAcceptance},
	} {
		a, err := s.AcceptOlder(ctx, registry.Acceptance{Of: step.of, Reason: step.reason}, step.approve, "", step.actor)
		if step.shows {
			if a.ApprovedBy != "" {
				t.Errorf("step %d: approved unseen: %+v", i, a)
			}
			a, err = s.AcceptOlder(ctx, registry.Acceptance{Of: step.of}, true, a.Request(), step.actor)
		}
		if a.Replaces != step.replaces {
			t.Errorf("step %d: in place of %q, want %q", i, a.Replaces, step.replaces)
		}
		if !errors.Is(err, step.want) || a.AskedBy != step.by || a.ApprovedBy != step.and {
			t.Errorf("step %d: %+v, %v; want %q and %q, %v", i, a, err, step.by, step.and, step.want)
		}
	}
}
