package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast/holdfast/backup"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// BackupSource says what belongs to a backup.
type BackupSource struct {
	Database string // the Registry's address
	Dir      string // the folder of up, with its own keys; "": none
	// SecretKey and ReceiptKey are the keys as they are set; they take precedence over the folder's.
	SecretKey, ReceiptKey string
	Settings              []byte // those in force, without secrets
	Version               string
}

// SettingsFile is the name of the file in a backup with the settings that were in force.
const SettingsFile = "settings.env"

// Options returns the options of a backup to a place. The keys are in the files that a folder of up
// has, so that it can be restored as one.
func (s BackupSource) Options(to string, keep backup.Keep) (backup.Options, error) {
	o := backup.Options{Database: s.Database, To: to, Version: s.Version, Keep: keep, Lock: TakeLock, Extra: map[string][]byte{SettingsFile: s.Settings}}
	own, err := s.own(KeyFile)
	if err != nil {
		return o, err
	}
	keys := []byte(s.SecretKey)
	if len(keys) > 0 && len(own) > 0 {
		keys = append(keys, ',')
	}
	if keys = append(keys, own...); len(keys) > 0 {
		o.Extra[KeyFile] = append(keys, '\n')
	}
	receipts := []byte(s.ReceiptKey)
	if len(receipts) == 0 {
		if receipts, err = s.own(ReceiptKeyFile); err != nil {
			return o, err
		}
	}
	if len(receipts) > 0 {
		o.Extra[ReceiptKeyFile] = append(receipts, '\n')
	}
	return o, nil
}

// own returns the content of a key file in the folder; none if it is missing.
func (s BackupSource) own(name string) ([]byte, error) {
	if s.Dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return bytes.TrimSpace(text), err
}

// BackupPlan says where and how often a Registry is backed up.
type BackupPlan struct {
	To    string // the place; "": nothing is backed up
	Every time.Duration
	Keep  backup.Keep
	BackupSource
}

// backupLook is the interval of checks whether a backup is due. It is short beside any time between
// two backups, so that one that failed is soon tried again.
const backupLook = 10 * time.Minute

// runBackups makes a backup when the newest of this Registry in the place is older than it may be.
func (n *Node) runBackups(p BackupPlan, r registry.BackupNoting, source string) {
	if p.To == "" {
		return
	}
	n.run(periodic.Job{
		Do: func(ctx context.Context) error { return p.makeDue(ctx, n.Log, r, source) }, Every: min(backupLook, p.Every), Log: n.Log,
		Fails: "making a backup failed: there is no newer one than before; will retry", Works: "backups are made again",
	}.Run)
}

// makeDue makes a backup if it is due, and notes it. One that was made and could not be noted is not made
// again: the audit log then lacks it.
func (p BackupPlan) makeDue(ctx context.Context, log *slog.Logger, r registry.BackupNoting, source string) error {
	metrics.BackupPeriod.Set(p.Every.Seconds())
	newest, ok, err := backup.Newest(ctx, p.To, p.Database, source)
	if err != nil {
		return fmt.Errorf("list the backups: %w", err)
	}
	if ok {
		metrics.BackupMade.Set(float64(newest.At.Unix()))
	} else {
		metrics.BackupMade.Set(0)
	}
	if ok && time.Since(newest.At) < p.Every {
		return nil
	}
	o, err := p.Options(p.To, p.Keep)
	if err != nil {
		return err
	}
	made, err := backup.Make(ctx, o)
	if err != nil {
		return err
	}
	metrics.BackupMade.Set(float64(made.At.Unix()))
	if err := r.NoteBackup(ctx, noteOf(made, p.To)); err != nil {
		log.ErrorContext(ctx, "a backup was made and verified, but the audit log and evidence reports will lack it", "name", made.Name, "error", err)
	}
	log.InfoContext(ctx, "backup made and verified", "name", made.Name, "size_bytes", made.Size, "removed", len(made.Removed))
	return nil
}

// noteOf returns what the record keeps of a backup in a place.
func noteOf(made backup.Made, place string) registry.Backup {
	where, _, _ := strings.Cut(place, "?") // options of a bucket are nothing to keep for good
	b := registry.Backup{Name: made.Name, Place: redacted(where), Bytes: made.Size, Program: made.Manifest.Version}
	if d := made.Manifest.Database; d != nil {
		b.Database, b.Objects, b.Versions = true, d.Objects, d.Versions
	}
	return b
}
