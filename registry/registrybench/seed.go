package registrybench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// Seeding says how many items to write. The same seed makes the same items.
type Seeding struct {
	Items       int
	Collections int
	Jobs        int  // per batch
	History     bool // also an event for each item, and an attempt for each that was claimed
	Settled     bool // no item waits
	Seed        uint64
	Title       string // that all jobs have; "": many titles
	// Progress is called now and then with the number of items written; it may be nil.
	Progress func(items int)
}

// Seed fills a database with items as years of work leave them: 85 % completed, 8 % failed with
// notes of many kinds, the others cancelled or waiting for their turn, for a time or for other
// items. The rows that claims depend on match the items.
//
// Seed writes into the tables and bypasses the Registry, its state machine and its feed. Use it
// only for databases that are measured and thrown away, and let nothing else write meanwhile. A
// PostgreSQL database must have its schema; Seed also runs VACUUM ANALYZE there, as autovacuum
// would in time. SQLite works without statistics.
func Seed(ctx context.Context, address string, o Seeding) (err error) {
	o.Collections, o.Jobs = max(o.Collections, 1), max(o.Jobs, 1)
	if err := seedCollections(ctx, address, o.Collections); err != nil {
		return fmt.Errorf("seed collections: %w", err)
	}
	driver, source := "pgx", address
	path, embedded := strings.CutPrefix(address, "sqlite:")
	if embedded {
		driver, source = "sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=cache_size(-262144)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	g := &seeder{
		Seeding: o, db: db, now: time.Now().UnixMicro(),
		items: itemRows(), details: detailRows(), events: eventRows(), attempts: attemptRows(), deps: depRows(),
	}
	if embedded {
		return g.fillWithoutIndexes(ctx)
	}
	if err := g.fill(ctx); err != nil {
		return err
	}
	return g.run(ctx, "VACUUM (ANALYZE)")
}

