package dir

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// openRegular opens the regular file name for reading; anything else counts as absent. O_NONBLOCK
// prevents a pipe from blocking the call.
func (s *Store) openRegular(name string) (*os.File, fs.FileInfo, error) {
	f, err := s.openAt(name, os.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// open opens the object key.
func (s *Store) open(op, key string) (*os.File, fs.FileInfo, error) {
	if err := s.check(key); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op, err)
	}
	f, info, err := s.openRegular(key)
	if absent(err) {
		err = fs.ErrNotExist
	}
	return f, info, wrap(op, key, err)
}

// section reads a part of a file, and closes the file.
type section struct {
	io.Reader
	io.Closer
}

// Open implements storage.Store. ctx applies to the opening only.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (r io.ReadCloser, err error) {
	defer measure("Open", time.Now(), &err)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %q: %w", key, err)
	}
	f, info, err := s.open("open", key)
	if err != nil {
		return nil, err
	}
	if offset < 0 || offset > info.Size() {
		_ = f.Close()
		return nil, fmt.Errorf("open %q at %d of %d: %w", key, offset, info.Size(), storage.ErrRange)
	}
	if offset > 0 {
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			_ = f.Close()
			return nil, wrap("open", key, err)
		}
	}
	if length < 0 || length >= info.Size()-offset {
		countBytes("read", info.Size()-offset)
		return f, nil
	}
	countBytes("read", length)
	return section{Reader: io.LimitReader(f, length), Closer: f}, nil
}

// Stat implements storage.Store.
func (s *Store) Stat(ctx context.Context, key string) (_ storage.Info, err error) {
	defer measure("Stat", time.Now(), &err)
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fmt.Errorf("stat %q: %w", key, err)
	}
	if err := s.check(key); err != nil {
		return storage.Info{}, fmt.Errorf("stat: %w", err)
	}
	info, err := s.lstat(key)
	if absent(err) || err == nil && !info.Mode().IsRegular() {
		return storage.Info{}, wrap("stat", key, fs.ErrNotExist)
	}
	if err != nil {
		return storage.Info{}, wrap("stat", key, err)
	}
	return newInfo(key, info), nil
}

// attributes are those of a file that identify an object, since it is created once.
type attributes struct {
	ino      uint64
	size     int64
	modified time.Time
}

func attributesOf(info fs.FileInfo) attributes {
	return attributes{ino: inodeOf(info).ino, size: info.Size(), modified: info.ModTime()}
}

// info describes the object key.
func (a attributes) info(key string) storage.Info {
	etag := strconv.FormatUint(a.ino, 36) + "-" + strconv.FormatInt(a.modified.UnixNano(), 36) + "-" + strconv.FormatInt(a.size, 36)
	return storage.Info{Key: key, Size: a.size, Modified: a.modified, ETag: etag}
}

func newInfo(key string, info fs.FileInfo) storage.Info { return attributesOf(info).info(key) }

// Thaw implements storage.Store. A file is always readable.
func (s *Store) Thaw(ctx context.Context, key string, _ time.Duration) (bool, error) {
	_, err := s.Stat(ctx, key)
	return err == nil, err
}
