package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/client"
)

func (a *app) exportCommand() *cobra.Command {
	var x export
	cmd := &cobra.Command{
		Use: "export ID --out DIR", Short: "Write an object's files into a folder",
		Long: "Write an object's files, under the names that their producer gave them, into a new or empty folder. Every file is\n" +
			"compared with its recorded digests before it appears under its name. With --bag the folder becomes a bag (RFC 8493).",
		Args: needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.id = args[0]
			return a.export(cmd.Context(), x)
		},
	}
	cmd.Flags().StringVar(&x.out, "out", "", "the folder to write to; it must be empty or not exist")
	cmd.Flags().BoolVar(&x.system, "system", false, "also write Holdfast's own files, below system/")
	cmd.Flags().BoolVar(&x.bag, "bag", false, "write a BagIt 1.0 bag: all of it, or nothing")
	cmd.Flags().IntVar(&x.version, "version", 0, "which version (default the newest)")
	return a.clientFlags(cmd)
}

// export is what is to be written where, and what has been.
type export struct {
	id      string
	version int
	out     string
	system  bool
	bag     bool

	root  *os.Root
	draft string // the name in the folder of what is not yet whole; no file of the object can have it
	files int64
	bytes int64
}

// exportLine is what `object export --json` prints.
type exportLine struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
	Out      string `json:"out"`
	Files    int64  `json:"files"`
	Bytes    int64  `json:"bytes"`
}

// Where things lie in an object (design section 7).
const (
	producerFolder = "producer/"
	systemFolder   = "system/"
)

// draftPrefix begins the name of what an export has not finished.
const draftPrefix = ".holdfast-"

var (
	errNotEmpty   = errors.New("the folder is not empty")
	errNoVersion  = errors.New("no such version")
	errDamaged    = errors.New("the bytes are not those that were recorded")
	errUnsafeName = errors.New("the name would lead out of the folder")
	errNameTaken  = errors.New("two files of the object would have this name here")
)

func (a *app) export(ctx context.Context, x export) (err error) {
	if x.out == "" {
		return usage("--out DIR is missing")
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	o, err := c.Object(ctx, x.id)
	if err != nil {
		return err
	}
	x.id = o.ID
	switch {
	case x.version == 0:
		x.version = o.Head // named, so that a version that is recorded meanwhile does not mix in
	case x.version < 0 || x.version > o.Head:
		return fix(fmt.Errorf("object %s version %d: %w: %w", o.ID, x.version, errNoVersion, registry.ErrNotFound),
			fmt.Sprintf("it has versions 1 to %d", o.Head))
	}
	if x.root, err = emptyFolder(x.out); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.root.Close()) }()
	x.draft = draftPrefix + rand.Text()
	if x.bag {
		err = x.writeBag(ctx, c, o)
	} else if err = x.writeFiles(ctx, c); err != nil && x.files > 0 {
		a.note("%s of the object are in %s, whole; the others are not", plural(x.files, "file", "files"), x.out)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(exportLine{ObjectID: x.id, Version: x.version, Out: x.out, Files: x.files, Bytes: x.bytes})
	}
	_, err = fmt.Fprintf(a.out, "%s v%d: %s, %s, written to %s\n", x.id, x.version, plural(x.files, "file", "files"), exactSize(x.bytes), x.out)
	return err
}

func (x *export) writeFiles(ctx context.Context, c *client.Client) error {
	_, err := eachRow(ctx, 0, filePage(c, x.id, x.version), func(f registry.File) error {
		if err := x.write(ctx, c, f); err != nil {
			return fmt.Errorf("export %s: %w", f.Path, err)
		}
		return nil
	})
	return err
}

// emptyFolder makes the folder, or takes one that is empty.
func emptyFolder(name string) (*os.Root, error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), draftPrefix) {
			return nil, fix(fmt.Errorf("export to %s: %w: %s is left from an export that was interrupted, or that runs now", name, errNotEmpty, e.Name()),
				"remove the folder if no export runs, or give a new one by --out")
		}
	}
	if len(entries) > 0 {
		return nil, fix(fmt.Errorf("export to %s: %w", name, errNotEmpty), "give a new folder by --out")
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return root, nil
}

// target is where a file of the object goes; ok is false when it is not asked for.
func (x *export) target(f registry.File) (name string, ok bool, err error) {
	if name, ok = strings.CutPrefix(f.Path, producerFolder); !ok {
		name, ok = f.Path, x.system
		if !strings.HasPrefix(f.Path, systemFolder) {
			return "", false, errUnsafeName // such a file should not be
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return "", false, errUnsafeName
	}
	return name, ok, nil
}

// write fetches one file, and gives it its name when it is whole and right.
func (x *export) write(ctx context.Context, c *client.Client, f registry.File) error {
	name, wanted, err := x.target(f)
	if err != nil || !wanted || f.Deleted {
		return err
	}
	if _, err := x.root.Lstat(name); err == nil {
		return errNameTaken // also where the file system takes a and A for the same
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := x.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	err = x.fetch(ctx, c, f)
	if err == nil {
		err = x.root.Rename(x.draft, name)
	}
	if err != nil {
		if gone := x.root.Remove(x.draft); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	x.files++
	x.bytes += f.SizeBytes
	return nil
}

// fetch writes the file's bytes under the draft's name, and compares them with what was recorded.
func (x *export) fetch(ctx context.Context, c *client.Client, f registry.File) (err error) {
	digester, err := fixity.NewDigester(slices.Sorted(maps.Keys(f.Digests))...)
	if err != nil {
		return err
	}
	body, err := c.Content(ctx, x.id, x.version, f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	file, err := x.root.OpenFile(x.draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(io.MultiWriter(file, digester), body)
	if wrong := new(client.DigestError); errors.As(err, &wrong) {
		err = nil // told below, in words for a stored file
	}
	if err != nil {
		return err
	}
	if got := digester.Size(); got != f.SizeBytes {
		return fix(fmt.Errorf("%w: %d bytes came, %d are recorded", errDamaged, got, f.SizeBytes), "run `holdfast object verify "+x.id+"`")
	}
	for algorithm, got := range digester.Sums() {
		if want := f.Digests[algorithm]; !strings.EqualFold(got, want) {
			return fix(fmt.Errorf("%w: %s is %s, %s is recorded", errDamaged, algorithm, got, want), "run `holdfast object verify "+x.id+"`")
		}
	}
	return file.Sync() // its name must not come to stand for anything else, not even after a power cut
}
