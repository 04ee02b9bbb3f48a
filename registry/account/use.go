package account

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// useEvery is the shortest interval at which a token's use is written, so that requests cost no
// writes.
const useEvery = time.Hour

// uses are the uses of tokens that are to be written: their last time by the token's id.
type uses struct {
	mu sync.Mutex
	at map[string]int64
}

// note notes a use.
func (u *uses) note(id string, at int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil {
		u.at = map[string]int64{}
	}
	u.at[id] = max(u.at[id], at)
}

// take returns what is to be written, and forgets it.
func (u *uses) take() map[string]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.at
	u.at = nil
	return taken
}

// used notes the use of a token unless one of the last hour is written already.
func (s *Accounts) used(tok registry.Token, now time.Time) {
	if tok.UsedAt == nil || now.Sub(*tok.UsedAt) >= useEvery {
		s.uses.note(tok.ID, sqldb.Micros(now))
	}
}

// NoteTokenUses implements registry.TokenUseNoting.
func (s *Accounts) NoteTokenUses(ctx context.Context) error {
	taken := s.uses.take()
	ids := make([]string, 0, len(taken))
	for id := range taken {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for some := range slices.Chunk(ids, sqldb.GroupWrites) {
		err := s.write(ctx, func(t *tx) error {
			for _, id := range some {
				err := t.Do(`UPDATE token SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at <= $3)`, id, taken[id], taken[id]-useEvery.Microseconds())
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			for id, at := range taken {
				s.uses.note(id, at) // those that are written already are not written again
			}
			return fmt.Errorf("note the use of tokens: %w", err)
		}
	}
	return nil
}
