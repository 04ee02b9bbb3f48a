package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/client"
)

// writeBag writes the object as a bag (RFC 8493): the producer's files are the payload, Holdfast's own, where they are
// asked for, tag files. The bag is made in a folder of its own within the one to write to, whose parts are moved up when
// it is whole, bagit.txt last: what has no bagit.txt is no bag. When anything fails nothing is left.
func (x *export) writeBag(ctx context.Context, c *client.Client, o registry.Object) (err error) {
	algorithms, err := x.manifestAlgorithms(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.removeAll())
		}
	}()
	if err := x.root.Mkdir(x.draft, 0o755); err != nil {
		return err
	}
	draft, err := x.root.OpenRoot(x.draft)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	w, err := bagit.NewWriter(ctx, bagit.FolderTarget(draft), bagit.WriterOptions{
		Algorithms: algorithms, Info: x.bagInfo(o, time.Now()),
	})
	if err != nil {
		return err
	}
	_, err = eachRow(ctx, 0, filePage(c, x.id, x.version), func(f registry.File) error {
		if err := x.addToBag(ctx, c, w, f); err != nil {
			return fmt.Errorf("export %s: %w", f.Path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.Close(ctx); err != nil {
		return err
	}
	return x.publish()
}

// manifestAlgorithms has sha256, which every reader of bags knows, and what the object's own inventory uses: the
// strongest that is recorded of its files.
func (x *export) manifestAlgorithms(ctx context.Context, c *client.Client) ([]string, error) {
	algorithms := []string{"sha256"}
	_, err := eachRow(ctx, 1, filePage(c, x.id, x.version), func(f registry.File) error {
		if f.Digests["sha512"] != "" {
			algorithms = append(algorithms, "sha512")
		}
		return nil
	})
	return algorithms, err
}

// bagInfo says what the bag holds. The writer adds Payload-Oxum.
func (x *export) bagInfo(o registry.Object, now time.Time) []bagit.Tag {
	info := []bagit.Tag{
		{Label: "Bag-Software-Agent", Value: "Holdfast " + version},
		{Label: bagit.BaggingDateLabel, Value: now.Format(time.DateOnly)},
		{Label: "External-Identifier", Value: o.ARK},
	}
	for _, id := range o.LocalIDs {
		info = append(info, bagit.Tag{Label: "Internal-Sender-Identifier", Value: clean(id)})
	}
	if o.Title != "" {
		info = append(info, bagit.Tag{Label: "External-Description", Value: clean(o.Title)})
	}
	return append(info, bagit.Tag{Label: "Object-Version", Value: strconv.Itoa(x.version)})
}

// addToBag fetches one file into the bag, compared with what was recorded while it passes.
func (x *export) addToBag(ctx context.Context, c *client.Client, w *bagit.Writer, f registry.File) (err error) {
	name, wanted, err := x.target(f)
	if err != nil || !wanted || f.Deleted {
		return err
	}
	body, err := c.Content(ctx, x.id, x.version, f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	add := w.Add
	if strings.HasPrefix(f.Path, systemFolder) {
		add = w.AddTagFile
	}
	err = add(ctx, name, f.SizeBytes, body, maps.Clone(f.Digests))
	var wrong *client.DigestError
	switch {
	case errors.As(err, &wrong), errors.Is(err, bagit.ErrDigest), errors.Is(err, bagit.ErrSize):
		return fix(fmt.Errorf("%w: %w", errDamaged, err), "run `holdfast object verify "+x.id+"`")
	case errors.Is(err, fs.ErrExist):
		return errNameTaken // also where the file system takes a and A for the same
	case err != nil:
		return err
	}
	x.files++
	x.bytes += f.SizeBytes
	return nil
}

// publish moves the parts of the bag to where they belong.
func (x *export) publish() error {
	parts, err := fs.ReadDir(x.root.FS(), x.draft)
	if err != nil {
		return err
	}
	last := func(e fs.DirEntry) int {
		if e.Name() == bagit.DeclarationFile {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(parts, func(a, b fs.DirEntry) int { return last(a) - last(b) })
	for _, part := range parts {
		if err := x.root.Rename(x.draft+"/"+part.Name(), part.Name()); err != nil {
			return err
		}
	}
	if err := x.root.Remove(x.draft); err != nil {
		return err
	}
	top, err := x.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(top.Sync(), top.Close())
}

// removeAll empties the folder again, in which there was nothing before.
func (x *export) removeAll() error {
	parts, err := fs.ReadDir(x.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, part := range parts {
		err = errors.Join(err, x.root.RemoveAll(part.Name()))
	}
	return err
}
