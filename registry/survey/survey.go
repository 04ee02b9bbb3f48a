// Package survey reads from the record what an evidence report of a period says.
//
// Everything is as of the period's end, as far as the record keeps history: versions, files, events,
// deletions, profiles and audit entries have their times. So two surveys of a period that has ended say
// the same. Exceptions, which have no history: which storages hold a version, and the stored files of
// objects that were deleted after the period.
//
// A survey reads objects in groups, with a short query for each, so that no reader is long (R25) and
// memory is bounded: by the number of collections, formats, causes and storages, and by the files of the
// largest object.
package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Reader is what an evidence report needs of the Registry. It limits nothing to what a caller may see:
// only operators and admins may ask for a report.
type Reader interface {
	// CountPeriod counts objects, checks, ingests and failures of a period. It reads all objects.
	CountPeriod(ctx context.Context, q Query) (Counts, error)
	// Incidents calls each for the events that tell of damage and of mends in the period, by object.
	Incidents(ctx context.Context, q Query, each func(Incident) error) error
	// PeriodDeletions calls each for the deletions that were requested, decided or carried out in the period.
	PeriodDeletions(ctx context.Context, q Query, each func(Deletion) error) error
	// Accesses calls each for the entries of the audit log that tell who read or restored what, oldest first.
	Accesses(ctx context.Context, q Query, each func(Access) error) error
	// Backups calls each for the backups that the service made and verified in the period, oldest first. They
	// are of all collections.
	Backups(ctx context.Context, q Query, each func(Backup) error) error
	// SignReport signs an evidence report, if the Registry has a receipt key, and names the Registry in it.
	SignReport(ctx context.Context, r receipt.Report) ([]byte, error)
}

// Query selects a period, and a collection or all.
type Query struct {
	From       time.Time
	To         time.Time // the first moment after the period
	Collection string    // "": all
}

// Counts are the numbers of a period. Lists are sorted by their first fields.
type Counts struct {
	Holdings  []Holding  `json:"holdings"`
	Formats   []Format   `json:"formats"`
	Ingests   []Ingest   `json:"ingests"`
	Failures  []Failure  `json:"failures"`
	Coverage  []Coverage `json:"coverage"`
	Copies    []Copies   `json:"copies"`
	Software  []Software `json:"software"`
	Programs  []Program  `json:"programs"`
	Policies  []Policy   `json:"policies"`
	Keys      []Key      `json:"keys"`
	Incidents int64      `json:"incidents"` // events of failure among fixity checks
}

// Holding is what a collection has, at the beginning and at the end of the period.
type Holding struct {
	Collection string
	Start, End Amount
}

// Amount counts objects, their versions, and files and bytes of their newest versions.
type Amount struct{ Objects, Versions, Files, Bytes int64 }

// Plus returns the sum.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Objects + b.Objects, a.Versions + b.Versions, a.Files + b.Files, a.Bytes + b.Bytes}
}

// Format is how many files of the newest versions have a format, at the end of the period.
type Format struct {
	PUID, Name, Version, MIMEType string
	Files, Bytes                  int64
}

// Ingest is what a collection got in the period.
type Ingest struct {
	Collection               string
	First, Updates           int64 // versions: first ones of their objects, and later ones
	FilesWritten, BytesAdded int64 // stored files that came with them
}

// Failure is how often items of a collection failed for a cause in the period. An item that is requeued
// and fails again counts again.
type Failure struct {
	Collection string
	Stage      registry.Stage
	Class      registry.ErrorClass
	Cause      string // fingerprint
	Title      string
	Times      int64
}

// Coverage is how much of what a storage holds at the end of the period was read again and found right
// in it, or else written and read back in it.
type Coverage struct {
	Storage string
	Files   Share
	Bytes   Share
}

// Share divides an amount by when it was last read in the period.
type Share struct{ All, Checked, Written int64 }

// Copies is how many versions of a collection are in so many storages.
type Copies struct {
	Collection string
	Copies     int
	Versions   int64
}

// Software is a program that made preservation events in the period.
type Software struct {
	Name        string
	First, Last time.Time
	Events      int64
}

// Program is a version of a program that announced itself as a worker in the period, whether or not it
// made preservation events.
type Program struct {
	Kind        registry.ProgramKind
	Version     string
	First, Last time.Time // days
	Days        int64     // on which it did
}

// Policy is the profile that a collection had at the end of the period.
type Policy struct {
	Collection string
	Version    int
	Since      time.Time
	By         string
	Profile    registry.Profile
}

// Key is a key that signed receipts before the end of the period.
type Key struct {
	ID, PublicKey string
	FirstUsed     time.Time
}

// Incident is an event about damage or a mend.
type Incident struct {
	Collection string
	registry.Premis
}

// Deletion is a deletion, as it stood at the end of the period.
type Deletion struct {
	Collection, Tombstone string // Tombstone: SHA-256 of its text, in hex; "": an earlier program wrote it, or none yet
	registry.Deletion
}

// Access is an entry of the audit log that tells who read or restored what.
type Access struct {
	ID    string
	At    time.Time
	Kind  string // as of registry.Access, or restore-requested
	Actor string
	registry.Access
	Reason string
}

// Backup is an entry of the audit log that tells of a backup.
type Backup struct {
	ID string
	At time.Time // when it was verified
	registry.Backup
}

// RestoreRequested is the kind of access that a submit of a restore is.
const RestoreRequested = "restore-requested"

// Survey implements Reader over the database.
type Survey struct {
	db  *sqldb.DB
	key *receipt.Key
}

