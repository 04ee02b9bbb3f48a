package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// losses is what the Registry says of the lost events of objects.
type losses struct {
	from    Events
	known   registry.EvidencePlaces
	through func(io.Reader) io.Reader // what segments are read through; nil: nothing
}

// of returns those of the segments that hold events whose loss two people accepted: a trusted key signed
// them, and they continue the record's chain from where events were lost, or each other, up to what was
// signed. The others, in their order, are whole and say something else than the record.
func (l losses) of(ctx context.Context, in Object, others []File) (lost []File, err error) {
	if len(others) == 0 || len(l.known.Lost) == 0 {
		return nil, nil
	}
	keys, err := receipt.RecordedKeys(l.known.Keys)
	if err != nil {
		return nil, err
	}
	for _, gap := range l.known.Lost {
		b := branch{gap: gap, hashes: map[int64]string{gap.After: receipt.Zero}}
		if gap.After > 0 {
			if b.hashes[gap.After], err = l.hash(ctx, in.ID, gap.After); err != nil {
				return nil, err
			}
		}
		if b.next, err = l.hash(ctx, in.ID, gap.After+1); err != nil {
			return nil, err
		}
		var left []File
		for _, f := range others {
			is, err := l.onBranch(ctx, in, f, &b, keys)
			if err != nil {
				return nil, err
			}
			if is {
				lost = append(lost, f)
			} else {
				left = append(left, f)
			}
		}
		others = left
	}
	return lost, nil
}

// branch is the part of a chain that was lost.
type branch struct {
	gap    registry.LostEvents
	next   string           // hash of the record's event after gap.After, which is another one; "": there is none
	hashes map[int64]string // of events from gap.After on, as far as segments that hold them were met
}

// hash returns the hash of an event in the record; "": it has no such event.
func (l losses) hash(ctx context.Context, id string, seq int64) (string, error) {
	page, err := l.from.PremisEvents(ctx, id, registry.AfterSeq(seq-1), 1)
	if err != nil || len(page.Rows) == 0 || page.Rows[0].Seq != seq {
		return "", err
	}
	return page.Rows[0].Hash, nil
}

// onBranch reports whether a segment continues a branch, and notes its events.
func (l losses) onBranch(ctx context.Context, in Object, f File, b *branch, keys []receipt.PublicKey) (bool, error) {
	before := f.First - 1
	if _, met := b.hashes[before]; f.Last <= b.gap.After || before > b.gap.After && !met {
		return false, nil
	}
	file, err := in.open(ctx, f)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read evidence: %w", err)
	}
	var text io.Reader = file
	if l.through != nil {
		text = l.through(file)
	}
	hashes := map[int64]string{}
	result, err := receipt.VerifyEvents(text, receipt.Options{Keys: keys, Event: func(e receipt.Event, hash string) error {
		if e.Seq >= b.gap.After {
			hashes[e.Seq] = hash
		}
		return nil
	}})
	if err := errors.Join(err, file.Close()); err != nil {
		return false, fmt.Errorf("read evidence %s of %s: %w", f, in.ID, err)
	}
	h := result.Header
	if !result.Valid() || !result.Trusted || h.Object != in.ID || h.Events.First != f.First || h.Events.Last() != f.Last {
		return false, nil
	}
	hashes[before] = h.Events.Before // one before the branch began is covered by that of the event with which it began
	for seq, hash := range hashes {
		known, met := b.hashes[seq]
		if met && known != hash || seq == b.gap.To && hash != b.gap.Hash || seq == b.gap.After+1 && hash == b.next {
			return false, nil
		}
	}
	maps.Copy(b.hashes, hashes)
	return true, nil
}
