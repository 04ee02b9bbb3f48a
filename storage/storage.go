// Package storage keeps bytes under keys. A key holds a whole, durable, unchanging object, or
// nothing.
//
// An object appears in one step, when its writer commits, and is never written to again. A key is
// created once, read any number of times and at last deleted. Open, Stat and List never see
// uncommitted bytes, however their writer ended. The one exception is Replace, which atomically
// swaps a small object for another. It serves derived data (an OCFL root inventory) that can be
// made again.
//
// Checkpoint and Resume continue interrupted writing. A checkpoint names bytes that survive a loss
// of power. A successor never writes where its predecessor did: it begins an object of its own with
// a copy of those bytes. So a predecessor that only seemed dead can do no harm.
//
// Drivers are in sub-packages; storagetest holds the one suite that all of them pass.
package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors that every driver reports through errors.Is. A key that cannot be used is a *KeyError.
var (
	// ErrNotFound says that no committed object has this key, or that the bytes of a checkpoint are
	// gone.
	ErrNotFound = errors.New("storage: object not found")
	// ErrExists says that the key already holds a committed object, which was left as it is.
	ErrExists = errors.New("storage: object exists")
	// ErrNoSpace says that the volume, or the quota on it, is used up. Nothing committed was
	// touched.
	ErrNoSpace = errors.New("storage: no space left")
	// ErrArchived says that the object's bytes were moved to where they cannot be read at once: see
	// Thaw.
	ErrArchived = errors.New("storage: object is archived")
	// ErrUnlimited says that the store has no limit that Space could tell.
	ErrUnlimited = errors.New("storage: no limit on space")
	// ErrRange says that an offset lies outside the object.
	ErrRange = errors.New("storage: offset outside the object")
	// ErrClosed says that a writer was used after Commit, Abort or Close.
	ErrClosed = errors.New("storage: writer is closed")
)

// Store is a flat space of immutable objects. Keys are byte strings, compared and kept byte for
// byte (no Unicode normalisation, no change of case); see CheckKey for the rules. All methods may
// be called concurrently, from several processes too.
type Store interface {
	// Create starts a new object. Nothing is visible under key until the writer commits, and
	// creating the same key twice is no error: the first to commit has it.
	Create(ctx context.Context, key string) (Writer, error)

	// Resume starts a new object whose content begins with the cp.Size bytes that cp names, which
	// may belong to a writer of a dead process, to one that still runs, or to one that has
	// committed. The predecessor's own bytes are only read. key should be one that the predecessor
	// does not use. It returns ErrNotFound when those bytes are gone, or were never here.
	Resume(ctx context.Context, key string, cp Checkpoint) (Writer, error)

	// Discard throws away what an uncommitted writer keeps for the checkpoint, later checkpoints of
	// the same writer included: whoever goes on after one that will not be gone on after again says
	// so. A committed object stays. It is no error when there is nothing, nor when the checkpoint
	// is not of this store.
	Discard(ctx context.Context, cp Checkpoint) error

	// Open reads length bytes from offset on, or to the end when length is negative or reaches past
	// the end. It returns ErrNotFound, ErrArchived, and ErrRange when offset is negative or past
	// the end (an offset at the end reads nothing). Ending ctx may end the reading too.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// Thaw has the bytes of an archived object brought to where they can be read for at least keep,
	// and says whether they can be read now, as those of any other object can. That takes hours, so
	// it is to be called again; while it is under way nothing more is asked for, and when it is
	// done neither. With keep 0 it only says how things stand. It returns ErrNotFound.
	Thaw(ctx context.Context, key string, keep time.Duration) (readable bool, err error)

	// Stat describes a committed object, or returns ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)

	// List yields the committed objects whose key begins with prefix (a byte prefix, which may end
	// inside a name), in ascending byte order of the whole key. Objects that come or go meanwhile
	// may or may not be seen. After an error it yields nothing more.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an object. It is no error when there is none.
	Delete(ctx context.Context, key string) error

	// DeletePrefix removes the "folder" prefix: the object prefix itself, every object whose key
	// begins with prefix and a slash, and what uncommitted writers left under these keys. It is no
	// error when there is nothing. Cut off in the middle it has removed some of them; calling it
	// again goes on.
	DeletePrefix(ctx context.Context, prefix string) error

	// DeleteUnfinished removes what uncommitted writers left under the key prefix and below that
	// "folder", and nothing that is committed. It is no error when there is nothing.
	DeleteUnfinished(ctx context.Context, prefix string) error

	// Replace makes data the object at key, whether there was one or not. Readers see the old bytes
	// or the new ones, never a mixture; of several writers the last one wins. It is meant for
	// objects of a few MiB at most.
	Replace(ctx context.Context, key string, data []byte) error

	// Space tells how full the volume is. It returns ErrUnlimited where there is no limit.
	Space(ctx context.Context) (Space, error)
}

// Writer is an object on its way. It belongs to one goroutine. Every writer is ended by Commit,
// Abort or Close; `defer w.Close()` is always right.
type Writer interface {
	// Write appends. An error (ErrNoSpace among others) leaves the bytes of the last checkpoint as
	// they were.
	io.Writer

	// Checkpoint makes everything written so far durable and returns a name for it that outlives
	// the process.
	Checkpoint(ctx context.Context) (Checkpoint, error)

	// Commit makes everything written durable and visible under the key, in one step. It returns
	// ErrExists when the key is taken, by whomever; that object stays as it is. Called again after
	// success it returns the same answer. After an error the object is either there or not: Stat
	// tells.
	Commit(ctx context.Context) (Info, error)

	// Abort throws away what was written, its checkpoints included. After Commit it does nothing.
	Abort() error

	// Close lets go of the writer and leaves what was checkpointed for Resume; bytes after the last
	// checkpoint may be lost. After Commit or Abort it does nothing.
	Close() error
}

// Checkpoint names the durable beginning of an object that may not be committed yet. It can be
// marshalled as JSON and is understood by the store that gave it, in any process.
type Checkpoint struct {
	Token string `json:"token"` // meaningful to the driver only; printable ASCII
	Size  int64  `json:"size"`  // bytes
}

// Info describes a committed object.
type Info struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
	ETag     string // changes when the bytes at the key may have changed; compared for equality only
}

// Space tells how full a volume is, in bytes.
type Space struct {
	Total int64 // what can be used at all
	Used  int64 // by anyone, not only by this store
}
