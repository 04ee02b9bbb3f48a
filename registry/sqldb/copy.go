package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	driver "modernc.org/sqlite"
)

// ErrNoCopy says that a database is not one that [Copy] can copy.
var ErrNoCopy = errors.New("only a SQLite database can be copied; PostgreSQL has its own tools")

// copyPages is how many pages are copied before Copy looks whether it is to stop: a few MiB.
const copyPages = 1024

// Copy copies the SQLite database at an address into a new file, as it is at one moment. Other
// processes may write meanwhile and do not wait: the copy reads one snapshot of the write-ahead log,
// which only grows longer until Copy returns. A file that a failed or killed Copy leaves is not a
// database.
func Copy(ctx context.Context, address, to string) (err error) {
	if d, err := dialectOf(address); err != nil {
		return err
	} else if d.Name() != SQLite {
		return ErrNoCopy
	}
	db, err := OpenReader(address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open the database to copy it: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// Without a transaction of ours each step would read a snapshot of its own, and begin anew
	// whenever a writer came between.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return fmt.Errorf("begin to copy the database: %w", err)
	}
	defer func() {
		_, over := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, over)
	}()
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&tables); err != nil { // fixes the snapshot
		return fmt.Errorf("read the database to copy it: %w", err)
	}
	return conn.Raw(func(c any) error { return copyPaged(ctx, c, to) })
}

// copyPaged copies the snapshot of a connection.
func copyPaged(ctx context.Context, conn any, to string) (err error) {
	c, ok := conn.(interface {
		NewBackup(to string) (*driver.Backup, error)
	})
	if !ok {
		return ErrNoCopy
	}
	b, err := c.NewBackup("file:" + (&url.URL{Path: to}).EscapedPath())
	if err != nil {
		return fmt.Errorf("make a copy of the database: %w", err)
	}
	defer func() { err = errors.Join(err, b.Finish()) }()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if more, err = b.Step(copyPages); err != nil {
			return fmt.Errorf("copy the database: %w", err)
		}
	}
	return nil
}

// Content is what a copy of a database has.
type Content struct {
	Source   string `json:"source"` // the Registry's name
	Schema   int64  `json:"schema"`
	Objects  int64  `json:"objects"`
	Versions int64  `json:"versions"`
	Chained  int64  `json:"chained_events"` // events in the chains of objects
	Chains   int64  `json:"chains"`         // objects with events
	Items    int64  `json:"items"`
}

// ErrDamaged says that a copy is no sound database of Holdfast.
var ErrDamaged = errors.New("the database is damaged")

// Inspect reads a copy of a SQLite database that nobody writes to, and checks every page of it. It
// changes nothing and leaves no file beside it. Its error is ErrDamaged if the copy is not sound.
func Inspect(ctx context.Context, path string) (c Content, err error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&immutable=1&_pragma=query_only(1)&_pragma=temp_store(MEMORY)")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said); err != nil {
		return c, damagedUnless(ctx, err)
	} else if said != "ok" {
		return c, fmt.Errorf("%w: %s", ErrDamaged, said)
	}
	err = db.QueryRowContext(ctx, `SELECT (SELECT value FROM setting WHERE name = 'source'), (SELECT MAX(version_id) FROM goose_db_version),
		(SELECT COUNT(*) FROM object), (SELECT COUNT(*) FROM object_version), (SELECT COUNT(*) FROM work_item),
		(SELECT COUNT(*) FROM premis_event WHERE seq > 0), (SELECT COUNT(DISTINCT object_id) FROM premis_event WHERE seq > 0)`).
		Scan(&c.Source, &c.Schema, &c.Objects, &c.Versions, &c.Items, &c.Chained, &c.Chains)
	if err != nil {
		return c, damagedUnless(ctx, err)
	}
	return c, nil
}

// damagedUnless marks an error of a copy that cannot be read, unless the caller gave up.
func damagedUnless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
