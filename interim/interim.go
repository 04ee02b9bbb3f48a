// Package interim is the contract of stores for the progress of running steps: finished files, byte
// offsets, digest states, upload parts.
//
// Losing everything here costs rework and nothing else. No entry is the only copy of a fact: what
// must not be repeated (a minted ARK) is in the Registry before it is used (I10). A driver may
// therefore trade durability for speed. A caller treats an entry as a hint and checks it against
// the bytes that it describes. It writes a checkpoint after the fsync of those bytes (R4), drops
// one that it cannot read, and hashes the bytes again (R27).
//
// Every key belongs to an [Attempt]. A worker whose lease was taken away thus writes only where
// nobody reads (R26). Its successor copies what it needs once, with Adopt, and continues under its
// own number. The package does not know what the entries mean.
package interim

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Errors of the contract, for errors.Is. Any other error means that the store could not be reached:
// a system fault, never one of the deposit.
var (
	// ErrNotFound: the attempt has no entry with that key. It was never written, or was lost.
	ErrNotFound = errors.New("interim entry not found")
	// ErrInvalid: an invalid argument: an attempt without an item or with a number below 1, or an
	// empty key.
	ErrInvalid = errors.New("invalid interim argument")
	// ErrClosed: the store was closed before or during the call.
	ErrClosed = errors.New("interim store is closed")
)

// Attempt names one claim of one item, to which entries belong. N is the fencing token.
type Attempt struct {
	ItemID string
	N      int64 // from 1, increasing with every claim of the item
}

// Validate returns an error that wraps ErrInvalid if the attempt names no item or no claim.
func (a Attempt) Validate() error {
	if a.ItemID == "" {
		return fmt.Errorf("attempt %d without an item: %w", a.N, ErrInvalid)
	}
	if a.N < 1 {
		return fmt.Errorf("item %s with attempt number %d: %w", a.ItemID, a.N, ErrInvalid)
	}
	return nil
}

// String returns the attempt as ITEM/N, the form in errors and logs.
func (a Attempt) String() string { return fmt.Sprintf("%s/%d", a.ItemID, a.N) }

// ValidateEntries returns an error that wraps ErrInvalid if a key is empty. Drivers call it before
// they write.
func ValidateEntries(entries map[string][]byte) error {
	if _, ok := entries[""]; ok {
		return fmt.Errorf("entry with an empty key: %w", ErrInvalid)
	}
	return nil
}

// Store keeps interim data. All methods may be called concurrently. Each is safe to repeat after an
// error whose effect is unknown, such as a lost connection. Keys and values are arbitrary bytes; a
// key has at least one. Keys are compared byte by byte. An empty value comes back with length 0.
// Every method returns ErrClosed after Close, the context's error if the context ends first, and
// ErrInvalid for an invalid attempt or key.
type Store interface {
	// Put writes all entries atomically: a reader, and a successor's Adopt, sees all of them or
	// none. An entry replaces the one with the same key; other entries stay. Without entries Put
	// does nothing. It is meant for a checkpoint (one file, or a few related records), not for a
	// whole attempt: some drivers block other writers meanwhile.
	//
	// Put does not check the lease. A superseded worker can write to its own attempt forever
	// without effect.
	Put(ctx context.Context, a Attempt, entries map[string][]byte) error

	// Get returns the value of a key, or ErrNotFound. The caller owns the value.
	Get(ctx context.Context, a Attempt, key string) ([]byte, error)

	// Each calls fn exactly once for every entry whose key begins with prefix ("" for all). An
	// entry that is put meanwhile may be seen, in either form, or not. The order depends on the
	// driver: sqlstore uses byte order of the keys, redis none. Each never holds the whole attempt
	// in memory, and no lock while fn runs, so fn may call the store. fn owns the value. An error
	// of fn ends the walk and is returned, wrapped.
	Each(ctx context.Context, a Attempt, prefix string, fn func(key string, value []byte) error) error

	// Count returns how many entries of the attempt have a key that begins with prefix ("" for
	// all).
	Count(ctx context.Context, a Attempt, prefix string) (int64, error)

	// Adopt copies the entries of the newest earlier attempt that has any into a, atomically and on
	// the server, and returns that attempt's number. If a already has entries, Adopt copies
	// nothing: it returns the number that a was adopted from, or 0 if a started without adopting.
	// It returns 0 if there is nothing to copy. A repeated call therefore returns the same, and a
	// step that restarts under the same number keeps its newer entries.
	//
	// The earlier attempt keeps its entries; a does not see what its worker still writes there.
	// Attempts older than that one are dropped, so that an item keeps at most two attempts.
	Adopt(ctx context.Context, a Attempt) (from int64, err error)

	// Drop deletes all attempts of the item; having none is no error. A superseded worker may write
	// afterwards: call Drop again after lease and grace have passed (R26). To clean up storage,
	// list the storage; interim data do not name everything there.
	Drop(ctx context.Context, itemID string) error

	// Items yields the id of every item that has entries, each once, in no particular order. The
	// report of orphaned data uses it. Items that come or go meanwhile may be yielded or not. An
	// error is yielded last, with an empty id.
	Items(ctx context.Context) iter.Seq2[string, error]

	// Close closes the store. Running calls finish first, or fail with ErrClosed. A second call
	// does nothing.
	Close() error
}
