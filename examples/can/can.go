// Command can is the set-up of an ingest as a graph of eight tasks, after the example in the
// proposal for the Console's task queue. The tasks work on folders:
//
//	1 asset-tree   lists the chosen files with their digests
//	2 link-tree    links them for the tape        (after 1)
//	3 link-tree    links them for the metadata    (after 1)
//	4 link-tree    links them for the proxies     (after 1)
//	5 store-tree   copies the tape's tree to the archive, and compares the digests (after 2)
//	6 scan-tree    notes sizes and media types    (after 3)
//	7 clean-tree   removes the tape's tree        (after 5)
//	8 clean-tree   removes the metadata's tree    (after 6)
//
// Start a process that serves the functions, and submit the graph:
//
//	go run ./examples/can -url URL -token WORKER serve
//	go run ./examples/can -url URL -token OPERATOR submit FROM WORK ARCHIVE
//
// Each function can be killed at any line and called again: it writes beside the final name, and
// gives the name last.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"

	"github.com/holdfast/holdfast/task"
)

// Functions are those of this example.
type Functions struct {
	AssetTree *task.Function[Folder, Assets]
	LinkTree  *task.Function[Link, Folder]
	StoreTree *task.Function[Store, Folder]
	ScanTree  *task.Function[Folder, Scan]
	CleanTree *task.Function[Folder, None]
}

// Folder is a folder by its path.
type Folder struct {
	Path string `json:"path"`
}

// Assets are the files of a folder.
type Assets struct {
	Folder string  `json:"folder"`
	Files  []Asset `json:"files"`
}

// Asset is a file, by its path below the folder.
type Asset struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Link says where a tree of links goes.
type Link struct {
	To string `json:"to"`
}

// Store says which tree is copied, and where to.
type Store struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Scan is what was found out about a tree.
type Scan struct {
	Bytes int64          `json:"bytes"`
	Types map[string]int `json:"types"` // files by media type
}

// None is for functions that return nothing.
type None struct{}

// Register registers the functions.
func Register(m *task.Mux) Functions {
	return Functions{
		AssetTree: task.Handle(m, "asset-tree", assetTree, task.Title("List the files of an ingest")),
		LinkTree:  task.Handle(m, "link-tree", linkTree, task.Title("Make a tree of links")),
		StoreTree: task.Handle(m, "store-tree", storeTree, task.Title("Store a tree in the archive"), task.Slots(2)),
		ScanTree:  task.Handle(m, "scan-tree", scanTree, task.Title("Scan a tree for metadata")),
		CleanTree: task.Handle(m, "clean-tree", cleanTree, task.Title("Remove a tree of links")),
	}
}

// Graph returns the eight tasks for the files in from. Trees are made in work, and the archive's
// copy in archive; all three are absolute paths that every process with the functions sees.
func (f Functions) Graph(from, work, archive string) *task.Graph {
	tape, metadata, proxy := filepath.Join(work, "tape"), filepath.Join(work, "metadata"), filepath.Join(work, "proxy")
	var g task.Graph
	task.Add(&g, "assets", f.AssetTree, Folder{from})
	task.Add(&g, "tape-links", f.LinkTree, Link{tape}, task.After("assets"))
	task.Add(&g, "metadata-links", f.LinkTree, Link{metadata}, task.After("assets"))
	task.Add(&g, "proxy-links", f.LinkTree, Link{proxy}, task.After("assets"))
	task.Add(&g, "tape", f.StoreTree, Store{tape, archive}, task.After("tape-links", "assets"))
	task.Add(&g, "metadata", f.ScanTree, Folder{metadata}, task.After("metadata-links"))
	task.Add(&g, "clean-tape", f.CleanTree, Folder{tape}, task.After("tape"))
	task.Add(&g, "clean-metadata", f.CleanTree, Folder{metadata}, task.After("metadata"))
	return &g
}

func assetTree(ctx context.Context, run *task.Run, in Folder) (Assets, error) {
	out := Assets{Folder: in.Path}
	files := run.Progress("files listed", "files")
	err := each(ctx, in.Path, func(path string) error {
		digest, err := digestOf(filepath.Join(in.Path, path))
		if err == nil {
			out.Files = append(out.Files, Asset{path, digest})
			files.Add(1)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return out, task.Invalid(fmt.Errorf("list %s: %w", in.Path, err)) // no retry brings the folder back
	}
	return out, err
}

func linkTree(ctx context.Context, run *task.Run, in Link) (Folder, error) {
	var assets Assets
	if err := run.Parent(ctx, "assets", &assets); err != nil {
		return Folder{}, err
	}
	return Folder{in.To}, makeTree(ctx, run, in.To, assets.Files, func(a Asset, to string) error {
		return os.Link(filepath.Join(assets.Folder, a.Path), to)
	})
}

func storeTree(ctx context.Context, run *task.Run, in Store) (Folder, error) {
	var assets Assets
	if err := run.Parent(ctx, "assets", &assets); err != nil {
		return Folder{}, err
	}
	return Folder{in.To}, makeTree(ctx, run, in.To, assets.Files, func(a Asset, to string) error {
		if err := copyFile(filepath.Join(in.From, a.Path), to); err != nil {
			return err
		}
		got, err := digestOf(to)
		if err == nil && got != a.SHA256 {
			err = fmt.Errorf("%s was changed on its way: its digest is %s, listed was %s", a.Path, got, a.SHA256)
		}
		return err
	})
}

// makeTree makes a tree of files. A tree that is there was finished by an earlier attempt.
func makeTree(ctx context.Context, run *task.Run, to string, files []Asset, file func(a Asset, to string) error) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	begun := fmt.Sprintf("%s.%s", to, run.ID)
	if err := os.RemoveAll(begun); err != nil {
		return err
	}
	done := run.Progress("files", "files")
	done.SetEnd(int64(len(files)))
	for _, a := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path := filepath.Join(begun, a.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := file(a, path); err != nil {
			return err
		}
		done.Add(1)
	}
	if err := os.MkdirAll(begun, 0o755); err != nil { // of a tree without files
		return err
	}
	return os.Rename(begun, to)
}

func scanTree(ctx context.Context, run *task.Run, in Folder) (Scan, error) {
	out := Scan{Types: map[string]int{}}
	files := run.Progress("files scanned", "files")
	err := each(ctx, in.Path, func(path string) error {
		info, err := os.Stat(filepath.Join(in.Path, path))
		if err != nil {
			return err
		}
		kind, _, _ := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(path)))
		if kind == "" {
			kind = "application/octet-stream"
		}
		out.Bytes += info.Size()
		out.Types[kind]++
		files.Add(1)
		return nil
	})
	return out, err
}

func cleanTree(_ context.Context, _ *task.Run, in Folder) (None, error) {
	return None{}, os.RemoveAll(in.Path)
}

// each calls fn for every file below a folder, in the order of their paths.
func each(ctx context.Context, folder string, fn func(path string) error) error {
	return fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.Type().IsRegular():
			return fn(path)
		}
		return nil
	})
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyFile copies a file and syncs the copy.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