// New returns a Survey that signs with a key, or nothing if it is nil.
func New(db *sqldb.DB, key *receipt.Key) *Survey { return &Survey{db, key} }

// SignReport implements Reader.
func (s *Survey) SignReport(ctx context.Context, r receipt.Report) ([]byte, error) {
	if err := s.db.Read.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = 'source'`).Scan(&r.Registry); err != nil {
		return nil, fmt.Errorf("read the Registry's identifier: %w", err)
	}
	return s.key.SignReport(r), nil
}

// PeriodDeletions implements Reader.
func (s *Survey) PeriodDeletions(ctx context.Context, q Query, each func(Deletion) error) error {
	from, to := sqldb.Micros(q.From), sqldb.Micros(q.To)
	err := sqldb.Each(s.db.Read.Ask(ctx, `SELECT o.collection, d.tombstone, d.object_id, d.status, d.reason, d.asked_by, d.asked_at, d.expires_at,
		d.closed_by, d.closed_at, d.item_id, d.deleted_at, d.head, d.inventory, d.files FROM deletion d JOIN object o ON o.id = d.object_id
		WHERE d.asked_at < $2 AND (d.asked_at >= $1 OR d.closed_at >= $1 AND d.closed_at < $2 OR d.deleted_at >= $1 AND d.deleted_at < $2
			OR d.closed_at = 0 AND d.expires_at >= $1 AND d.expires_at < $2)
		AND ($3 = '' OR o.collection = $3) ORDER BY d.asked_at, d.id`, from, to, q.Collection), "list deletions", func(row sqldb.Scanner) error {
		var d Deletion
		var asked, expires, closed, deleted int64
		var status registry.DeletionStatus
		var by string
		err := row.Scan(&d.Collection, &d.Tombstone, &d.ObjectID, &status, &d.Reason, &d.AskedBy, &asked, &expires, &by, &closed, &d.ItemID, &deleted,
			&d.Last.Version, &d.Last.Inventory, &d.Last.Files)
		if err != nil {
			return err
		}
		d.AskedAt, d.ExpiresAt = sqldb.FromMicros(asked), sqldb.FromMicros(expires)
		d.asOf(to, status, by, closed, deleted, expires)
		return each(d)
	})
	return err
}

// asOf sets what was decided and done before a time.
func (d *Deletion) asOf(to int64, status registry.DeletionStatus, by string, closed, deleted, expires int64) {
	closedAt, deletedAt := sqldb.FromMicros(closed), sqldb.FromMicros(deleted)
	decided := closed > 0 && closed < to
	switch {
	case decided && status == registry.DeletionWithdrawn:
		d.Status, d.WithdrawnBy, d.WithdrawnAt = registry.DeletionWithdrawn, by, &closedAt
	case decided:
		d.Status, d.ApprovedBy, d.ApprovedAt = registry.DeletionApproved, by, &closedAt
	case expires < to:
		d.Status = registry.DeletionExpired
	default:
		d.Status = registry.DeletionAsked
	}
	if deleted > 0 && deleted < to {
		d.Status, d.DeletedAt, d.Tombstone = registry.DeletionDeleted, &deletedAt, digestOf(d.Tombstone)
		return
	}
	d.Last, d.Tombstone = registry.Remains{}, ""
	if d.Status != registry.DeletionApproved {
		d.ItemID = ""
	}
}

// policies returns the profiles that were in force at the end of the period.
func (s *Survey) policies(ctx context.Context, q Query) ([]Policy, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT v.mnemonic, v.version, v.created_at, v.actor, v.profile FROM collection_version v
		WHERE v.version = (SELECT MAX(n.version) FROM collection_version n WHERE n.mnemonic = v.mnemonic AND n.created_at < $1)
		AND ($2 = '' OR v.mnemonic = $2) ORDER BY v.mnemonic`, sqldb.Micros(q.To), q.Collection), "list profiles", func(row sqldb.Scanner) (p Policy, err error) {
		var at int64
		var profile string
		if err := row.Scan(&p.Collection, &p.Version, &at, &p.By, &profile); err != nil {
			return p, err
		}
		p.Since = sqldb.FromMicros(at)
		return p, json.Unmarshal([]byte(profile), &p.Profile)
	})
}

// programVersions returns the versions of programs that ran in the period, of all collections.
func (s *Survey) programVersions(ctx context.Context, q Query) ([]Program, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT kind, version, MIN(day), MAX(day), COUNT(*) FROM program_day WHERE day >= $1 AND day <= $2
		GROUP BY kind, version ORDER BY kind, version`, sqldb.Day(sqldb.Micros(q.From)), sqldb.Day(sqldb.Micros(q.To)-1)), "list programs", func(row sqldb.Scanner) (p Program, err error) {
		var first, last int64
		err = row.Scan(&p.Kind, &p.Version, &first, &last, &p.Days)
		p.First, p.Last = sqldb.FromDay(first), sqldb.FromDay(last)
		return p, err
	})
}

// keys returns the keys that signed before the end of the period.
func (s *Survey) keys(ctx context.Context, q Query) ([]Key, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT id, public_key, first_used_at FROM receipt_key WHERE first_used_at < $1 ORDER BY first_used_at, id`,
		sqldb.Micros(q.To)), "list receipt keys", func(row sqldb.Scanner) (k Key, err error) {
		var at int64
		err = row.Scan(&k.ID, &k.PublicKey, &at)
		k.FirstUsed = sqldb.FromMicros(at)
		return k, err
	})
}
