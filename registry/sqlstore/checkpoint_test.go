package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// The ends of chains are listed a page at a time, each once, and what is signed names a key that is listed for ever.
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
			for i := range 5 {
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
			var got []receipt.ChainEnd
			for after := ""; ; {
				ends, err := s.ChainEnds(t.Context(), after, 2)
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
			text, err := s.SignCheckpoint(t.Context(), receipt.Checkpoint{At: time.Now(), Storage: "s"})
			keys, err2 := s.ReceiptKeys(t.Context())
			if err != nil || err2 != nil || len(keys) != 1 || !strings.Contains(string(text), keys[0].ID) {
				t.Errorf("signed %s, %v; keys %v, %v", text, err, keys, err2)
			}
		})
	}
}
