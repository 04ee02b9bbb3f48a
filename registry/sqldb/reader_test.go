package sqldb

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestReader_KeepsPreparedQueries: concurrent queries of more texts than are kept get their own
// answers. A query that cannot be prepared fails each time, and is not kept.
func TestReader_KeepsPreparedQueries(t *testing.T) {
	d, err := Open(t.Context(), Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Read.Close(); err != nil {
			t.Error(err)
		}
		if err := d.db.Close(); err != nil {
			t.Error(err)
		}
	})
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for n := range mostPrepared + 50 {
				var got int
				query := fmt.Sprintf(`SELECT $1 + %d`, n)
				if err := d.Read.QueryRowContext(t.Context(), query, caller).Scan(&got); err != nil || got != caller+n {
					t.Errorf("%s with %d: %d, %v", query, caller, got, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(d.Read.prepared.statements); n != mostPrepared {
		t.Errorf("%d statements are kept, not %d", n, mostPrepared)
	}

	d.Read.prepared = newPrepared()
	for range 2 {
		var got int
		err := d.Read.QueryRowContext(t.Context(), `SELECT none FROM nowhere`).Scan(&got)
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("a broken query gave %v", err)
		}
		err = Each(d.Read.Ask(t.Context(), `SELECT none FROM nowhere`), "read", func(Scanner) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("a broken query gave %v", err)
		}
	}
	if n := len(d.Read.prepared.statements); n != 0 {
		t.Errorf("%d broken statements are kept", n)
	}
}
