// Package interim is the contract for what a step has done so far: files finished, byte offsets,
// digest states, upload parts.
//
// It keeps true that losing everything in it costs rework and nothing else. Nothing here is ever
// the only copy of a fact: what must not be redone (a minted ARK) stands in the Registry before it
// is used (I10). So a driver may trade durability for speed. A caller treats what it reads as a
// hint and checks it against the bytes it describes: a checkpoint is written after the fsync of
// those bytes (R4), and one that cannot be read is dropped and the bytes are hashed again (R27).
//
// Everything is keyed by [Attempt], so that a worker whose lease was taken away writes only where
// nobody reads (R26): its successor copies what it needs once, with Adopt, and goes on under its
// own number.
package interim

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Sentinel errors of the contract, tested with errors.Is. Any other error means that the store
// could not be asked: a fault of the system, never of a deposit.
var (
	// ErrNotFound: the attempt has no entry of that key. It may never have been written, or have
	// been lost.
	ErrNotFound = errors.New("interim entry not found")
	// ErrInvalid: an argument that no store can keep: an attempt without item or with a number
	// below 1, an empty key.
	ErrInvalid = errors.New("invalid interim argument")
	// ErrClosed: the store was closed before or during the call.
	ErrClosed = errors.New("interim store is closed")
)

// Attempt names one claim of one item: the pair every entry belongs to. N is the fencing token.
type Attempt struct {
	ItemID string
	N      int64 // from 1, growing with every claim of the item
}

// Validate returns an error that wraps ErrInvalid when the attempt names no item or no claim.
func (a Attempt) Validate() error {
	if a.ItemID == "" {
		return fmt.Errorf("attempt %d without an item: %w", a.N, ErrInvalid)
	}
	if a.N < 1 {
		return fmt.Errorf("item %s with attempt number %d: %w", a.ItemID, a.N, ErrInvalid)
	}
	return nil
}

// String returns the attempt as ITEM/N, the form used in errors and logs.
func (a Attempt) String() string { return fmt.Sprintf("%s/%d", a.ItemID, a.N) }

// ValidateEntries returns an error that wraps ErrInvalid when a key is empty. Drivers call it
// before they write.
func ValidateEntries(entries map[string][]byte) error {
	if _, ok := entries[""]; ok {
		return fmt.Errorf("entry with an empty key: %w", ErrInvalid)
	}
	return nil
}

// Store keeps interim data. All methods may be called concurrently, and every one is safe to repeat
// after an error whose effect is unknown (a lost connection). Keys and values are any bytes, a key
// at least one; keys are compared byte by byte. An empty value comes back with length 0. Every
// method returns ErrClosed after Close, the context's error when it ends first, and ErrInvalid for
// an attempt or key that cannot be.
type Store interface {
	// Put writes all entries in one atomic step: a reader, and a successor's Adopt, sees all of
	// them or none. An entry replaces the one of the same key; other entries stay. With no entries
	// it does nothing. It is meant for a checkpoint (one file, or the few records that belong
	// together), not for a whole attempt: some drivers hold up other writers meanwhile.
	//
	// Put does not check the lease. A superseded worker may write to its own attempt for ever;
	// nothing follows it.
	Put(ctx context.Context, a Attempt, entries map[string][]byte) error

	// Get returns the value of one key, which is the caller's own, or ErrNotFound.
	Get(ctx context.Context, a Attempt, key string) ([]byte, error)

	// Each calls fn for the entries whose key begins with prefix ("" for all), each entry that is
	// there throughout exactly once; one that is put meanwhile may be seen, in either form, or not.
	// The order is the driver's own: sqlstore goes in byte order of the keys, redis in none. The
	// attempt is never held in memory as a whole, and no lock is held while fn runs, so fn may call
	// the store. The value is fn's own to keep. An error of fn ends the walk and is returned,
	// wrapped.
	Each(ctx context.Context, a Attempt, prefix string, fn func(key string, value []byte) error) error

	// Count returns how many entries of the attempt have a key that begins with prefix ("" for
	// all).
	Count(ctx context.Context, a Attempt, prefix string) (int64, error)

	// Adopt copies the entries of the item's newest earlier attempt that has any into a, in one
	// atomic step on the server's side, and returns that attempt's number. When a has entries
	// already it copies nothing: it returns the number it was adopted from, or 0 when it was begun
	// without adopting. It returns 0 when there is nothing to copy. So a repeated call answers as
	// the first one did, and a step that starts again under the same number keeps its newer
	// entries.
	//
	// The earlier attempt keeps its entries, and what its worker still writes there stays unseen by
	// a. Attempts older than that one are dropped, so that an item keeps at most two generations
	// however often it is handed on.
	Adopt(ctx context.Context, a Attempt) (from int64, err error)

	// Drop deletes every attempt of the item; an item without any is not an error. A superseded
	// worker may write afterwards: call Drop again after lease and grace have passed (R26). What
	// lies in storage is cleaned by listing storage, never from here.
	Drop(ctx context.Context, itemID string) error

	// Items yields the id of every item that has entries, each once, in no particular order, for
	// the report of orphans. Items that come or go meanwhile may be yielded or not. An error is
	// yielded last, with an empty id.
	Items(ctx context.Context) iter.Seq2[string, error]

	// Close releases the store's connections, and waits for calls under way or makes them fail with
	// ErrClosed. It may be called twice.
	Close() error
}
