// Package storage is the contract of stores for immutable objects. A key has a complete, durable,
// unchanging object, or nothing.
//
// An object appears in one step, when its writer commits, and is never written again. A key is
// created once, read any number of times, and finally deleted. Open, Stat and List never see
// uncommitted bytes. If the process of a writer is killed during Commit, they may see the whole
// object, and a loss of power may take it away: who then relies on it calls [Rely]. The only
// exception to immutability is Replace, which atomically replaces a small object. It is for derived
// data that can be made again, such as an OCFL root inventory.
//
// Checkpoint and Resume continue interrupted writing. A checkpoint names bytes that survive a loss
// of power. A successor never writes where its predecessor did: it starts its own object with a
// copy of those bytes. A predecessor that only seemed dead can therefore do no harm.
//
// The drivers are sub-packages; storagetest is the conformance suite that all of them pass. The
// package does not know what the bytes mean, and does not check their digests.
package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors of all drivers, for errors.Is. An unusable key gives a *KeyError.
var (
	// ErrNotFound says that no committed object has this key, or that a checkpoint's bytes are
	// gone.
	ErrNotFound = errors.New("storage: object not found")
	// ErrTooLarge says that an object has more bytes than are read into memory.
	ErrTooLarge = errors.New("storage: object is too large")
	// ErrExists says that the key already has a committed object, which is unchanged and durable.
	ErrExists = errors.New("storage: object exists")
	// ErrNoSpace says that the volume, or the quota on it, is full. Committed objects are
	// unchanged.
	ErrNoSpace = errors.New("storage: no space left")
	// ErrArchived says that the object's bytes are in an archive and cannot be read at once: see
	// Thaw.
	ErrArchived = errors.New("storage: object is archived")
	// ErrUnlimited says that the store has no limit for Space to report.
	ErrUnlimited = errors.New("storage: no limit on space")
	// ErrRange says that an offset lies outside the object.
	ErrRange = errors.New("storage: offset outside the object")
	// ErrClosed says that a writer was used after Commit, Abort or Close.
	ErrClosed = errors.New("storage: writer is closed")
)

// Store is a flat space of immutable objects. Keys are byte strings, compared and stored byte for
// byte (no Unicode normalisation, no change of case); see CheckKey for the rules. All methods may
// be called concurrently, also from several processes.
type Store interface {
	// Create starts a new object. Nothing is visible under key until the writer commits. Several
	// writers may create the same key; the first to commit gets it.
	Create(ctx context.Context, key string) (Writer, error)

	// Resume starts a new object whose content begins with the cp.Size bytes that cp names. They
	// may belong to a writer of a dead process, to a running one, or to one that has committed.
	// Resume only reads the predecessor's bytes. key should differ from the predecessor's. It
	// returns ErrNotFound if those bytes are gone, or never existed.
	Resume(ctx context.Context, key string, cp Checkpoint) (Writer, error)

	// Discard deletes what an uncommitted writer keeps for the checkpoint and for its later
	// checkpoints. Call it when the checkpoint will not be resumed again. A committed object stays.
	// It is no error if there is nothing to delete, or if the checkpoint is from another store.
	Discard(ctx context.Context, cp Checkpoint) error

	// Open returns a reader of length bytes from offset, or to the end if length is negative or too
	// large. It returns ErrNotFound, ErrArchived, or ErrRange if offset is negative or past the end
	// (at the end it reads nothing). The end of ctx may end the reading too.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// Thaw requests that an archived object be made readable for at least keep, and reports whether
	// it can be read now; any other object can. This takes hours, so call it again: repeats cost
	// nothing while a request is running or has succeeded. With keep 0 it only reports. It returns
	// ErrNotFound.
	Thaw(ctx context.Context, key string, keep time.Duration) (readable bool, err error)

	// Stat describes a committed object, or returns ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)

	// List yields the committed objects whose key begins with prefix, in ascending byte order of
	// the keys. The prefix is bytes and may end inside a name. Objects that come or go meanwhile
	// may or may not be seen. After an error it yields nothing more.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete deletes an object. It is no error if there is none.
	Delete(ctx context.Context, key string) error

	// DeletePrefix deletes the "folder" prefix: the object prefix itself, every object whose key
	// begins with prefix and a slash, and what uncommitted writers left under these keys. It is no
	// error if there is nothing. An interrupted call has deleted a part; a repeat continues.
	DeletePrefix(ctx context.Context, prefix string) error

	// DeleteUnfinished deletes what uncommitted writers left under the key prefix and below that
	// "folder", and nothing that is committed. It is no error if there is nothing.
	DeleteUnfinished(ctx context.Context, prefix string) error

	// Replace makes data the object at key, whether there was one or not. Readers see the old bytes
	// or the new ones, never a mixture. Of several concurrent calls, the last one wins. It is meant
	// for objects of a few MiB at most.
	Replace(ctx context.Context, key string, data []byte) error

	// Space reports how full the volume is. It returns ErrUnlimited if there is no limit.
	Space(ctx context.Context) (Space, error)
}

// Creator starts new objects. A Store and a [Batch] do.
type Creator interface {
	Create(ctx context.Context, key string) (Writer, error)
}

// Writer writes one object. It must not be used concurrently. Every writer ends with Commit, Abort
// or Close; `defer w.Close()` is always right.
type Writer interface {
	// Write appends. After an error, such as ErrNoSpace, the bytes of the last checkpoint are
	// unchanged.
	io.Writer

	// Checkpoint makes everything written so far durable, and returns a name for it that outlives
	// the process.
	Checkpoint(ctx context.Context) (Checkpoint, error)

	// Commit makes everything written durable, and visible under the key, in one step. It returns
	// ErrExists if the key is taken by any writer; that object is unchanged. A repeat after success
	// returns the same answer. After another error the object may exist or not: ask Stat.
	Commit(ctx context.Context) (Info, error)

	// Abort deletes what was written with its checkpoints. After Commit it does nothing.
	Abort() error

	// Close ends the writer and keeps the bytes of the last checkpoint for Resume; later bytes may
	// be lost. After Commit or Abort it does nothing.
	Close() error
}

// Checkpoint names the durable beginning of an object that may not be committed yet. It can be
// encoded as JSON. The same store understands it in any process.
type Checkpoint struct {
	Token string `json:"token"` // meaningful to the driver only; printable ASCII
	Size  int64  `json:"size"`  // bytes
}

// Info describes a committed object.
type Info struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
	ETag     string // changes whenever the bytes at the key may have changed; only compare for equality
}

// Space is the size and usage of a volume, in bytes.
type Space struct {
	Total int64 // usable size
	Used  int64 // used by anyone, not only by this store
}
