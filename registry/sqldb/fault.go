package sqldb

import (
	"context"
	"database/sql"
	"errors"
)

// What tests need of a database: faults, and the schema of another day.

// SetFault makes the writer ask f before each of its statements; its error is the statement's. It
// must be called while no write is under way.
func (d *DB) SetFault(f func(query string) error) { d.fault = f }

// SetReader replaces the pool that reads go through. It must be called before the first read.
func (d *DB) SetReader(db *sql.DB) error {
	old := d.Read.DB
	d.Read.DB = db
	return old.Close()
}

// MigrateTo brings a database's schema to a version, up or down.
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
