package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// signed compares what the Registry knows after a walk with the newest right checkpoint of each storage: no
// object that it names may be missing, and no chain of events may end before what lay in the storage then.
// Events after that were perhaps not written there yet. It reads each checkpoint twice, a line at a time.
type signed struct {
	roots  ocfl.Roots
	keys   []receipt.PublicKey // that are trusted
	stones []receipt.PublicKey // as walk.keys
	atOnce int
	to     registry.Rebuilding
	look   bool // the Registry may not have all that the storages hold: they are read where it knows less
	// places are the places that the walk met of objects with another identifier in their storages than their
	// ARK, by ARK; nil: the Registry knows them.
	places *sync.Map
	forks  map[string]evidence.Fork // as forks returns it
	// unreadable is called for a checkpoint that is not right, contradicted for an object in one storage
	// that contradicts one.
	unreadable   func(o *Object) error
	contradicted func(o *Object) error
	// lost is called for an object of whose chain a checkpoint names events that neither the Registry nor, with
	// look, a storage has; nil: nobody asks.
	lost func()
	// key is called for the key of each checkpoint that is compared; nil: nobody asks.
	key func(context.Context, registry.ReceiptKey) error
	// progress is called now and then, with how many objects of checkpoints were compared.
	progress func(compared int64)
	compared int64
}

// all compares the checkpoints of all storages.
func (s *signed) all(ctx context.Context) error {
	for _, root := range s.roots {
		name, _, err := s.newest(ctx, root, receipt.CheckpointLines{})
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if err := s.compare(ctx, root, name); err != nil {
			return err
		}
	}
	return nil
}

// forks returns what the newest right checkpoint of each storage says of objects of which events were lost,
// and whose loss two people accepted.
func forks(ctx context.Context, roots ocfl.Roots, keys []receipt.PublicKey) (map[string]evidence.Fork, error) {
	s := signed{roots: roots, keys: keys, unreadable: func(*Object) error { return nil }} // whoever compares it says so
	out := map[string]evidence.Fork{}
	var newest time.Time
	for _, root := range roots {
		gaps := false
		name, c, err := s.newest(ctx, root, receipt.CheckpointLines{Gap: func(receipt.Gap) error { gaps = true; return nil }})
		if err != nil {
			return nil, err
		}
		later := c.At.After(newest)
		if later {
			newest = c.At
		}
		if name == "" || !gaps && len(out) == 0 {
			continue
		}
		ends := map[string]receipt.ChainEnd{}
		_, err = s.read(ctx, root, name, receipt.CheckpointLines{ // again: nothing is kept in memory of one that is not right
			Gap: func(g receipt.Gap) error {
				f := out[g.Object]
				if !slices.Contains(f.Gaps, g) {
					f.Gaps = append(f.Gaps, g)
				}
				out[g.Object] = f
				return nil
			},
			End: func(e receipt.ChainEnd) error {
				if _, forked := out[e.Object]; forked {
					ends[e.Object] = e
				}
				return nil
			},
		})
		if err != nil {
			return nil, err
		}
		for id, end := range ends {
			if f := out[id]; later || f.End.Object == "" {
				f.End = end
				out[id] = f
			}
		}
	}
	return out, nil
}

// read reads a checkpoint. Its error is receipt.ErrCheckpoint if that is not right.
func (s *signed) read(ctx context.Context, root ocfl.Named, name string, lines receipt.CheckpointLines) (c receipt.Checkpoint, err error) {
	in, err := root.Store().Open(ctx, root.CheckpointKey(name), 0, -1)
	if err != nil {
		return c, fmt.Errorf("read checkpoint %s in storage %s: %w", name, root.Name, err)
	}
	lines.Anyone = len(s.keys) == 0
	c, err = receipt.ReadCheckpoint(in, s.keys, lines)
	if err = errors.Join(err, in.Close()); err == nil && c.Storage != root.Name {
		err = fmt.Errorf("%w: it was made for storage %q", receipt.ErrCheckpoint, c.Storage)
	}
	return c, err
}

