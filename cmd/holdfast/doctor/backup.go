package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/backup"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// settingBackup is the setting with the address of the place for backups.
const settingBackup = "HOLDFAST_BACKUP_TO"

// checkBackup looks whether the backups that up makes by itself are there, and how old the newest is.
func checkBackup(ctx context.Context, s *site, r *report) {
	place, every := s.config.BackupTo, time.Duration(s.config.BackupEvery)
	if s.role != roleUp {
		return
	}
	if place == "" {
		r.skip("%s is not set: up makes no backups by itself", settingBackup)
		return
	}
	e, err := sqldb.Examine(ctx, s.database())
	if err != nil {
		r.skip("the database cannot be read, so its backups are not known")
		return
	}
	newest, ok, err := backup.Newest(ctx, place, s.database(), e.Source)
	if err != nil {
		r.failed(err, settingBackup, "it must be an existing folder or bucket that this process may write to")
		return
	}
	age := s.now().Sub(newest.At)
	switch {
	case !ok:
		r.warn("the place has no backup of this Registry", "up makes one soon after it starts; its log says why not: making a backup failed")
	case age > 2*every:
		r.fault(fmt.Sprintf("the newest backup, %s, is %s old, and should not be older than %s", newest.Name, terminal.SpanText(age), terminal.SpanText(every)),
			"see why the log of up says: making a backup failed; or make one by hand: holdfast backup make")
	default:
		r.ok("the newest, %s, is %s old", newest.Name, terminal.SpanText(age))
	}
}
