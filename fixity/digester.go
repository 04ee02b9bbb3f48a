package fixity

import (
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"sync"
)

// stateVersion marks which implementation wrote a saved state. No other implementation reads it
// (R27).
const stateVersion = "go1"

// Digester computes several digests of one stream. It passes large writes to the algorithms in
// parallel, since slow algorithms would otherwise add up. It is not safe for concurrent use.
type Digester struct {
	names  []string
	hashes []hash.Hash
	size   int64
}

// NewDigester returns a digester for the algorithms. It ignores repeated names. The error wraps
// ErrUnknown.
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

// Write implements io.Writer. It never fails, and does not retain p.
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

// Size returns the number of bytes written.
func (d *Digester) Size() int64 { return d.size }

// Sums returns the digests so far, as lower-case hex by algorithm. The stream may continue
// afterwards.
func (d *Digester) Sums() map[string]string {
	sums := make(map[string]string, len(d.names))
	for i, name := range d.names {
		sums[name] = hex.EncodeToString(d.hashes[i].Sum(nil))
	}
	return sums
}

// State is the saved state of a digester, for another process. As JSON it has a few hundred bytes
// (R27).
type State struct {
	Version string            `json:"version"`
	Size    int64             `json:"size"`
	Hashes  map[string][]byte `json:"hashes"`
}

// State returns the digester's state and does not change it.
func (d *Digester) State() (State, error) {
	s := State{Version: stateVersion, Size: d.size, Hashes: map[string][]byte{}}
	for i, name := range d.names {
		m, ok := d.hashes[i].(encoding.BinaryMarshaler)
		if !ok {
			return State{}, fmt.Errorf("save state of %s: not supported", name)
		}
		raw, err := m.MarshalBinary()
		if err != nil {
			return State{}, fmt.Errorf("save state of %s: %w", name, err)
		}
		s.Hashes[name] = raw
	}
	return s, nil
}

// Restore continues from a saved state. It returns false, and changes nothing, if the state is of
// another implementation or of other algorithms. Then the caller must read the bytes again; that is
// not an error (R27).
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
