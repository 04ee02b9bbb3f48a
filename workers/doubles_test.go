package workers_test

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// failingJobs is a Registry whose answer to AddJobs is lost.
type failingJobs struct{ registry.Store }

func (s *failingJobs) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	if _, err := s.Store.AddJobs(ctx, l, jobs); err != nil {
		return 0, err
	}
	return 0, errTest
}
