package cli

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/holdfast/holdfast/backup"
	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
)

// BackupSource says what belongs to a backup of the Registry of up's folder: by the settings in force,
// which it reads from where they come, maybe Parameter Store.
func (a *App) BackupSource(ctx context.Context, dir string) (node.BackupSource, error) {
	settings, c, err := config.InForce(ctx, config.DefaultUp())
	return node.BackupSource{
		Database: cmp.Or(c.DatabaseURL, "sqlite:"+filepath.Join(dir, backup.DatabaseName)), Dir: dir,
		SecretKey: c.SecretKey, ReceiptKey: c.ReceiptKey, Settings: config.Saved(settings), Version: a.Version,
	}, err
}
