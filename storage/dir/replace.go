package dir

import "context"

// Replace implements storage.Store by rename(2).
func (s *Store) Replace(ctx context.Context, key string, data []byte) error {
	return s.alone(ctx, func(b *batch) error { return b.Replace(ctx, key, data) })
}

// ReplaceFrom implements storage.Replacer. It copies the bytes inside the kernel and does not link:
// OCFL forbids links between files of one storage root.
func (s *Store) ReplaceFrom(ctx context.Context, key, srcKey string) error {
	return s.alone(ctx, func(b *batch) error { return b.ReplaceFrom(ctx, key, srcKey) })
}

// alone publishes a batch of one object.
func (s *Store) alone(ctx context.Context, add func(*batch) error) error {
	b := s.newBatch()
	defer b.Close() //nolint:errcheck // it drops what was not published
	if err := add(b); err != nil {
		return err
	}
	_, err := b.Publish(ctx)
	return err
}

// rename moves the scratch file name to key.
func (s *Store) rename(name, key string) error {
	if err := s.root.Rename(name, key); err != nil {
		return s.explainTaken(key, err)
	}
	return nil
}
