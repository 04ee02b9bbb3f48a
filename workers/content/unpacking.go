package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/resume"
)

// noteUnpacking is the interim entry for the progress of unpacking a container.
const noteUnpacking = "unpacking"

// unpacked is the progress of unpacking a container: its first files are staged and listed.
type unpacked struct {
	From  string           `json:"from"`      // key of the list of downloaded files
	List  staging.ListMark `json:"list_mark"` // of the unpacked files
	Files int64            `json:"files"`
	Bytes int64            `json:"bytes"`
	Names string           `json:"names"` // digest of their names and sizes: another walk may have another order
	// Read is how many blocks of the container were read, and Sum is their digest: the staged files
	// come from these bytes.
	Read int    `json:"read"`
	Sum  string `json:"sum"`
}

// errUnpackedDiffers says that this walk of the container has another order than the earlier one,
// or that the earlier one read other bytes.
var errUnpackedDiffers = errors.New("the files unpacked earlier differ")

// unpacking stages the entries of one container.
type unpacking struct {
	item         *base.Item
	container    staging.File
	in           *staging.Blocks // of the container
	limits       unpack.Limits
	store        storage.Store
	room         *staging.Room
	buffers      *staging.Buffers
	list         *staging.ListWriter[staging.File]
	files, bytes *base.Progress
	algorithm    string
	before, now  unpacked  // at the start, and now
	seq          int64     // of the present entry
	names        hash.Hash // of the staged entries
	due          resume.Due
	top          intake.TopFolder
}

// unpacking starts where an earlier attempt stopped, if its progress is there and fits.
func (w *Opener) unpacking(ctx context.Context, item *base.Item, container staging.File, c result.Contents) (*unpacking, error) {
	u := &unpacking{
		item: item, container: container, limits: w.Limits, algorithm: item.Spec().Profile.Digests(), buffers: w.Payloads.Buffers,
		files: item.Progress("files unpacked", "files").Kept(), bytes: item.Progress("bytes unpacked", "bytes").Kept(),
		names: sha256.New(), now: unpacked{From: c.From},
	}
	before, ok, err := base.Get[unpacked](ctx, item, noteUnpacking)
	if err != nil {
		return nil, err
	}
	if ok && before.From == c.From && before.Files > 0 {
		u.list, err = staging.ResumeList[staging.File](ctx, w.Payloads.Staging, c.Key, before.List)
		if err == nil {
			u.before, u.now = before, before
		} else if !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
	}
	if u.list == nil {
		if u.list, err = staging.CreateList[staging.File](ctx, w.Payloads.Staging, c.Key); err != nil {
			return nil, err
		}
	}
	if u.in, err = staging.NewBlocks(w.Payloads.Staging, container.Key, u.algorithm, container.Digests[u.algorithm]); err != nil {
		return nil, errors.Join(err, u.list.Close())
	}
	u.limits.NameEncoding = item.Spec().Profile.NameEncoding
	u.files.Set(u.before.Files)
	u.bytes.Set(u.before.Bytes)
	if u.room, err = w.unpackRoom(item, container, u.before.Bytes); err != nil {
		return nil, errors.Join(err, u.list.Close())
	}
	u.store = u.room.Within(w.Payloads.Staging)
	return u, nil
}

// head reads the container's first bytes.
func (u *unpacking) head(ctx context.Context) ([]byte, error) {
	r, err := u.in.Open(ctx, 0, intake.HeadLen)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", u.container.Name, err)
	}
	defer r.Close()
	head, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", u.container.Name, err)
	}
	return head, nil
}

// walk stages the entries. If it is interrupted, it notes its progress. The staged files count only
// if it returns nil: then all bytes read, also by earlier attempts, are those of the downloaded
// container.
func (u *unpacking) walk(ctx context.Context) error {
	in := unpack.Input{Size: u.container.SizeBytes, Open: u.in.Open}
	err := unpack.Walk(ctx, in, u.limits, func(e unpack.Entry, r io.Reader) error { return u.stageEntry(ctx, e, r) })
	if err == nil && u.seq < u.before.Files {
		err = errUnpackedDiffers
	}
	if err == nil {
		err = u.in.Prove(ctx)
	}
	if err == nil && u.before.Files > 0 && u.in.Sum(u.before.Read) != u.before.Sum {
		err = errUnpackedDiffers
	}
	if err != nil && ctx.Err() != nil {
		// Stopping: the next worker resumes here.
		err = errors.Join(err, u.note(context.WithoutCancel(ctx)))
	}
	return err
}

// stageEntry stages one entry, unless an earlier attempt has.
func (u *unpacking) stageEntry(ctx context.Context, e unpack.Entry, r io.Reader) error {
	u.seq++
	u.top.Add(e.Name)
	if u.seq <= u.before.Files {
		u.addName(e)
		if u.seq == u.before.Files && u.namesSum() != u.before.Names {
			return errUnpackedDiffers
		}
		return nil
	}
	w, err := staging.Create(ctx, u.store, staging.FileKey(u.item.Lease(), unpackedFolder, u.seq), u.algorithm)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // an aborted writer leaves nothing that matters
	if _, err := u.buffers.Copy(w, u.bytes.Reader(r)); err != nil {
		return err
	}
	f, err := w.Commit(ctx, e.Name)
	if err != nil {
		return err
	}
	f.Seq, f.Modified, f.NoZone = u.seq, e.Modified, e.NoZone
	if e.Encoding != unpack.UTF8 {
		f.Raw, f.Encoding = []byte(e.Raw), e.Encoding
	}
	if err := u.list.Add(f); err != nil {
		return err
	}
	u.files.Add(1)
	u.addName(e)
	u.now.Files, u.now.Bytes = u.seq, u.now.Bytes+f.SizeBytes
	if !u.due.Add(f.SizeBytes) {
		return nil
	}
	return u.note(ctx)
}

// addName adds a staged entry to the digest of names.
func (u *unpacking) addName(e unpack.Entry) {
	fmt.Fprintf(u.names, "%q %d\n", e.Raw, e.Size) //nolint:errcheck // it never fails
}

func (u *unpacking) namesSum() string { return hex.EncodeToString(u.names.Sum(nil)) }

// note records the progress. The files are durable first, then their list, and finally the entry
// that names it (R4). It keeps an earlier attempt's entry until this attempt is beyond that
// attempt's files and bytes.
func (u *unpacking) note(ctx context.Context) (err error) {
	if u.before.Files > 0 {
		if u.seq <= u.before.Files || u.in.Count() < u.before.Read {
			return nil
		}
		if u.in.Sum(u.before.Read) != u.before.Sum {
			return errUnpackedDiffers
		}
	}
	u.now.Read = u.in.Count()
	u.now.Sum = u.in.Sum(u.now.Read)
	if u.now.List, err = u.list.Checkpoint(ctx); err != nil {
		return err
	}
	u.now.Names = u.namesSum()
	return base.Put(ctx, u.item, noteUnpacking, u.now)
}
