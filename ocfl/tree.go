package ocfl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// tree is the folder of an object or of a storage root, on any medium.
type tree interface {
	// each yields everything in the tree, folder by folder. After an error it stops.
	each(ctx context.Context) iter.Seq2[node, error]
	// open opens a file. If it is missing the error is fs.ErrNotExist.
	open(ctx context.Context, path string) (io.ReadCloser, error)
	// below returns a subfolder as a tree.
	below(folder string) tree
}

// node is a file, or an empty folder.
type node struct {
	path   string // below the tree's folder
	kind   nodeKind
	linked bool // a hard link to an earlier file of the tree
}

type nodeKind uint8

const (
	fileNode    nodeKind = iota
	emptyFolder          // only file systems have them
	otherNode            // a symbolic link, a device
)

func sortNodes(nodes []node) {
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.path, b.path) })
}

// storeTree is a folder of a store.
type storeTree struct {
	store  storage.Store
	prefix string // ends in a slash, or is empty
}

func (t storeTree) each(ctx context.Context) iter.Seq2[node, error] {
	return func(yield func(node, error) bool) {
		for info, err := range t.store.List(ctx, t.prefix) {
			if !yield(node{path: strings.TrimPrefix(info.Key, t.prefix)}, err) || err != nil {
				return
			}
		}
	}
}

func (t storeTree) open(ctx context.Context, path string) (io.ReadCloser, error) {
	in, err := t.store.Open(ctx, t.prefix+path, 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return in, err
}

func (t storeTree) below(folder string) tree {
	return storeTree{store: t.store, prefix: t.prefix + folder + "/"}
}

// fsTree is a folder of a file system.
type fsTree struct {
	fsys   fs.FS
	prefix string // ends in a slash, or is empty
}

func (t fsTree) each(ctx context.Context) iter.Seq2[node, error] {
	return func(yield func(node, error) bool) {
		seen := make(map[inode]bool)
		t.walk(ctx, "", seen, yield)
	}
}

// walk yields the content of a folder, whose name is empty or ends in a slash. It returns false if
// yield did.
func (t fsTree) walk(ctx context.Context, folder string, seen map[inode]bool, yield func(node, error) bool) bool {
	err := ctx.Err()
	var entries []fs.DirEntry
	if err == nil {
		entries, err = fs.ReadDir(t.fsys, t.name(folder))
	}
	if err != nil {
		yield(node{}, err)
		return false
	}
	if len(entries) == 0 && folder != "" {
		return yield(node{path: strings.TrimSuffix(folder, "/"), kind: emptyFolder}, nil)
	}
	for _, d := range entries {
		n := node{path: folder + d.Name(), kind: otherNode}
		switch {
		case d.IsDir():
			if !t.walk(ctx, n.path+"/", seen, yield) {
				return false
			}
			continue
		case d.Type().IsRegular():
			n.kind = fileNode
			if info, err := d.Info(); err == nil { // a removed file is reported when it is read
				if id, ok := linkedInode(info); ok {
					n.linked = seen[id]
					seen[id] = true
				}
			}
		}
		if !yield(n, nil) {
			return false
		}
	}
	return true
}

func (t fsTree) open(_ context.Context, path string) (io.ReadCloser, error) {
	return t.fsys.Open(t.name(path))
}

// name returns the name of a path in the file system.
func (t fsTree) name(path string) string {
	if name := strings.TrimSuffix(t.prefix+path, "/"); name != "" {
		return name
	}
	return "."
}

func (t fsTree) below(folder string) tree {
	return fsTree{fsys: t.fsys, prefix: t.prefix + folder + "/"}
}

// inode identifies a file of this machine.
type inode struct {
	dev, ino uint64
}
