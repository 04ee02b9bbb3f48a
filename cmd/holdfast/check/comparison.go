package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// comparison holds a receipt against a folder: an OCFL object, a bag, or what `object export`
// wrote.
type comparison struct {
	root     *os.Root
	folder   string
	ocfl     bool
	payload  string          // of a bag: the folder that the producer's files are in
	seen     map[string]bool // names in the folder that the receipt has
	compared int64
	ours     int64    // of Holdfast's own files, those that are there
	missing  []string // and those that are not: an export may be without them
	leftOut  int64    // how many these are, when it has none of them
}

func compareWith(folder string) (*comparison, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("--against %s: %w", folder, exit.Cause(err))
	}
	c := &comparison{root: root, folder: folder, seen: map[string]bool{}}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--against %s: %w", folder, err), root.Close())
	}
	for _, e := range entries {
		c.ocfl = c.ocfl || strings.HasPrefix(e.Name(), "0=ocfl_object_")
		if e.Name() == bagit.DeclarationFile {
			c.payload = "data/"
		}
	}
	return c, nil
}

// file compares one file of the receipt; it is a receipt.Options.File. Its error is the file's
// fault, unless it wraps receipt.ErrStop.
func (c *comparison) file(f receipt.File) error {
	name, ours := f.Content, false
	if !c.ocfl {
		if name, ours = f.Path, true; strings.HasPrefix(name, registry.ProducerFolder) {
			name, ours = c.payload+strings.TrimPrefix(name, registry.ProducerFolder), false
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return export.ErrName
	}
	info, err := c.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && ours:
		c.leftOut++
		if len(c.missing) < mostMissing {
			c.missing = append(c.missing, name)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("it is missing in %s", c.folder)
	case err != nil:
		return errors.Join(receipt.ErrStop, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("in %s it is no file", c.folder)
	}
	c.seen[name] = true
	if ours {
		c.ours++
	}
	c.compared++
	if info.Size() != f.Size {
		return fmt.Errorf("in %s it has %d bytes, and the receipt says %d", c.folder, info.Size(), f.Size)
	}
	for _, algorithm := range []string{"sha512", "sha256", "sha1", "md5"} {
		if want := f.Digests[algorithm]; want != "" {
			wrong, err := c.digest(name, algorithm, want)
			if err != nil {
				return errors.Join(receipt.ErrStop, err)
			}
			return wrong
		}
	}
	return errors.New("the receipt has no digest of it that this program can take")
}

// mostMissing is how many names are kept, to be told.
const mostMissing = 100

// digest reads a file. wrong says that it is not the one it should be.
func (c *comparison) digest(name, algorithm, want string) (wrong, err error) {
	digester, err := fixity.NewDigester(algorithm)
	if err != nil {
		return nil, err
	}
	file, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(digester, file); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if got := digester.Sums()[algorithm]; got != want {
		wrong = fmt.Errorf("in %s its %s is %s, and the receipt says %s", c.folder, algorithm, got, want)
	}
	return wrong, nil
}

// finish looks for what the receipt does not have, once all that it has was compared.
func (c *comparison) finish(ctx context.Context, r *receipt.Result) error {
	if c.ocfl {
		return errors.Join(c.inventory(r), c.object(ctx, r))
	}
	if c.ours > 0 {
		c.leftOut = 0
		for _, name := range c.missing {
			r.Add(receipt.Fault{Where: "file " + receipt.EscapePath(name), Message: "it is missing in " + c.folder})
		}
	}
	return fs.WalkDir(c.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() || c.seen[name]:
			return nil
		case c.payload != "" && !strings.HasPrefix(name, c.payload) && (c.ours == 0 || !strings.HasPrefix(name, registry.SystemFolder)):
			return nil // a bag's own
		}
		r.Add(receipt.Fault{Where: "file " + receipt.EscapePath(name), Message: "it is in " + c.folder + ", and the receipt has no such file"})
		return nil
	})
}

// inventory compares the version's OCFL inventory with the digest that the receipt has of it.
func (c *comparison) inventory(r *receipt.Result) error {
	name := fmt.Sprintf("v%d/inventory.json", r.Header.Version)
	for _, replica := range r.Header.Replicas {
		algorithm, want, ok := strings.Cut(replica.Inventory, ":")
		if !ok {
			continue
		}
		wrong, err := c.digest(name, algorithm, want)
		if errors.Is(err, fs.ErrNotExist) {
			wrong = errors.New("it is missing in " + c.folder)
		} else if err != nil {
			return err
		}
		if wrong != nil {
			r.Add(receipt.Fault{Where: "file " + name, Message: wrong.Error()})
		}
		c.compared++
		break // all replicas have one inventory
	}
	return nil
}

// object judges the OCFL object by OCFL's own rules: the receipt is of one version, and says
// nothing of the others, of the files that make it an object, or of files that nobody knows.
func (c *comparison) object(ctx context.Context, r *receipt.Result) error {
	report, err := ocfl.ValidateFS(ctx, c.root.FS(), ocfl.ValidateOptions{})
	if err != nil {
		return err
	}
	for _, f := range report.Errors() {
		r.Add(receipt.Fault{Where: "object", Message: f.String()})
	}
	if id := r.Header.Object; report.ID != "" && report.ID != id && id != "" {
		r.Add(receipt.Fault{Where: "object", Message: fmt.Sprintf("in %s lies %s, and the receipt is of %s", c.folder, report.ID, id)})
	}
	return nil
}
