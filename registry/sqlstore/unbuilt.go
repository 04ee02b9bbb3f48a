package sqlstore

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// What the contract promises and this driver does not have yet.
var errUnbuilt = errors.ErrUnsupported

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
