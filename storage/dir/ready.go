package dir

import (
	"context"
	"fmt"
	"os"
)

// Ready checks that the directory is still the one that was opened: its volume may have been
// unmounted, or another one mounted over it. It has no remarks.
func (s *Store) Ready(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opened, err := s.top.Stat()
	if err != nil {
		return nil, fmt.Errorf("storage directory %s: %w", s.path, err)
	}
	there, err := os.Stat(s.path)
	if err != nil {
		return nil, fmt.Errorf("storage directory %s: %w", s.path, err)
	}
	if !os.SameFile(opened, there) {
		return nil, fmt.Errorf("storage directory %s: another directory is at this path now; is the volume mounted?", s.path)
	}
	return nil, nil
}
