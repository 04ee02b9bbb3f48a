package sqlstore

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// What the contract promises and this driver does not have yet.
var errUnbuilt = errors.ErrUnsupported

// Prepare implements registry.Submitting.
func (s *Store) Prepare(context.Context, registry.Graph) (registry.PreparedGraph, error) {
	return registry.PreparedGraph{}, errUnbuilt
}

// Seal implements registry.Submitting.
func (s *Store) Seal(context.Context, string, string) error { return errUnbuilt }

// Graph implements registry.Reading.
func (s *Store) Graph(context.Context, string) (registry.GraphView, error) {
	return registry.GraphView{}, errUnbuilt
}

// Edges implements registry.Reading.
func (s *Store) Edges(context.Context, string) (requires, required []registry.Edge, err error) {
	return nil, nil, errUnbuilt
}

// SetAccepting implements registry.Administering.
func (s *Store) SetAccepting(context.Context, registry.Accepting) error { return errUnbuilt }

// QueueStatus implements registry.Reading.
func (s *Store) QueueStatus(context.Context) (registry.QueueStatus, error) {
	return registry.QueueStatus{}, errUnbuilt
}

// Tokens implements registry.Administering.
func (s *Store) Tokens(context.Context) ([]registry.Token, error) { return nil, errUnbuilt }

// RevokeToken implements registry.Administering.
func (s *Store) RevokeToken(context.Context, string, string) error { return errUnbuilt }

// Refused implements registry.Administering.
func (s *Store) Refused(context.Context, registry.Refusal) error { return errUnbuilt }

// Feed implements registry.Reading.
func (s *Store) Feed(context.Context, registry.FeedQuery) ([]registry.Event, error) {
	return nil, errUnbuilt
}

// FeedEnd implements registry.Reading.
func (s *Store) FeedEnd(context.Context) (int64, error) { return 0, errUnbuilt }

// AwaitFeed implements registry.Reading.
func (s *Store) AwaitFeed(context.Context, int64) error { return errUnbuilt }
