package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"maps"
)

// Functions for tests only: injected faults, another reader, older schemas, the writer's settings.

// SetFault makes the writer call f before each of its statements; f's error becomes the
// statement's. Call it while no write is under way.
func (d *DB) SetFault(f func(query string) error) { d.fault = f }

// WriterSettings returns the settings of the writer's session on PostgreSQL.
func WriterSettings() map[string]string { return maps.Clone(writerSettings) }

// SetReader replaces the pool of readers. Call it before the first read. The new pool gets each
// query as it is, not prepared before.
func (d *DB) SetReader(db *sql.DB) error {
	old := d.Read.DB
	d.Read.DB = db
	d.Read.prepared = nil
	return old.Close()
}

// MigrateTo migrates a database's schema to a version, up or down.
func MigrateTo(ctx context.Context, address string, version int64) (err error) {
	d, err := dialectOf(address)
	if err != nil {
		return err
	}
	write, read, err := d.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, write.Close(), read.Close()) }()
	p, err := provider(d, write)
	if err != nil {
		return err
	}
	if have, err := p.GetDBVersion(ctx); err == nil && have > version {
		_, err = p.DownTo(ctx, version)
		return err
	}
	_, err = p.UpTo(ctx, version)
	return err
}
