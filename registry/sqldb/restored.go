package sqldb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// SettingRestored is the name of the setting with the mark of a restored database, a registry.Restored
// in JSON.
const SettingRestored = "restored"

// PutRestored is the statement that stores it: name, value, reason, actor, time.
const PutRestored = `INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (name) DO UPDATE SET value = $2, reason = $3, actor = $4, at = $5`

// MarkRestored marks a database, which no other process may be using, as restored from a backup. It
// migrates nothing.
func MarkRestored(ctx context.Context, address string, r registry.Restored) (err error) {
	d, err := dialectOf(address)
	if err != nil {
		return err
	}
	write, read, err := d.open()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, write.Close(), read.Close()) }()
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the mark: %w", err)
	}
	_, err = write.ExecContext(ctx, PutRestored, SettingRestored, string(text), r.From, "holdfast backup restore", r.RestoredAt.UnixMicro())
	return err
}
