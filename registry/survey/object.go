package survey

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const (
	// objectsAtOnce is how many objects one statement reads at most.
	objectsAtOnce = 500
	// filesAtOnce is how many files they have together, unless it is one object.
	filesAtOnce = 20_000
)

// group is a range of objects: with ids after one, and up to another.
type group struct{ after, upTo string }

// groups calls each for ranges of objects that together are all objects.
func (s *Survey) groups(ctx context.Context, each func(group) error) error {
	for g := (group{}); ; g.after = g.upTo {
		files, n := int64(0), 0
		g.upTo = g.after
		err := sqldb.Each(s.db.Read.Ask(ctx, `SELECT id, files FROM object WHERE id > $1 ORDER BY id LIMIT $2`, g.after, objectsAtOnce), "list objects",
			func(row sqldb.Scanner) error {
				var id string
				var has int64
				if err := row.Scan(&id, &has); err != nil {
					return err
				}
				if n > 0 && files+has > filesAtOnce {
					return errFull
				}
				g.upTo, files, n = id, files+has, n+1
				return nil
			})
		if err != nil && !errors.Is(err, errFull) {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := each(g); err != nil {
			return err
		}
	}
}

var errFull = errors.New("the group is full")

// counting adds up what groups of objects have.
type counting struct {
	*Survey
	q        Query
	holdings map[string]*Holding
	formats  map[Format]*Format
	ingests  map[string]*Ingest
	coverage map[string]*Coverage
	copies   map[Copies]int64
	software map[string]*Software
	failed   int64
}

// at returns the value of a key, which it makes if there is none.
func at[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

// CountPeriod implements Reader.
func (s *Survey) CountPeriod(ctx context.Context, q Query) (c Counts, err error) {
	n := &counting{
		Survey: s, q: q, holdings: map[string]*Holding{}, formats: map[Format]*Format{}, ingests: map[string]*Ingest{}, coverage: map[string]*Coverage{},
		copies: map[Copies]int64{}, software: map[string]*Software{},
	}
	err = s.groups(ctx, func(g group) error {
		for _, read := range []func(context.Context, group) error{n.amounts, n.readFormats, n.readIngests, n.readCopies, n.readSoftware, n.readCoverage} {
			if err := read(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("count what the record has of the period: %w", err)
	}
	for name, h := range n.holdings {
		h.Collection = name
		c.Holdings = append(c.Holdings, *h)
	}
	for key, f := range n.formats {
		key.Files, key.Bytes = f.Files, f.Bytes
		c.Formats = append(c.Formats, key)
	}
	for name, i := range n.ingests {
		i.Collection = name
		c.Ingests = append(c.Ingests, *i)
	}
	for name, v := range n.coverage {
		v.Storage = name
		c.Coverage = append(c.Coverage, *v)
	}
	for key, versions := range n.copies {
		key.Versions = versions
		c.Copies = append(c.Copies, key)
	}
	c.Software, c.Incidents = n.programs(), n.failed
	slices.SortFunc(c.Holdings, func(a, b Holding) int { return cmp.Compare(a.Collection, b.Collection) })
	slices.SortFunc(c.Formats, func(a, b Format) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.PUID, b.PUID), cmp.Compare(a.MIMEType, b.MIMEType), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	slices.SortFunc(c.Ingests, func(a, b Ingest) int { return cmp.Compare(a.Collection, b.Collection) })
	slices.SortFunc(c.Coverage, func(a, b Coverage) int { return cmp.Compare(a.Storage, b.Storage) })
	slices.SortFunc(c.Copies, func(a, b Copies) int {
		return cmp.Or(cmp.Compare(a.Collection, b.Collection), cmp.Compare(a.Copies, b.Copies))
	})
	if c.Failures, err = s.failures(ctx, q); err != nil {
		return c, err
	}
	if c.Policies, err = s.policies(ctx, q); err != nil {
		return c, err
	}
	if c.Programs, err = s.programVersions(ctx, q); err != nil {
		return c, err
	}
	c.Keys, err = s.keys(ctx, q)
	return c, err
}

// programs returns the software by name.
func (n *counting) programs() (out []Software) {
	for _, name := range slices.Sorted(maps.Keys(n.software)) {
		p := *n.software[name]
		p.Name = name
		out = append(out, p)
	}
	return out
}

// The group and the collection of a statement: $1 to $3.
const (
	ofGroup     = `o.id > $1 AND o.id <= $2 AND ($3 = '' OR o.collection = $3)`
	notDeleted  = `NOT EXISTS (SELECT 1 FROM deletion d WHERE d.object_id = o.id AND d.deleted_at > 0 AND d.deleted_at < $4)`
	headVersion = `(SELECT MAX(h.version) FROM object_version h WHERE h.object_id = o.id AND h.status = 'recorded' AND h.recorded_at < $4)`
)

// ask runs a statement about a group's objects at the end of the period.
func (n *counting) ask(ctx context.Context, g group, query string, args ...any) sqldb.Asking {
	return n.db.Read.Ask(ctx, query, append([]any{g.after, g.upTo, n.q.Collection}, args...)...)
}

// amounts counts objects, versions, files and bytes at both ends of the period.
func (n *counting) amounts(ctx context.Context, g group) error {
	for _, end := range []bool{false, true} {
		when := n.q.From
		if end {
			when = n.q.To
		}
		err := sqldb.Each(n.ask(ctx, g, `SELECT o.collection, COUNT(*), `+sqldb.Sum(`(SELECT COUNT(*) FROM object_version c
			WHERE c.object_id = o.id AND c.status = 'recorded' AND c.recorded_at < $4)`)+`, `+sqldb.Sum("v.files")+`, `+sqldb.Sum("v.size_bytes")+`
			FROM object o JOIN object_version v ON v.object_id = o.id AND v.version = `+headVersion+`
			WHERE `+ofGroup+` AND `+notDeleted+` GROUP BY o.collection`, sqldb.Micros(when)), "count objects", func(row sqldb.Scanner) error {
			var collection string
			var objects int64
			var versions, files, bytes sql.NullFloat64
			if err := row.Scan(&collection, &objects, &versions, &files, &bytes); err != nil {
				return err
			}
			h := at(n.holdings, collection)
			a := &h.Start
			if end {
				a = &h.End
			}
			a.Objects += objects
			a.Versions += whole(versions)
			a.Files += whole(files)
			a.Bytes += whole(bytes)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readFormats counts the files of the newest versions by format.
func (n *counting) readFormats(ctx context.Context, g group) error {
	return sqldb.Each(n.ask(ctx, g, `SELECT f.mime_type, f.format, COUNT(*), `+sqldb.Sum("f.size_bytes")+` FROM object o JOIN file f ON f.object_id = o.id
		WHERE `+ofGroup+` AND `+notDeleted+` AND f.version <= `+headVersion+` AND f.deleted = 0
		AND NOT EXISTS (SELECT 1 FROM file l WHERE l.object_id = f.object_id AND l.path = f.path AND l.version > f.version AND l.version <= `+headVersion+`)
		GROUP BY f.mime_type, f.format`, sqldb.Micros(n.q.To)), "count formats", func(row sqldb.Scanner) error {
		var mime, text string
		var files int64
		var bytes sql.NullFloat64
		if err := row.Scan(&mime, &text, &files, &bytes); err != nil {
			return err
		}
		var found registry.Format
		if text != "" {
			if err := json.Unmarshal([]byte(text), &found); err != nil {
				return fmt.Errorf("read a format: %w", err)
			}
		}
		f := at(n.formats, Format{PUID: found.PUID, Name: found.Name, Version: found.Version, MIMEType: mime})
		f.Files += files
		f.Bytes += whole(bytes)
		return nil
	})
}

// readIngests counts the versions that were recorded in the period.
func (n *counting) readIngests(ctx context.Context, g group) error {
	return sqldb.Each(n.ask(ctx, g, `SELECT o.collection, COUNT(*), `+sqldb.Sum("CASE WHEN v.version = 1 THEN 1 ELSE 0 END")+`,
		`+sqldb.Sum(`(SELECT COUNT(*) FROM file f WHERE f.object_id = v.object_id AND f.version = v.version AND f.deleted = 0)`)+`,
		`+sqldb.Sum(`(SELECT COALESCE(`+sqldb.Sum("f.size_bytes")+`, 0) FROM file f WHERE f.object_id = v.object_id AND f.version = v.version AND f.deleted = 0)`)+`
		FROM object o JOIN object_version v ON v.object_id = o.id WHERE `+ofGroup+` AND v.status = 'recorded' AND v.recorded_at >= $4 AND v.recorded_at < $5
		GROUP BY o.collection`, sqldb.Micros(n.q.From), sqldb.Micros(n.q.To)), "count ingests", func(row sqldb.Scanner) error {
		var collection string
		var versions int64
		var first, files, bytes sql.NullFloat64
		if err := row.Scan(&collection, &versions, &first, &files, &bytes); err != nil {
			return err
		}
		i := at(n.ingests, collection)
		i.First += whole(first)
		i.Updates += versions - whole(first)
		i.FilesWritten += whole(files)
		i.BytesAdded += whole(bytes)
		return nil
	})
}

// readCopies counts the versions that there are at the end of the period by the number of their storages.
func (n *counting) readCopies(ctx context.Context, g group) error {
	return sqldb.Each(n.ask(ctx, g, `SELECT collection, n, COUNT(*) FROM (SELECT o.collection AS collection,
			(SELECT COUNT(*) FROM replica r WHERE r.object_id = v.object_id AND r.version = v.version) AS n
			FROM object o JOIN object_version v ON v.object_id = o.id
			WHERE `+ofGroup+` AND `+notDeleted+` AND v.status = 'recorded' AND v.recorded_at < $4) c GROUP BY collection, n`, sqldb.Micros(n.q.To)),
		"count copies", func(row sqldb.Scanner) error {
			var c Copies
			var versions int64
			if err := row.Scan(&c.Collection, &c.Copies, &versions); err != nil {
				return err
			}
			n.copies[c] += versions
			return nil
		})
}

// readSoftware finds the programs that made events in the period.
func (n *counting) readSoftware(ctx context.Context, g group) error {
	return sqldb.Each(n.ask(ctx, g, `SELECT p.agent, MIN(p.at), MAX(p.at), COUNT(*), `+sqldb.Sum("CASE WHEN p.outcome <> 'success' AND p.type = 'fixity check' THEN 1 ELSE 0 END")+`
		FROM object o JOIN premis_event p ON p.object_id = o.id WHERE `+ofGroup+` AND p.at >= $4 AND p.at < $5 GROUP BY p.agent`,
		sqldb.Micros(n.q.From), sqldb.Micros(n.q.To)), "list programs", func(row sqldb.Scanner) error {
		var name string
		var first, last, events int64
		var failed sql.NullFloat64
		if err := row.Scan(&name, &first, &last, &events, &failed); err != nil {
			return err
		}
		p := at(n.software, name)
		if from := sqldb.FromMicros(first); p.First.IsZero() || from.Before(p.First) {
			p.First = from
		}
		if until := sqldb.FromMicros(last); until.After(p.Last) {
			p.Last = until
		}
		p.Events += events
		n.failed += whole(failed)
		return nil
	})
}

// checkedFile identifies a stored file in a storage, by hashes: an object may have a million files.
type checkedFile struct{ object, file, storage uint64 }

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// readCoverage finds which stored files of the period's end were read again in the period, and found right.
func (n *counting) readCoverage(ctx context.Context, g group) error {
	checked := map[checkedFile]bool{} // the last check in the period found it right
	err := sqldb.Each(n.ask(ctx, g, `SELECT o.id, p.detail FROM object o JOIN premis_event p ON p.object_id = o.id
		WHERE `+ofGroup+` AND p.type IN ('fixity check', 'replication') AND p.at >= $4 AND p.at < $5 ORDER BY o.id, p.seq`,
		sqldb.Micros(n.q.From), sqldb.Micros(n.q.To)), "list fixity checks", func(row sqldb.Scanner) error {
		var id, detail string
		if err := row.Scan(&id, &detail); err != nil {
			return err
		}
		path, outcomes, ok := CheckIn(detail)
		for storage, right := range outcomes {
			if ok {
				checked[checkedFile{hashOf(id), hashOf(path), hashOf(storage)}] = right
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return sqldb.Each(n.ask(ctx, g, `SELECT o.id, s.content_path, s.size_bytes, v.recorded_at, r.storage FROM object o
		JOIN stored_file s ON s.object_id = o.id
		JOIN object_version v ON v.object_id = s.object_id AND v.version = s.version
		JOIN replica r ON r.object_id = s.object_id AND r.version = s.version
		WHERE `+ofGroup+` AND v.status = 'recorded' AND v.recorded_at < $4 AND `+notDeleted, sqldb.Micros(n.q.To)), "list stored files", func(row sqldb.Scanner) error {
		var id, storage string
		var path []byte
		var size, recorded int64
		if err := row.Scan(&id, &path, &size, &recorded, &storage); err != nil {
			return err
		}
		size = max(size, 0) // inventories have none
		c := at(n.coverage, storage)
		c.Files.All++
		c.Bytes.All += size
		right, read := checked[checkedFile{hashOf(id), hashOf(sqldb.Clean(string(path))), hashOf(storage)}]
		switch {
		case read && right:
			c.Files.Checked++
			c.Bytes.Checked += size
		case !read && recorded >= sqldb.Micros(n.q.From):
			c.Files.Written++
			c.Bytes.Written += size
		}
		return nil
	})
}

// checkText is the detail of an event about a file that was read again.
var checkText = regexp.MustCompile(`^(?s)(.*) compared by [a-z0-9-]+: (.*)$`)

// CheckIn returns the file that an event's detail says was read again, and in which storages it was right.
// ok is false for the detail of another event.
func CheckIn(detail string) (path string, right map[string]bool, ok bool) {
	parts := checkText.FindStringSubmatch(detail)
	if parts == nil {
		return "", nil, false
	}
	right = map[string]bool{}
	for one := range strings.SplitSeq(parts[2], "; ") {
		outcome, rest, found := strings.Cut(one, " in storage ")
		storage, more, _ := strings.Cut(rest, " ")
		if !found {
			continue // more about the part before
		}
		right[storage] = registry.CheckOutcome(outcome).Right() && more == ""
	}
	return parts[1], right, true
}

// Incidents implements Reader.
func (s *Survey) Incidents(ctx context.Context, q Query, each func(Incident) error) error {
	return s.groups(ctx, func(g group) error {
		return sqldb.Each(s.db.Read.Ask(ctx, `SELECT o.collection, p.id, p.object_id, p.version, p.item_id, p.type, p.at, p.agent, p.outcome, p.detail, p.seq, p.hash
			FROM object o JOIN premis_event p ON p.object_id = o.id
			WHERE `+ofGroup+` AND p.at >= $4 AND p.at < $5 AND (p.type = 'fixity check' AND p.outcome <> 'success' OR p.type = 'replication' AND p.detail LIKE '% compared by %')
			ORDER BY o.id, p.seq, p.at, p.id`, g.after, g.upTo, q.Collection, sqldb.Micros(q.From), sqldb.Micros(q.To)), "list incidents", func(row sqldb.Scanner) error {
			var i Incident
			var at int64
			if err := row.Scan(&i.Collection, &i.ID, &i.ObjectID, &i.Version, &i.ItemID, &i.Type, &at, &i.Agent, &i.Outcome, &i.Detail, &i.Seq, &i.Hash); err != nil {
				return err
			}
			i.At = sqldb.FromMicros(at)
			return each(i)
		})
	})
}
