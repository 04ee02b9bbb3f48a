package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Replace implements storage.Store by rename(2).
func (s *Store) Replace(ctx context.Context, key string, data []byte) error {
	return s.replace(ctx, key, bytes.NewReader(data))
}

// ReplaceFrom implements storage.Replacer. It copies the bytes inside the kernel and does not link:
// OCFL forbids links between files of one storage root.
func (s *Store) ReplaceFrom(ctx context.Context, key, srcKey string) error {
	from, _, err := s.open("replace", srcKey)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // a read-only handle
	return s.replace(ctx, key, from)
}

func (s *Store) replace(ctx context.Context, key string, content io.Reader) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("replace %q: %w", key, err)
	}
	if err := s.check(key); err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	s.sweepStale(replaceFolder, time.Now())
	f, name, err := s.createScratch(replaceFolder)
	if err != nil {
		return wrap("replace", key, err)
	}
	err = fill(f, content)
	if err == nil {
		err = s.publish(key, func(*os.File, string) error { return s.rename(name, key) })
	}
	if err != nil {
		return errors.Join(wrap("replace", key, err), s.removeScratch(name))
	}
	return nil
}

// fill writes content to f, makes it durable and read-only, and closes it.
func fill(f *os.File, content io.Reader) error {
	_, err := io.Copy(f, content)
	if err == nil {
		err = f.Chmod(objectMode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// rename moves the scratch file name to key.
func (s *Store) rename(name, key string) error {
	if err := s.root.Rename(name, key); err != nil {
		return s.explainTaken(key, err)
	}
	return nil
}

// removeScratch removes the scratch file name, if it exists.
func (s *Store) removeScratch(name string) error {
	if err := s.root.Remove(name); err != nil && !absent(err) {
		return err
	}
	return nil
}
