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

// comparison compares a receipt with a folder: an OCFL object, a bag, or an export.
type comparison struct {
	root     *os.Root
	folder   string
	ocfl     bool
	payload  string          // of a bag: the folder of the producer's files
	seen     map[string]bool // names that are in the folder and in the receipt
	compared int64
	ours     int64    // Holdfast's own files that are in the folder
	missing  []string // Holdfast's own files that are not in it: an export may omit all of them
	leftOut  int64    // number of missing, if the export omits all of them
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

// file compares one file of the receipt, as receipt.Options.File. It returns the file's fault, or
// an error that wraps receipt.ErrStop.
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
		return fmt.Errorf("in %s it is not a file", c.folder)
	}
	c.seen[name] = true
	if ours {
		c.ours++
	}
	c.compared++
	if info.Size() != f.Size {
		return fmt.Errorf("in %s it has %d bytes; the receipt says %d", c.folder, info.Size(), f.Size)
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
	return errors.New("the receipt has no digest of it that this program knows")
}

// mostMissing limits the names of missing files that are reported.
const mostMissing = 100

// digest reads a file and compares its digest. It returns a mismatch as wrong.
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
		wrong = fmt.Errorf("in %s its %s is %s; the receipt says %s", c.folder, algorithm, got, want)
	}
	return wrong, nil
}

// finish reports what the folder has beyond the receipt. Call it after all files of the receipt
// were compared.
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
			return nil // the bag's own files
		}
		r.Add(receipt.Fault{Where: "file " + receipt.EscapePath(name), Message: "it is in " + c.folder + " but not in the receipt"})
		return nil
	})
}

// inventory compares the version's OCFL inventory with the digest in the receipt.
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

// object validates the OCFL object as a whole. The receipt covers one version only, and neither the
// other versions nor the object's own files.
func (c *comparison) object(ctx context.Context, r *receipt.Result) error {
	report, err := ocfl.ValidateFS(ctx, c.root.FS(), ocfl.ValidateOptions{})
	if err != nil {
		return err
	}
	for _, f := range report.Errors() {
		r.Add(receipt.Fault{Where: "object", Message: f.String()})
	}
	if id := r.Header.Object; report.ID != "" && report.ID != id && id != "" {
		r.Add(receipt.Fault{Where: "object", Message: fmt.Sprintf("%s contains %s; the receipt is of %s", c.folder, report.ID, id)})
	}
	return nil
}
