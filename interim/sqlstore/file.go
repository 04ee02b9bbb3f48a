package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strconv"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// applicationID marks the file as Holdfast's interim data ("HFin" in SQLite's header). A path
	// that was mistakenly set to another database is thus never renamed or written.
	applicationID = 0x4846696e
	// formatVersion grows whenever a table changes. A file of another version is replaced, never
	// migrated.
	formatVersion = 1

	asideSuffix = ".damaged"
)

// AUTOINCREMENT never reuses an attempt's id, so that entries left by an interrupted drop cannot
// appear under another attempt. A dropped attempt has item NULL until its entries are swept. Keys
// are BLOBs: they compare byte by byte and can hold any file name.
const schema = `
CREATE TABLE attempt (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	item TEXT,
	n INTEGER NOT NULL,
	adopted_from INTEGER NOT NULL,
	UNIQUE (item, n)
) STRICT;
CREATE TABLE entry (
	attempt_id INTEGER NOT NULL,
	key BLOB NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (attempt_id, key)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;`

// ForeignError says that a path holds a file that is not Holdfast's interim data.
type ForeignError struct{ Path string }

// Error names the file.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is not an interim file of holdfast; it was not changed", e.Path)
}

// errOtherFormat: another version of Holdfast wrote the file, with other tables.
var errOtherFormat = errors.New("interim file has another format")

// writeDSN returns the address for the only writer. With synchronous=NORMAL, WAL syncs at
// checkpoints only. A power cut may undo the last commits but cannot damage the file; undone
// interim data is rework. The application id is set before WAL, so that the file itself has it from
// the first write.
func writeDSN(path string) string {
	return dsn(path, "busy_timeout(10000)", "application_id("+strconv.Itoa(applicationID)+")", "journal_mode(WAL)",
		"synchronous(NORMAL)", "journal_size_limit(67108864)") + "&_txlock=immediate"
}

func readDSN(path string) string {
	return dsn(path, "busy_timeout(10000)", "query_only(1)")
}

func dsn(path string, pragmas ...string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + url.Values{"_pragma": pragmas}.Encode()
}

// migrate creates the tables in a new file and refuses a file of another format.
func migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()

	var version int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return fmt.Errorf("read format: %w", err)
	}
	switch version {
	case formatVersion:
		// Reading each table finds severe damage here, where the file can still be replaced.
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM (SELECT 1 FROM attempt LIMIT 1))
			+ (SELECT count(*) FROM (SELECT 1 FROM entry LIMIT 1))`).Scan(&n); err != nil {
			return fmt.Errorf("read tables: %w", err)
		}
		return nil
	case 0:
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
		return tx.Commit()
	default:
		return fmt.Errorf("format %d, want %d: %w", version, formatVersion, errOtherFormat)
	}
}

// replaceable reports whether err allows to replace the file by a new one.
func replaceable(err error) bool {
	return errors.Is(err, errOtherFormat) || hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
}

// checkOurs returns a ForeignError unless the file is absent, empty, all zeros (a torn first write)
// or marked as Holdfast's.
func checkOurs(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("open interim file: %w", err)
	}
	defer f.Close() //nolint:errcheck // opened to read

	// SQLite's header has 100 bytes: a magic string of 16 bytes first, the application id at 68.
	header := make([]byte, 100)
	if _, err := io.ReadFull(f, header); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read interim file: %w", err)
	}
	if bytes.Equal(header, make([]byte, len(header))) {
		return nil
	}
	if !bytes.HasPrefix(header, []byte("SQLite format 3\x00")) || binary.BigEndian.Uint32(header[68:]) != applicationID {
		return &ForeignError{Path: path}
	}
	return nil
}

// setAside renames the file and its log, and replaces earlier renamed ones.
func setAside(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		to := path + asideSuffix + suffix
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set interim file aside: %w", err)
		}
		if err := os.Rename(path+suffix, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set interim file aside: %w", err)
		}
	}
	return nil
}
