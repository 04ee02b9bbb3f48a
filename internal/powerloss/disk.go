package powerloss

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
)

// disk is a file system at one point of a history.
type disk struct {
	top *node
	fds map[int]*descriptor
	// marks are, by thread, what the sync that runs will have made durable.
	marks map[string][]mark
	// opens are, by thread, the file that the open that runs named when it began.
	opens map[string]*node
	// all are the nodes ever made, in order; syncfs needs them.
	all []*node
}

// node is a file or a folder.
type node struct {
	folder bool

	// Of a file: its mode and bytes, those on disk, and the changes since.
	mode, safeMode fs.FileMode
	data, safe     []byte
	changes        []change

	// Of a folder: its names, those on disk, and the changes since.
	names, safeNames map[string]*node
	renames          []rename

	// settled counts the changes and renames that became durable so far.
	settledChanges, settledRenames int
}

// change is a write, or a change of size or mode.
type change struct {
	offset int64
	data   []byte       // nil: the size becomes offset
	mode   *fs.FileMode // nil: it stays
}

// rename gives a name to a node, or takes it away (nil), and takes another name of the same folder
// away with it, as rename(2) does, in one step.
type rename struct {
	base string
	to   *node
	from string // "": no other
	// with is the other half of a rename from one folder to another: the disk has both or neither.
	with *mark
}

// descriptor is an open file.
type descriptor struct {
	node     *node
	offset   int64
	appended bool
}

func newDisk() *disk {
	d := (&disk{}).restarted()
	d.top = d.make(true, 0o755)
	return d
}

// restarted returns the disk that the next process finds after the death of the one before: all that
// this saw is there, and as little of it is durable.
func (d *disk) restarted() *disk {
	d.fds, d.marks, d.opens = map[int]*descriptor{}, map[string][]mark{}, map[string]*node{}
	return d
}

func (d *disk) make(folder bool, mode fs.FileMode) *node {
	n := &node{folder: folder, mode: mode, safeMode: mode}
	if folder {
		n.names, n.safeNames = map[string]*node{}, map[string]*node{}
	}
	d.all = append(d.all, n)
	return n
}

// walk returns the node at a slash-separated name below from, or nil.
func walk(from *node, name string) *node {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case from == nil || !from.folder:
			return nil
		default:
			from = from.names[part]
		}
	}
	return from
}

// rename changes names of the folder.
func (n *node) rename(r rename) {
	r.settle(n.names)
	n.renames = append(n.renames, r)
}

func (n *node) change(c change) {
	if c.mode != nil {
		n.mode = *c.mode
	} else {
		n.data = applied(n.data, c)
	}
	n.changes = append(n.changes, c)
}

// applied returns data, which is changed in place where it is long enough, after a change.
func applied(data []byte, c change) []byte {
	size := c.offset
	if c.data != nil {
		size = max(int64(len(data)), c.offset+int64(len(c.data)))
	}
	if grow := size - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	data = data[:size]
	copy(data[min(c.offset, size):], c.data)
	return data
}

// mark is what a sync that begins now will have made durable: all changes up to these, counted from
// the beginning.
type mark struct {
	node             *node
	changes, renames int
}

func (n *node) mark() mark {
	return mark{n, n.settledChanges + len(n.changes), n.settledRenames + len(n.renames)}
}

// settle makes everything durable that was there at the mark. Another sync may have settled some of
// it, or more, in between.
func (m mark) settle() {
	n := m.node
	changes, renames := max(0, m.changes-n.settledChanges), max(0, m.renames-n.settledRenames)
	for _, c := range n.changes[:changes] {
		if c.mode != nil {
			n.safeMode = *c.mode
		} else {
			n.safe = applied(n.safe, c)
		}
	}
	done := n.renames[:renames]
	for _, r := range done {
		r.settle(n.safeNames)
	}
	n.changes, n.renames = n.changes[changes:], n.renames[renames:]
	n.settledChanges += changes
	n.settledRenames += renames
	for _, r := range done {
		if r.with != nil {
			r.with.settle()
		}
	}
}

// moved renames a node from one folder to another.
func moved(from *node, name string, to *node, base string, n *node) {
	to.rename(rename{base: base, to: n})
	from.rename(rename{base: name})
	there, here := to.mark(), from.mark()
	there.changes, here.changes = 0, 0
	to.renames[len(to.renames)-1].with, from.renames[len(from.renames)-1].with = &here, &there
}

func (r rename) settle(names map[string]*node) {
	if r.from != "" {
		delete(names, r.from)
	}
	if r.to == nil {
		delete(names, r.base)
	} else {
		names[r.base] = r.to
	}
}

// at replays the history up to a point.
func (h *History) at(point int) (*disk, error) {
	d, err := h.begin()
	if err != nil {
		return nil, err
	}
	for i, o := range h.ops[:point] {
		if err := o.apply(d); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return d, nil
}

// Seen returns what the program itself saw at a point.
func (h *History) Seen(point int) (*Image, error) {
	d, err := h.at(point)
	if err != nil {
		return nil, err
	}
	return &Image{d.top}, nil
}

// Worst returns the disk that has nothing but what was made durable before the point.
func (h *History) Worst(point int) (*Image, error) {
	return h.image(point, func(int) int { return 0 }, nil)
}

// Some returns one of the disks that the power may leave at a point.
func (h *History) Some(point int, random *rand.Rand) (*Image, error) {
	return h.image(point, func(n int) int { return random.IntN(n + 1) }, random)
}

// image replays the history and then gives each folder the first kept(n) of its n changes since its
// last sync, and each file some of its own; random nil: none.
func (h *History) image(point int, kept func(int) int, random *rand.Rand) (*Image, error) {
	d, err := h.at(point)
	if err != nil {
		return nil, err
	}
	var folders []mark
	for _, n := range d.all {
		if n.folder {
			folders = append(folders, mark{node: n, renames: n.settledRenames + kept(len(n.renames))})
			continue
		}
		n.data, n.mode = slices.Clone(n.safe), n.safeMode
		if random != nil {
			n.torn(random)
		}
	}
	for _, m := range folders {
		m.settle() // and, with it, other halves of renames
	}
	for _, m := range folders {
		m.node.names = m.node.safeNames
	}
	return &Image{d.top}, nil
}

// sector is what a disk writes at once.
const sector = 512

// torn applies some of the unsynced changes to what is on disk: each may be there, be missing, be
// there up to a sector, or have left the file's size alone.
func (n *node) torn(random *rand.Rand) {
	for _, c := range n.changes {
		how := random.IntN(4)
		switch {
		case how == 0: // missing
		case c.mode != nil:
			n.mode = *c.mode
		case how == 1 || c.data == nil:
			n.data = applied(n.data, c)
		case how == 2: // up to a sector
			c.data = c.data[:min(len(c.data), random.IntN(len(c.data)/sector+1)*sector)]
			n.data = applied(n.data, c)
		default: // the size alone
			n.data = applied(n.data, change{offset: max(int64(len(n.data)), c.offset+int64(len(c.data)))})
		}
	}
}
