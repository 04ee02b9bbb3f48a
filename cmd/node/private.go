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

// The most permissions that our files may have (docs/security.md, "Files").
const (
	privateFile   fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
	// sharedFolder is for staging, which processes of several users of one group may share.
	sharedFolder fs.FileMode = 0o770
)

// tighten removes permissions beyond most from a file or folder of ours. It warns if the file
// belongs to another user or the file system keeps the permissions. It ignores a missing file, and
// follows links.
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
	log.WarnContext(ctx, "other users of this machine can access this path; remove their permissions, or move it to a private folder",
		"path", path, "permissions", mode, "most", most.String(), "err", err)
}

// TightenDatabase removes other users' permissions from the SQLite file at an address and from its
// companion files, which SQLite makes with the file's permissions. It makes a missing file, empty,
// so that others never see its content. It ignores other databases.
func TightenDatabase(ctx context.Context, log *slog.Logger, address string) {
	path, ok := strings.CutPrefix(address, "sqlite:")
	if !ok {
		return
	}
	if file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, privateFile); err == nil { // SQLite reports errors
		_ = file.Close()
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		tighten(ctx, log, path+suffix, privateFile)
	}
}

// tightenStaging tightens the folder of a staging address. It ignores buckets.
func tightenStaging(ctx context.Context, log *slog.Logger, address string) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
		tighten(ctx, log, u.Path, sharedFolder)
	}
}
