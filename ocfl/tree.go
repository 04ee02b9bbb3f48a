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

// tree is the folder of an object or of a storage root, wherever it is.
type tree interface {
	// each yields all that is in it; what lies in one folder comes together. After an error it
	// yields nothing more.
	each(ctx context.Context) iter.Seq2[node, error]
	// open reads a file. A file that is gone is fs.ErrNotExist.
	open(ctx context.Context, path string) (io.ReadCloser, error)
	// below is a folder of it.
	below(folder string) tree
}

// node is a file, or a folder with nothing in it.
type node struct {
	path   string // below the tree's folder
	kind   nodeKind
	linked bool // a file that the tree has under another name, too
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

// storeTree is a folder on a store.
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

// walk yields what is in a folder, whose name is empty or ends in a slash. It is false when nothing
// more is wanted.
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
			if info, err := d.Info(); err == nil { // one that is gone meanwhile is missed when it is read
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

// name is how the file system has a path of the tree.
func (t fsTree) name(path string) string {
	if name := strings.TrimSuffix(t.prefix+path, "/"); name != "" {
		return name
	}
	return "."
}

func (t fsTree) below(folder string) tree {
	return fsTree{fsys: t.fsys, prefix: t.prefix + folder + "/"}
}

// inode tells the files of one machine apart.
type inode struct {
	dev, ino uint64
}
