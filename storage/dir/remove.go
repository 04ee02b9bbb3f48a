package dir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"
)

// Delete implements storage.Store. It also removes folders that become empty.
func (s *Store) Delete(ctx context.Context, key string) (err error) {
	defer measure("Delete", time.Now(), &err)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	if err := s.check(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	info, err := s.lstat(key)
	if err == nil {
		if !info.Mode().IsRegular() {
			return nil
		}
		err = s.root.Remove(key)
	}
	if err != nil && !absent(err) {
		return wrap("delete", key, err)
	}
	return wrap("delete", key, s.settleRemoval(key))
}

// DeletePrefix implements storage.Store.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) (err error) {
	defer measure("DeletePrefix", time.Now(), &err)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete folder %q: %w", prefix, err)
	}
	if err := s.check(prefix); err != nil {
		return fmt.Errorf("delete folder: %w", err)
	}
	// Leftovers first: scratch files must not outlive the objects that they could be resumed into.
	for _, name := range []string{s.pendingPath(prefix), prefix} {
		if err := s.removeTree(name); err != nil {
			return wrap("delete folder", prefix, err)
		}
	}
	return nil
}

// DeleteUnfinished implements storage.Store.
func (s *Store) DeleteUnfinished(ctx context.Context, prefix string) (err error) {
	defer measure("DeleteUnfinished", time.Now(), &err)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete what is unfinished in %q: %w", prefix, err)
	}
	if err := s.check(prefix); err != nil {
		return fmt.Errorf("delete what is unfinished: %w", err)
	}
	return wrap("delete what is unfinished in", prefix, s.removeTree(s.pendingPath(prefix)))
}

// removeTree durably removes name and everything below it.
func (s *Store) removeTree(name string) error {
	if err := s.root.RemoveAll(name); err != nil && !absent(err) {
		return err
	}
	return s.settleRemoval(name)
}

// settleRemoval makes the removal of name durable, and removes folders that it left empty.
func (s *Store) settleRemoval(name string) error {
	folder, err := s.openFolder(path.Dir(name))
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(s.syncs.sync(folder), folder.Close()); err != nil {
		return err
	}
	s.prune(path.Dir(name))
	return nil
}
