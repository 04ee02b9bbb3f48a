package ocfl

import (
	"context"
	"errors"
	"fmt"
)

// CodeLarge is the code of a fault that the specification does not know: the object was not checked
// to its end, because its names and digests take more memory than ValidateOptions.Memory.
const CodeLarge = "E-large"

// errLarge says that names and digests take more memory than allowed.
var errLarge = errors.New("its names and digests take too much memory")

// Estimates of the memory beside the bytes of names and digests. TestMemory measures the sum.
const (
	perNode    = 64  // of a file of the folder
	perDigest  = 72  // of an entry of a manifest, or a digest of a state
	perPath    = 72  // of a path of a manifest or a state, and of its want
	perString  = 64  // of a string that occurs more than once
	perVersion = 512 // of a version or a block of fixity
)

// listWithin lists a tree whose nodes take at most limit bytes; 0 means no limit. It also returns
// the bytes that they take.
func listWithin(ctx context.Context, t tree, limit int64) (nodes []node, held int64, err error) {
	for n, err := range t.each(ctx) {
		if err != nil {
			return nil, 0, err
		}
		nodes = append(nodes, n)
		if held += int64(len(n.path)) + perNode; limit > 0 && held > limit {
			return nil, held, errLarge
		}
	}
	sortNodes(nodes)
	return nodes, held, nil
}

// tooLarge returns the fault of an object that takes more memory than allowed.
func tooLarge(limit int64) Fault {
	return faultOf(CodeLarge, "", "it was not checked to its end: its names and digests take more than the %d MiB of memory allowed", limit>>20)
}

// held returns the bytes that the decoder holds of an inventory.
func (d *decoder) held() int64 { return d.slots + d.known.held }

// hold counts n more bytes.
func (d *decoder) hold(n int) error {
	d.slots += int64(n)
	if d.limit > 0 && d.held() > d.limit {
		return fmt.Errorf("read %q: %w", d.path, errLarge)
	}
	return nil
}
