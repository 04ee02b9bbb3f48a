package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// sqliteFloor moves n items through six stages with one UPDATE per stage, in transactions of group
// updates, in SQLite with Holdfast's settings. It is the least work that keeps each stage durable.
func sqliteFloor(ctx context.Context, folder string, n, group int64) (_ time.Duration, err error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.Join(folder, "floor.db")}).EscapedPath()+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, query := range []string{
		`CREATE TABLE item (id INTEGER PRIMARY KEY, stage INTEGER NOT NULL)`,
		fmt.Sprintf(`WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) INSERT INTO item SELECT i, 0 FROM c`, n),
	} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return 0, err
		}
	}
	update, err := db.PrepareContext(ctx, `UPDATE item SET stage = stage + 1 WHERE id = $1`)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, update.Close()) }()
	begun := time.Now()
	for range 6 {
		for first := int64(1); first <= n; first += group {
			if err := together(ctx, db, update, first, min(first+group-1, n)); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(begun), nil
}

// together moves the items from first to last in one transaction.
func together(ctx context.Context, db *sql.DB, update *sql.Stmt, first, last int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	mine := tx.StmtContext(ctx, update)
	defer mine.Close()
	for id := first; id <= last; id++ {
		if _, err := mine.ExecContext(ctx, id); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
