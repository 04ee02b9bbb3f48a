package ocfl

import (
	"context"
	"errors"
	"fmt"
)

// CodeLarge is the code of a fault of ours, which the specification has not: the object was not
// judged to its end, because its names and digests take more memory than ValidateOptions allow.
const CodeLarge = "E-large"

// errLarge says that names and digests take more memory than they may.
var errLarge = errors.New("its names and digests take too much memory")

// What is held beside the bytes of names and digests, roughly, in bytes. TestMemory measures the
// sum.
const (
	perNode    = 64  // of a file of the folder
	perDigest  = 72  // of an entry of a manifest, or a digest of a state
	perPath    = 72  // of a path of a manifest or a state, and what is promised of it
	perString  = 64  // of a string that occurs more than once
	perVersion = 512 // of a version or a block of fixity
)

// listWithin is list for a tree whose nodes hold at most limit bytes; 0 is any number. It returns
// what they hold.
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

// tooLarge is the fault of an object that takes more memory than it may.
func tooLarge(limit int64) Fault {
	return faultOf(CodeLarge, "", "it was not judged to its end: its names and digests take more than the %d MiB of memory that they may", limit>>20)
}

// held is what the decoder holds of an inventory.
func (d *decoder) held() int64 { return d.slots + d.known.held }

// hold counts n more bytes.
func (d *decoder) hold(n int) error {
	d.slots += int64(n)
	if d.limit > 0 && d.held() > d.limit {
		return fmt.Errorf("read %q: %w", d.path, errLarge)
	}
	return nil
}