func seedCollections(ctx context.Context, address string, n int) (err error) {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: address})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := range n {
		c := registry.Collection{Mnemonic: seedCollection(i), Profile: registry.Profile{Name: fmt.Sprintf("Collection %d", i), Owner: Owner}}
		if err := s.PutCollection(ctx, c, "seed"); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the items, some thousands in a transaction.
func (g *seeder) fill(ctx context.Context) error {
	err := g.db.QueryRowContext(ctx, `SELECT COALESCE((SELECT MAX(seq) FROM work_item), 0), COALESCE((SELECT MAX(feed_seq) FROM event), 0)`).
		Scan(&g.seq, &g.feed)
	if err != nil {
		return fmt.Errorf("seed items: %w", err)
	}
	for g.made < g.Items {
		g.rand = rand.New(rand.NewPCG(g.Seed+1, uint64(g.made)))
		g.clear()
		for range min(5000, g.Items-g.made) {
			g.item()
		}
		if err := g.write(ctx); err != nil {
			return fmt.Errorf("seed items: %w", err)
		}
		if g.Progress != nil {
			g.Progress(g.made)
		}
	}
	return nil
}

// fillWithoutIndexes fills an SQLite database while the items have no indexes and triggers, and
// creates those afterwards. That is several times as fast. If it is interrupted, the database is
// useless.
func (g *seeder) fillWithoutIndexes(ctx context.Context) error {
	const indexes = ` FROM sqlite_master WHERE tbl_name = 'work_item' AND type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY type, name`
	drops, err := g.column(ctx, `SELECT 'DROP ' || type || ' ' || name`+indexes)
	if err != nil {
		return fmt.Errorf("list indexes: %w", err)
	}
	creates, err := g.column(ctx, `SELECT sql`+indexes)
	if err != nil {
		return fmt.Errorf("list indexes: %w", err)
	}
	if err := g.run(ctx, drops...); err != nil {
		return err
	}
	if err := g.fill(ctx); err != nil {
		return err
	}
	return g.run(ctx, append(creates, `INSERT INTO item_text_collection (name) SELECT DISTINCT collection FROM work_item
		WHERE collection NOT IN (SELECT name FROM item_text_collection)`, `INSERT INTO item_text (item_text) VALUES ('rebuild')`)...)
}

func (g *seeder) run(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := g.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// column returns a query's single text column.
func (g *seeder) column(ctx context.Context, query string) (out []string, err error) {
	rows, err := g.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// manuscriptCollection is the one collection whose items have the title "Manuscript".
const manuscriptCollection = 3

func seedCollection(i int) string { return fmt.Sprintf("collection_%02d", i) }

// seeder makes the items one by one.
type seeder struct {
	Seeding
	db   *sql.DB
	rand *rand.Rand
	now  int64

	made       int
	seq, feed  int64
	batch      string
	collection int
	by         string
	left       int    // jobs of the batch
	open       string // the last item that is not settled

	items, details, events, attempts, deps tableRows // to be written
	lanes                                  map[lane]bool
}

// lane names a lane by stage and collection.
type lane struct {
	stage      registry.Stage
	collection string
}

// place is an item's position on its route.
type place struct {
	stage  registry.Stage
	status registry.Status
}

// seeded is an item before it is written.
type seeded struct {
	id, parent, name, note string
	row                    int
	action                 registry.Action
	place                  place
	class                  registry.ErrorClass
	attempt, retries       int
	requires               string        // an item; "" for none
	runIn                  time.Duration // 0: it is due
}

func (g *seeder) item() {
	it := seeded{id: uuid.Must(uuid.NewV7()).String(), action: registry.Ingest}
	if g.left == 0 {
		// The first collections get more items than the last ones, as in real life.
		g.collection = int(float64(g.Collections) * g.rand.Float64() * g.rand.Float64())
		g.batch, g.left, g.by = it.id, g.Jobs, fmt.Sprintf("depositor %d", g.rand.IntN(200))
		it.action, it.name = registry.Batch, fmt.Sprintf("batch-%06d.checkm", g.made)
	} else {
		it.parent, it.row = g.batch, g.Jobs-g.left+1
		title := g.pick(seedTitles)
		switch {
		case g.Title != "":
			title = g.Title
		case g.collection == manuscriptCollection:
			title = "Manuscript"
		}
		it.name = fmt.Sprintf("%s %s %06d.%s", title, g.pick(seedTopics), g.made, g.pick(seedEndings))
		g.left--
	}
	g.chooseOutcome(&it)
	at := g.now - int64(time.Duration(g.Items-g.made)*20*time.Second/time.Microsecond)
	g.made++
	g.add(it, at)
}

func (g *seeder) pick(words []string) string { return words[g.rand.IntN(len(words))] }

// chooseOutcome chooses an item's position and outcome.
func (g *seeder) chooseOutcome(it *seeded) {
	route, _ := registry.RouteOf(it.action)
	route = route.With(nil)
	last := route.Steps[len(route.Steps)-1].Stage
	anywhere := route.Steps[g.rand.IntN(len(route.Steps))].Stage
	it.attempt = len(route.Steps)
	kinds := 1000
	if g.Settled {
		kinds = 940
	}
	switch n := g.rand.IntN(kinds); {
	case n < 850:
		it.place = place{last, registry.Completed}
	case n < 930:
		it.place, it.class = place{anywhere, registry.Failed}, registry.SystemFault
		it.note = fmt.Sprintf(g.pick(seedFaults), g.rand.IntN(100_000))
		if it.retries = g.rand.IntN(40) / 39; n >= 900 {
			it.class, it.note = registry.ContentFault, fmt.Sprintf(g.pick(seedContentFaults), g.rand.IntN(100_000))
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
	case n < 985:
		it.place, it.runIn, it.note = place{anywhere, registry.Pending}, time.Duration(1+g.rand.IntN(24))*time.Hour, "connection reset by peer"
	case n < 995:
		it.place, it.requires, it.attempt = place{route.First(), registry.Pending}, g.open, 0
	default:
		it.place, it.attempt = place{anywhere, registry.Pending}, 0
	}
}

// add adds the rows of an item to the tables.
func (g *seeder) add(it seeded, at int64) {
	const spec = `{"route_version":1,"type":"file","mode":"add","url":"https://example.org/payload","filename":"payload","size_bytes":0,` +
		`"submitted_at":"2026-01-01T00:00:00Z","profile":{"name":"Demo","owner":"` + Owner + `","collections":null,"noid_template":"","digest_algorithm":""}}`
	collection, runAt, ready, blockers := seedCollection(g.collection), at, 0, 0
	var finished, nudge, parent any
	if it.parent != "" {
		parent = it.parent
	}
	switch {
	case it.place.status != registry.Pending:
		finished = at
	case it.requires != "":
		ready, blockers = 2, 1
		g.deps.add(it.id, it.requires, registry.WaitSuccess, 1)
	case it.runIn > 0:
		runAt = g.now + it.runIn.Microseconds()
		nudge = runAt
	default:
		// A message was published just now, and there is no worker.
		ready, nudge = 1, g.now+time.Hour.Microseconds()+int64(g.made)
		g.lanes[lane{it.place.stage, collection}] = true
	}
	if finished == nil {
		g.open = it.id
	}
	var why registry.Cause
	var fingerprint string
	if it.place.status == registry.Failed {
		why = registry.CauseOf(it.place.stage, it.class, "", "", it.note)
		fingerprint = why.Fingerprint()
	}
	g.seq++
	priority := 5 + g.rand.IntN(3)
	g.items.add(g.seq, it.id, sqldb.Tenant, collection, parent, it.row, it.action, it.place.stage, it.place.status, priority,
		at+int64(priority)*time.Minute.Microseconds(), it.name, it.class, it.note, runAt, nudge, g.by, at, at, finished, it.attempt, it.retries,
		blockers, g.rand.Int64N(1<<30), registry.DefaultStorage, ready,
		fingerprint, why.Code, why.Host)
	payload := ""
	if it.action == registry.Batch {
		payload = "https://example.org/payload"
	}
	g.details.add(it.id, spec, payload)
	if !g.History {
		return
	}
	g.feed++
	g.events.add(uuid.Must(uuid.NewV7()).String(), g.feed, it.id, 0, registry.ActSubmit, g.by, at, "{}", collection)
	if it.attempt > 0 {
		g.attempts.add(it.id, it.attempt, "seed "+it.id, it.place.stage, "worker", "seed", at, at, 0, at, 5, at, registry.OutcomeDone, "{}")
	}
}

func (g *seeder) clear() {
	for _, s := range g.tables() {
		s.rows = s.rows[:0]
	}
	g.lanes = map[lane]bool{}
}

func (g *seeder) tables() []*tableRows {
	return []*tableRows{&g.items, &g.details, &g.events, &g.attempts, &g.deps}
}

// write inserts the collected rows and opens the lanes of ready items.
func (g *seeder) write(ctx context.Context) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, s := range g.tables() {
		if err := s.write(ctx, tx); err != nil {
			return err
		}
	}
	for l := range g.lanes {
		_, err := tx.ExecContext(ctx, `INSERT INTO lane (stage, collection, served, active) VALUES ($1, $2, 0, 1)
			ON CONFLICT (stage, collection) DO UPDATE SET active = 1`, l.stage, l.collection)
		if err != nil {
			return fmt.Errorf("open the lane of %s at %s: %w", l.collection, l.stage, err)
		}
	}
	return tx.Commit()
}

var (
	seedTitles        = []string{"Thesis", "Letters", "Field notes", "Minutes", "Photographs", "Map", "Interview", "Dataset", "Survey", "Newspaper"}
	seedTopics        = []string{"Berkeley", "Davis", "Irvine", "Merced", "Riverside", "San Diego", "Santa Cruz", "glaciers", "orchards", "earthquakes"}
	seedEndings       = []string{"pdf", "zip", "tar", "warc.gz", "tif"}
	seedFaults        = []string{"timeout after %d ms while reading from the source", "connection refused by host-%d.example.org", "read /staging/%d: input/output error", "503 Service Unavailable (request %d)", "no route to host (attempt id %d)"}
	seedContentFaults = []string{"sha256 of file %d differs from the manifest", "line %d: no such file", "404 Not Found: https://example.org/%d", "bag-info.txt: Payload-Oxum says %d bytes"}
)
