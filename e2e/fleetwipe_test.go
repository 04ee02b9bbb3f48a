package e2e

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestRoles_WipedStores wipes Redis, kills PostgreSQL and stops Redis for a while, each in the
// middle of a batch. That costs time only (I1).
func TestRoles_WipedStores(t *testing.T) {
	t.Parallel()
	s := serveSlowly(t)
	f := newFleet(t, fleetSpec{postgres: true, workers: few, env: []string{fourSlots}})
	s.inTurns(f.until, func() { f.run("submit", s.server+"/batch.checkm") },
		f.wipeRedis,
		func() { f.postgres.Kill(); f.postgres.Restart(t) },
		func() {
			f.cache.Kill()
			time.Sleep(time.Second) // in which steps find it away
			f.cache.Restart()
		},
	)
	f.finishUncharged("wiped stores")
	f.stopAll()
	f.checkInvariants()
}

// wipeRedis makes Redis forget everything.
func (f *fleet) wipeRedis() {
	f.t.Helper()
	options, err := redis.ParseURL(f.cache.URL())
	if err != nil {
		f.t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := client.FlushAll(f.t.Context()).Err(); err != nil {
		f.t.Fatal(err)
	}
}
