package fixity

import (
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"sync"
)

// stateVersion tags saved states with what wrote them; another implementation's are not understood
// (R27).
const stateVersion = "go1"

// Digester takes several digests of one stream. Large writes go to the algorithms side by side,
// each on a core of its own, since the slow ones would otherwise add up. It belongs to one
// goroutine.
type Digester struct {
	names  []string
	hashes []hash.Hash
	size   int64
}

// NewDigester returns a digester for the algorithms; naming one twice is the same as once. The
// error wraps ErrUnknown.
func NewDigester(algorithms ...string) (*Digester, error) {
	d := &Digester{}
	for _, name := range algorithms {
		if slices.Contains(d.names, name) {
			continue
		}
		h, err := New(name)
		if err != nil {
			return nil, err
		}
		d.names, d.hashes = append(d.names, name), append(d.hashes, h)
	}
	return d, nil
}

// Write implements io.Writer. It never fails, and keeps nothing of p.
func (d *Digester) Write(p []byte) (int, error) {
	const worthwhile = 64 << 10
	d.size += int64(len(p))
	if len(d.hashes) < 2 || len(p) < worthwhile {
		for _, h := range d.hashes {
			h.Write(p)
		}
		return len(p), nil
	}
	var wg sync.WaitGroup
	for _, h := range d.hashes[1:] {
		wg.Go(func() { h.Write(p) })
	}
	d.hashes[0].Write(p)
	wg.Wait()
	return len(p), nil
}

// Size is the number of bytes seen.
func (d *Digester) Size() int64 { return d.size }

// Sums returns the digests so far, lower-case hex by algorithm. More may be written after it.
func (d *Digester) Sums() map[string]string {
	sums := make(map[string]string, len(d.names))
	for i, name := range d.names {
		sums[name] = hex.EncodeToString(d.hashes[i].Sum(nil))
	}
	return sums
}

// State is a digester's state, to go on from in another process. It is JSON of a few hundred bytes
// (R27).
type State struct {
	Version string            `json:"version"`
	Size    int64             `json:"size"`
	Hashes  map[string][]byte `json:"hashes"`
}

// State saves where the digester stands, which goes on undisturbed.
func (d *Digester) State() (State, error) {
	s := State{Version: stateVersion, Size: d.size, Hashes: map[string][]byte{}}
	for i, name := range d.names {
		m, ok := d.hashes[i].(encoding.BinaryMarshaler)
		if !ok {
			return State{}, fmt.Errorf("save state of %s: it has none", name)
		}
		raw, err := m.MarshalBinary()
		if err != nil {
			return State{}, fmt.Errorf("save state of %s: %w", name, err)
		}
		s.Hashes[name] = raw
	}
	return s, nil
}

// Restore goes on from a saved state. ok is false, and the digester as it was, when the state is
// another implementation's or of other algorithms: then the bytes are to be digested again, which
// is never an error (R27).
func (d *Digester) Restore(s State) (ok bool) {
	if s.Version != stateVersion || len(s.Hashes) != len(d.names) || s.Size < 0 {
		return false
	}
	fresh := make([]hash.Hash, len(d.names))
	for i, name := range d.names {
		h, err := New(name)
		if err != nil {
			return false
		}
		u, can := h.(encoding.BinaryUnmarshaler)
		if !can || u.UnmarshalBinary(s.Hashes[name]) != nil {
			return false
		}
		fresh[i] = h
	}
	d.hashes, d.size = fresh, s.Size
	return true
}