// newest returns the newest right checkpoint in a storage and its name; "" if there is none. lines is called for
// those that it reads, right or not.
func (s *signed) newest(ctx context.Context, root ocfl.Named, lines receipt.CheckpointLines) (name string, c receipt.Checkpoint, err error) {
	names, err := root.Checkpoints(ctx)
	if err != nil {
		return "", c, fmt.Errorf("list the checkpoints in storage %s: %w", root.Name, err)
	}
	for _, name := range slices.Backward(names) {
		c, err := s.read(ctx, root, name, lines)
		if err == nil {
			return name, c, nil
		}
		if !errors.Is(err, receipt.ErrCheckpoint) {
			return "", c, err
		}
		o := &Object{Copies: []Copy{{Storage: root.Name}}}
		o.Copies[0].fault("checkpoint %s: %v", name, err)
		if err := s.unreadable(o); err != nil {
			return "", c, err
		}
	}
	return "", c, nil
}

// compare compares a checkpoint that is right, several objects at once.
func (s *signed) compare(ctx context.Context, root ocfl.Named, name string) error {
	p := portions{atOnce: s.atOnce, done: func(string) error { s.progress(s.compared); return nil }}
	c, err := s.read(ctx, root, name, receipt.CheckpointLines{End: func(e receipt.ChainEnd) error {
		s.compared++
		return p.run(ctx, e.Object, func(ctx context.Context) error {
			wrong, err := s.end(ctx, root.Name, e)
			if err != nil || wrong == "" {
				return err
			}
			o := &Object{ID: e.Object, Copies: []Copy{{Storage: root.Name}}}
			o.Copies[0].fault("%s, as the signed checkpoint %s says", wrong, name)
			return s.contradicted(o)
		})
	}})
	if err = errors.Join(err, p.end()); err == nil && s.key != nil {
		err = s.key(ctx, registry.ReceiptKey{ID: c.Key, PublicKey: c.PublicKey, FirstUsedAt: c.At})
	}
	return err
}

// end says what contradicts what a checkpoint of a storage says of an object; "": nothing.
func (s *signed) end(ctx context.Context, name string, e receipt.ChainEnd) (string, error) {
	c, err := s.to.EnteredChain(ctx, e.Object, e.Seq)
	if err != nil {
		return "", err
	}
	here := func() bool { return e.Kept == 0 || slices.Contains(c.Storages, name) }
	enough := e.Kept
	if s.lost != nil {
		enough = e.Seq
	}
	if s.look && c.Gone == "" && (c.Head == 0 || c.Last < enough || !here()) {
		if c, err = s.stored(ctx, e, c); err != nil {
			return "", err
		}
	}
	switch {
	case c.Gone != "":
		if s.lost != nil && c.Last > 0 && c.Last < e.Seq { // without any event its tombstone stands for them
			s.lost()
		}
		return "", nil
	case c.Head == 0:
		return "no storage has the object right, which was preserved", nil
	case c.Hash != "" && c.Hash != e.Hash:
		return fmt.Sprintf("event %d of its chain has the hash %s, and had %s: the chain was rewritten", e.Seq, c.Hash, e.Hash), nil
	case c.Last < e.Kept:
		return fmt.Sprintf("its chain of events ends with %d, and lay here up to event %d: it was cut off", c.Last, e.Kept), nil
	case !here():
		return "the object is missing here, and was preserved here", nil
	case s.lost != nil && c.Last < e.Seq:
		s.lost()
	}
	return "", nil
}

// stored returns what the storages have of an object's chain, where that is more than what the Registry
// has.
func (s *signed) stored(ctx context.Context, e receipt.ChainEnd, c registry.EnteredChain) (registry.EnteredChain, error) {
	for _, root := range s.roots {
		is, err := isBuried(ctx, root, e.Object, s.stones)
		if err != nil {
			return c, err
		} else if is {
			c.Gone = registry.DeletionDeleted
			return c, nil
		}
	}
	in := c.Place
	if s.places != nil && in == (registry.Place{}) {
		if met, ok := s.places.Load(e.Object); ok {
			in, _ = met.(registry.Place)
		}
	}
	o, err := Find(ctx, s.roots, s.keys, s.forks[e.Object], e.Object, in)
	if err != nil {
		return c, err
	}
	c.Head = max(c.Head, o.Head)
	for _, found := range o.Copies {
		if found.Head > 0 && !slices.Contains(c.Storages, found.Storage) {
			c.Storages = append(c.Storages, found.Storage)
		}
	}
	report, err := o.evidence.Read(ctx, evidence.Reader{Event: func(event receipt.Event, hash string) error {
		if event.Seq == e.Seq && c.Hash == "" {
			c.Hash = hash
		}
		return nil
	}})
	if err != nil {
		return c, err
	}
	c.Last = max(c.Last, report.Last)
	return c, nil
}
