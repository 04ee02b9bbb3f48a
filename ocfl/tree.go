package ocfl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// tree is the folder of an object, wherever it is.
type tree interface {
	// list returns all that is in it, sorted by path.
	list(ctx context.Context) ([]node, error)
	// open reads a file. A file that is gone is fs.ErrNotExist.
	open(ctx context.Context, path string) (io.ReadCloser, error)
}

// node is a file, or a folder with nothing in it.
type node struct {
	path string // below the object's folder
	kind nodeKind
}

type nodeKind uint8

const (
	fileNode    nodeKind = iota
	emptyFolder          // only file systems have them
	otherNode            // a symbolic link, a device
)

// storeTree is an object on a store.
type storeTree struct {
	store  storage.Store
	prefix string // ends in a slash, or is empty
}

func (t storeTree) list(ctx context.Context) ([]node, error) {
	var nodes []node
	for info, err := range t.store.List(ctx, t.prefix) {
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node{path: strings.TrimPrefix(info.Key, t.prefix)})
	}
	return nodes, nil
}

func (t storeTree) open(ctx context.Context, path string) (io.ReadCloser, error) {
	in, err := t.store.Open(ctx, t.prefix+path, 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return in, err
}

// fsTree is an object in a file system.
type fsTree struct {
	fsys fs.FS
}

func (t fsTree) list(ctx context.Context) ([]node, error) {
	var nodes []node
	var folders []string // those that nothing was found in yet
	err := fs.WalkDir(t.fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for len(folders) > 0 && strings.HasPrefix(path, folders[len(folders)-1]+"/") {
			folders = folders[:len(folders)-1]
		}
		switch {
		case path == ".":
		case d.IsDir():
			folders = append(folders, path)
		case d.Type().IsRegular():
			nodes = append(nodes, node{path: path})
		default:
			nodes = append(nodes, node{path: path, kind: otherNode})
		}
		return nil
	})
	for _, path := range folders {
		nodes = append(nodes, node{path: path, kind: emptyFolder})
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.path, b.path) })
	return nodes, err
}

func (t fsTree) open(_ context.Context, path string) (io.ReadCloser, error) { return t.fsys.Open(path) }
