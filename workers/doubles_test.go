package workers_test

import (
	"bytes"
	"context"

	"github.com/holdfast/holdfast/interim"
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

// countedJobs counts the rows that are sent to be jobs. One of the calls does not reach the Registry, or its answer is lost.
type countedJobs struct {
	registry.Store
	rows, dieAt int
	after       bool
}

func (s *countedJobs) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	s.dieAt--
	if s.dieAt == 0 && !s.after {
		return 0, errTest
	}
	s.rows += len(jobs)
	n, err := s.Store.AddJobs(ctx, l, jobs)
	if s.dieAt == 0 {
		return 0, errTest
	}
	return n, err
}

// countedRecords counts the rows that are recorded; the answer to one of the calls is an error.
type countedRecords struct {
	registry.Store
	rows, failAt int
}

func (s *countedRecords) RecordFiles(ctx context.Context, l registry.Lease, objectID string, version int, files []registry.File) error {
	if s.failAt--; s.failAt == 0 {
		return errTest
	}
	s.rows += len(files)
	return s.Store.RecordFiles(ctx, l, objectID, version, files)
}

// otherOrder is an interim store whose notes of an unpacking are those of a program that goes another way.
type otherOrder struct{ interim.Store }

func (s *otherOrder) Get(ctx context.Context, a interim.Attempt, key string) ([]byte, error) {
	value, err := s.Store.Get(ctx, a, key)
	if key == "unpacking" {
		value = bytes.Replace(value, []byte(`"names":"`), []byte(`"names":"0`), 1)
	}
	return value, err
}
