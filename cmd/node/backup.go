package node

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast/holdfast/backup"
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
