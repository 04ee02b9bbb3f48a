package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Seeding says how many items a database is to be filled with, for measuring. The same seed makes the same items.
type Seeding struct {
	Items       int
	Collections int
	Jobs        int // of a batch
	Events      bool
	Seed        uint64
	// Told is called now and then with how many items there are; nil is none.
	Told func(items int)
}

// Seed fills the database with items as years of work leave them: 85 in 100 are completed, 8 failed with notes of many
// kinds, the others cancelled, waiting for their turn, for a time or for other items. It writes past the state machine
// and the feed and is for databases that are measured and thrown away; it may be called while nothing else writes.
func (s *Store) Seed(ctx context.Context, o Seeding) error {
	o.Collections, o.Jobs = max(o.Collections, 1), max(o.Jobs, 1)
	g := &seeder{Seeding: o, rand: rand.New(rand.NewPCG(o.Seed, 1))}
	if err := s.seedCollections(ctx, g); err != nil {
		return err
	}
	if s.dialect.name() == "sqlite" {
		return s.withoutIndexes(ctx, func() error { return s.seedItems(ctx, g) })
	}
	return s.seedItems(ctx, g)
}

func (s *Store) seedItems(ctx context.Context, g *seeder) error {
	if err := s.read.QueryRowContext(ctx, `SELECT COALESCE(MAX(seq), 0) FROM work_item`).Scan(&g.seq); err != nil {
		return fmt.Errorf("seed items: %w", err)
	}
	for made := 0; made < g.Items; {
		n := min(5000, g.Items-made)
		before := *g
		err := s.write(ctx, func(t *tx) error {
			*g = before // a write may be run again
			g.rand = rand.New(rand.NewPCG(g.Seed+1, uint64(made)))
			for range n {
				if err := g.item(t); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("seed items: %w", err)
		}
		if made += n; g.Told != nil {
			g.Told(made)
		}
	}
	return nil
}

// withoutIndexes fills the items of an SQLite database while they have neither indexes nor triggers: it is several times
// as fast to make those afterwards. A database in which that was cut short is of no use.
func (s *Store) withoutIndexes(ctx context.Context, fill func() error) error {
	var again []string
	err := s.write(ctx, func(t *tx) error {
		again = nil
		if err := t.do(`PRAGMA cache_size = -262144`); err != nil {
			return err
		}
		drops, err := t.strings(`SELECT 'DROP ' || type || ' ' || name FROM sqlite_master
			WHERE tbl_name = 'work_item' AND type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY name`)
		if err != nil {
			return err
		}
		again, err = t.strings(`SELECT sql FROM sqlite_master
			WHERE tbl_name = 'work_item' AND type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY type, name`)
		for i := 0; i < len(drops) && err == nil; i++ {
			err = t.do(drops[i])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("drop indexes: %w", err)
	}
	if err := fill(); err != nil {
		return err
	}
	for _, statement := range append(again, `INSERT INTO item_text (item_text) VALUES ('rebuild')`) {
		err := s.write(ctx, func(t *tx) error {
			err := t.do(statement)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (s *Store) seedCollections(ctx context.Context, g *seeder) error {
	for i := range g.Collections {
		c := registry.Collection{Mnemonic: seedCollection(i), Profile: registry.Profile{Name: fmt.Sprintf("Collection %d", i), Owner: "ark:/99999/seed"}}
		if err := s.PutCollection(ctx, c, "seed"); err != nil {
			return fmt.Errorf("seed collections: %w", err)
		}
	}
	return nil
}

func seedCollection(i int) string { return fmt.Sprintf("collection_%02d", i) }

// seeder makes one item after another.
type seeder struct {
	Seeding
	rand *rand.Rand

	made       int
	seq        int64
	batch      string
	collection int
	by         string
	left       int // jobs of the batch
}

// seeded is an item as it is written.
type seeded struct {
	id, parent, name, note string
	row                    int
	action                 registry.Action
	place                  place
	class                  registry.ErrorClass
	attempt, retries       int
	blocked                int
	runIn                  time.Duration
}

func (g *seeder) item(t *tx) error {
	it := seeded{id: newID(), action: registry.Ingest}
	if g.left == 0 {
		// The first collections get more than the last ones, as in life.
		g.collection = int(float64(g.Collections) * g.rand.Float64() * g.rand.Float64())
		g.batch, g.left, g.by = it.id, g.Jobs, fmt.Sprintf("depositor %d", g.rand.IntN(200))
		it.action, it.name = registry.Batch, fmt.Sprintf("batch-%06d.checkm", g.made)
	} else {
		it.parent, it.row = g.batch, g.Jobs-g.left+1
		it.name = fmt.Sprintf("%s %s %06d.%s", g.one(seedTitles), g.one(seedTopics), g.made, g.one(seedEndings))
		g.left--
	}
	g.fate(&it)
	at := t.now - int64(time.Duration(g.Items-g.made)*20*time.Second/time.Microsecond)
	g.made++
	return g.write(t, it, at)
}

func (g *seeder) one(words []string) string { return words[g.rand.IntN(len(words))] }

// fate decides what became of an item. What waits is among the newest, but for a few.
func (g *seeder) fate(it *seeded) {
	route, _ := registry.RouteOf(it.action)
	last := route.Steps[len(route.Steps)-1].Stage
	anywhere := route.Steps[g.rand.IntN(len(route.Steps))].Stage
	it.attempt = len(route.Steps)
	switch n := g.rand.IntN(1000); {
	case n < 850:
		it.place = place{last, registry.Completed}
	case n < 930:
		it.place, it.class = place{anywhere, registry.Failed}, registry.SystemFault
		it.note = fmt.Sprintf(g.one(seedFaults), g.rand.IntN(100_000))
		if it.retries = g.rand.IntN(40) / 39; n >= 900 {
			it.class, it.note = registry.ContentFault, fmt.Sprintf(g.one(seedContentFaults), g.rand.IntN(100_000))
		}
		if it.action == registry.Batch {
			it.place.stage, it.class, it.note = last, registry.JobsFault, fmt.Sprintf("%d of %d jobs failed", g.rand.IntN(9)+1, g.Jobs)
		}
	case n < 940:
		it.place, it.note = place{anywhere, registry.Cancelled}, "cancelled by the depositor"
	case n < 960:
		it.place, it.attempt = place{route.First(), registry.Pending}, 0
	case n < 975:
		it.place = place{anywhere, registry.Pending}
	case n < 985: // not due
		it.place, it.runIn, it.note = place{anywhere, registry.Pending}, time.Duration(g.rand.IntN(3600))*time.Second, "connection reset by peer"
	case n < 995:
		it.place, it.blocked, it.attempt = place{route.First(), registry.Pending}, 1+g.rand.IntN(3), 0
	default:
		it.place, it.attempt = place{anywhere, registry.Pending}, 0
	}
}

func (g *seeder) write(t *tx, it seeded, at int64) error {
	const spec = `{"route_version":1,"type":"file","mode":"add","url":"https://example.org/payload","filename":"payload","size_bytes":0,` +
		`"submitted_at":"2026-01-01T00:00:00Z","profile":{"name":"Demo","owner":"ark:/99999/seed","collections":null,"noid_template":"","digest_algorithm":""}}`
	var finished, nudge any
	if it.place.status.Settled() {
		finished = at
	} else if it.blocked == 0 {
		nudge = t.now + int64(time.Hour/time.Microsecond) + int64(g.made)
	}
	var parent any
	if it.parent != "" {
		parent = it.parent
	}
	ready := 0
	switch {
	case it.place.status != registry.Pending:
	case it.blocked > 0:
		ready = 2
	case it.runIn == 0:
		ready = 1
		if err := t.openLane(it.place.stage, seedCollection(g.collection)); err != nil {
			return err
		}
	}
	g.seq++
	priority := 5 + g.rand.IntN(3)
	err := t.do(`INSERT INTO work_item (seq, id, tenant, collection, parent_id, row_no, action, stage, status, priority, rank,
		name, spec, error_class, note, run_at, nudge_at, created_by, created_at, updated_at, finished_at, attempt, retry_count,
		blocker_count, size_bytes, ready)
		VALUES ($25, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
		$17, $18, $18, $19, $20, $21, $22, $23, $24)`,
		it.id, Tenant, seedCollection(g.collection), parent, it.row, it.action, it.place.stage, it.place.status, priority,
		rank(at, priority), it.name, spec, it.class, it.note, at+int64(it.runIn/time.Microsecond), nudge, g.by, at, finished,
		it.attempt, it.retries, it.blocked, g.rand.Int64N(1<<30), ready, g.seq)
	if err != nil || !g.Events {
		return err
	}
	err = t.do(`INSERT INTO event (id, feed_seq, item_id, attempt, type, actor, at, data)
		VALUES ($1, (SELECT COALESCE(MAX(feed_seq), 0) + 1 FROM event), $2, 0, 'submit', $3, $4, '{}')`, newID(), it.id, g.by, at)
	return err
}

var (
	seedTitles        = []string{"Thesis", "Letters", "Field notes", "Minutes", "Photographs", "Map", "Interview", "Dataset", "Survey", "Newspaper"}
	seedTopics        = []string{"Berkeley", "Davis", "Irvine", "Merced", "Riverside", "San Diego", "Santa Cruz", "glaciers", "orchards", "earthquakes"}
	seedEndings       = []string{"pdf", "zip", "tar", "warc.gz", "tif"}
	seedFaults        = []string{"timeout after %d ms while reading from the source", "connection refused by host-%d.example.org", "read /staging/%d: input/output error", "503 Service Unavailable (request %d)", "no route to host (attempt id %d)"}
	seedContentFaults = []string{"sha256 of file %d differs from the manifest", "line %d: no such file", "404 Not Found: https://example.org/%d", "bag-info.txt: Payload-Oxum says %d bytes"}
)
