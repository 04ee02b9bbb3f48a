package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/resume"
)

const (
	// noteFiles is how many consecutive files share an interim entry.
	noteFiles = 32
	// notesKept bounds the entries in memory beside those that have something to store.
	notesKept = 64
)

// fetched is the note of a staged file, partialFetch that of an incomplete one. Both include what
// was requested: a note for another request with the same number is ignored.
type fetched struct {
	staging.File
	Asked string `json:"asked"`
}

type partialFetch struct {
	staging.Checkpoint
	Asked string `json:"asked"`
}

// requestDigest returns a digest of the depositor's statements about a file, including its address.
func (m Member) requestDigest() string {
	var algorithm, digest string
	if d := m.Wanted.Digest; d != nil {
		algorithm, digest = d.Algorithm, d.Value
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q", m.Name, m.Wanted.URL, m.Wanted.SizeBytes, algorithm, digest))
	return hex.EncodeToString(sum[:])
}

// notes records the staged files of a Fetcher. It stores them when a kill would cost too much work,
// and when store is called. Its methods may be called concurrently.
type notes struct {
	item   *base.Item
	folder string

	mu      sync.Mutex
	fresh   bool // nothing is stored yet, by no attempt
	entries map[string]noteEntry
	changed map[string]noteEntry // those of them that are not stored
	due     resume.Due
}

// noteEntry has the notes of some files by their number.
type noteEntry map[int64]fetched

// newNotes returns the notes that an earlier attempt left, if any.
func newNotes(ctx context.Context, item *base.Item, folder string) (*notes, error) {
	n := &notes{item: item, folder: folder, entries: map[string]noteEntry{}, changed: map[string]noteEntry{}}
	// Most jobs run once, and need not ask for each file.
	found := errors.New("found")
	err := base.Each(ctx, item, folder+"/", func(string, any) error { return found })
	if err != nil && !errors.Is(err, found) {
		return nil, err
	}
	n.fresh = err == nil
	return n, nil
}

// entry returns the entry of a file.
func (n *notes) entry(ctx context.Context, seq int64) (key string, e noteEntry, err error) {
	key = n.folder + "/files/" + strconv.FormatInt(seq/noteFiles, 10)
	if e, ok := n.entries[key]; ok {
		return key, e, nil
	}
	if !n.fresh {
		if e, _, err = base.Get[noteEntry](ctx, n.item, key); err != nil {
			return key, nil, err
		}
	}
	if e == nil {
		e = noteEntry{}
	}
	if len(n.entries) >= notesKept {
		n.entries = maps.Clone(n.changed)
	}
	n.entries[key] = e
	return key, e, nil
}

// get returns the note of a file, if there is one for this request.
func (n *notes) get(ctx context.Context, m Member) (staging.File, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, e, err := n.entry(ctx, m.Seq)
	noted, ok := e[m.Seq]
	return noted.File, ok && noted.Asked == m.requestDigest(), err
}

// add notes a staged file.
func (n *notes) add(ctx context.Context, m Member, file staging.File) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, e, err := n.entry(ctx, m.Seq)
	if err != nil {
		return err
	}
	e[m.Seq] = fetched{file, m.requestDigest()}
	n.changed[key] = e
	if !n.due.Add(file.SizeBytes) {
		return nil
	}
	return n.storeChanged(ctx)
}

// store stores all notes.
func (n *notes) store(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.storeChanged(ctx)
}

func (n *notes) storeChanged(ctx context.Context) error {
	if len(n.changed) == 0 {
		return nil
	}
	n.fresh = false
	if err := base.PutAll(ctx, n.item, n.changed); err != nil {
		return err
	}
	clear(n.entries)
	clear(n.changed)
	return nil
}

// part returns the key of the note of an incomplete file.
func (n *notes) part(seq int64) string { return n.folder + "/part/" + strconv.FormatInt(seq, 10) }
