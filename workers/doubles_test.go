package workers_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// failingJobs is a Registry whose answer to AddJobs is lost.
type failingJobs struct{ registry.ForWorkers }

func (s *failingJobs) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	if _, err := s.ForWorkers.AddJobs(ctx, l, jobs); err != nil {
		return 0, err
	}
	return 0, errTest
}

// countedJobs counts the rows that are sent to be jobs. One of the calls does not reach the
// Registry, or its answer is lost.
type countedJobs struct {
	registry.ForWorkers
	rows, dieAt int
	after       bool
}

func (s *countedJobs) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	s.dieAt--
	if s.dieAt == 0 && !s.after {
		return 0, errTest
	}
	s.rows += len(jobs)
	n, err := s.ForWorkers.AddJobs(ctx, l, jobs)
	if s.dieAt == 0 {
		return 0, errTest
	}
	return n, err
}

// countedRecords counts the rows that are recorded; the answer to one of the calls is an error.
type countedRecords struct {
	registry.ForWorkers
	rows, failAt int
}

func (s *countedRecords) RecordFiles(ctx context.Context, l registry.Lease, objectID string, version int, files []registry.File) error {
	if s.failAt--; s.failAt == 0 {
		return errTest
	}
	s.rows += len(files)
	return s.ForWorkers.RecordFiles(ctx, l, objectID, version, files)
}

// otherOrder is an interim store whose notes of an unpacking are those of a program that goes
// another way, and that has the item's key, as every worker of the item.
type otherOrder struct {
	interim.Store
	key []byte
}

func (s *otherOrder) Get(ctx context.Context, a interim.Attempt, key string) ([]byte, error) {
	kept, err := s.Store.Get(ctx, a, key)
	if err != nil || key != "unpacking" {
		return kept, err
	}
	const head = 9 + sha256.Size
	value := bytes.Replace(kept[head:], []byte(`"names":"`), []byte(`"names":"0`), 1)
	h := hmac.New(sha256.New, s.key)
	h.Write(kept[:9])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(key))))
	h.Write([]byte(key))
	h.Write(value)
	return slices.Concat(kept[:9], h.Sum(nil), value), nil
}

// keyed is a Registry that remembers the key of the last claim.
type keyed struct {
	registry.ForWorkers
	key []byte
}

func (k *keyed) Claim(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	c, err := k.ForWorkers.Claim(ctx, r)
	k.key = c.NoteKey
	return c, err
}
