package node

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// What others of this machine may do with what is ours, at most (docs/security.md, "Files").
const (
	privateFile   fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
	// sharedFolder is staging's of processes that may run as several users of one group.
	sharedFolder fs.FileMode = 0o770
)

// tighten takes permissions beyond most away from a file or folder that is ours, whoever gave them
// and whenever it was made. It warns about one that is another user's, and where the file system
// keeps the permissions. What is not there is left out. It follows links. A repeat changes nothing.
func tighten(ctx context.Context, log *slog.Logger, path string, most fs.FileMode) {
	loose := func() (info fs.FileInfo, yes bool, err error) {
		info, err = os.Stat(path)
		return info, err == nil && info.Mode().Perm()&^most != 0, err
	}
	info, yes, err := loose()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !yes {
		return
	}
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			err = errors.New("it belongs to another user")
		} else if err = os.Chmod(path, info.Mode().Perm()&most); err == nil {
			if info, yes, err = loose(); err == nil && yes {
				err = errors.New("its file system keeps them")
			}
		}
	}
	if err == nil {
		return
	}
	mode := "unknown"
	if info != nil {
		mode = info.Mode().Perm().String()
	}
	log.WarnContext(ctx, "others on this machine may use a file or folder of ours; take their permissions away, or put it where they cannot come",
		"path", path, "permissions", mode, "most", most.String(), "err", err)
}

// TightenDatabase takes from others of this machine what they may do with the SQLite file at an
// address, and with what SQLite keeps beside it, which gets the file's own permissions when SQLite
// makes it. A file that is missing is made, empty, so that others never see what comes into it. It
// does nothing for other databases.
func TightenDatabase(ctx context.Context, log *slog.Logger, address string) {
	path, ok := strings.CutPrefix(address, "sqlite:")
	if !ok {
		return
	}
	if file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, privateFile); err == nil { // otherwise SQLite says why
		_ = file.Close()
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		tighten(ctx, log, path+suffix, privateFile)
	}
}

// tightenStaging is tighten for the folder of an address of staging, and does nothing for a bucket.
func tightenStaging(ctx context.Context, log *slog.Logger, address string) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
		tighten(ctx, log, u.Path, sharedFolder)
	}
}
