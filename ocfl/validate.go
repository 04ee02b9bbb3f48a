package ocfl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/storage"
)

// ValidateOptions control a validation. The zero value is usable.
type ValidateOptions struct {
	// Memory bounds the memory for the names and digests of an object, in bytes, as an estimate;
	// the process takes about twice as much. 0 means no limit. A larger object is not checked to
	// its end and has the fault CodeLarge.
	Memory int64
}

// Validate checks the object in the folder key of store against the version of OCFL that it
// declares, 1.0 or 1.1. It reads every byte and reports all faults. It returns ErrNotFound if the
// folder is empty. Any other error says that something could not be read, and is no verdict.
func Validate(ctx context.Context, store storage.Store, key string, opts ValidateOptions) (*Report, error) {
	prefix := ""
	if key != "" {
		prefix = key + "/"
	}
	report, err := validate(ctx, storeTree{store: store, prefix: prefix}, opts)
	if err != nil {
		return nil, fmt.Errorf("validate %q: %w", key, err)
	}
	return report, nil
}

// ValidateFS does what Validate does, for an object in the root of a file system.
func ValidateFS(ctx context.Context, fsys fs.FS, opts ValidateOptions) (*Report, error) {
	report, err := validate(ctx, fsTree{fsys: fsys}, opts)
	if err != nil {
		return nil, fmt.Errorf("validate object: %w", err)
	}
	return report, nil
}

// Verify validates the object id of the root. If the folder holds another object it reports the
// fault E083.
func (r *Root) Verify(ctx context.Context, id string, opts ValidateOptions) (*Report, error) {
	base, err := r.ObjectKey(id)
	if err != nil {
		return nil, fmt.Errorf("verify %q: %w", id, err)
	}
	report, err := Validate(ctx, r.store, base, opts)
	if err != nil {
		return nil, err
	}
	if report.ID != "" && report.ID != id {
		report.Faults = sortFaults(append(report.Faults, Fault{
			Code: "E083", Message: fmt.Sprintf("the folder of %q holds %q", id, report.ID),
		}))
	}
	return report, nil
}

func validate(ctx context.Context, t tree, opts ValidateOptions) (*Report, error) {
	nodes, held, err := listWithin(ctx, t, opts.Memory)
	if errors.Is(err, errLarge) {
		return &Report{Faults: []Fault{tooLarge(opts.Memory)}, Count: 1}, nil
	} else if err != nil {
		return nil, err
	}
	if _, isStore := t.(storeTree); isStore && len(nodes) == 0 {
		return nil, ErrNotFound
	}
	return judge(ctx, t, nodes, held, opts)
}

// judge validates the object that consists of the sorted nodes, whose names take held bytes.
func judge(ctx context.Context, t tree, nodes []node, held int64, opts ValidateOptions) (*Report, error) {
	v := &validator{tree: t, nodes: nodes, held: held, opts: opts, report: &Report{}, faults: newFaults()}
	if err := v.run(ctx); errors.Is(err, errLarge) {
		v.faults.Add(tooLarge(opts.Memory))
	} else if err != nil {
		return nil, err
	}
	v.report.Faults, v.report.Count = listed(v.faults)
	return v.report, nil
}

// validator is one validation. Only the hashing of content is concurrent.
type validator struct {
	tree   tree
	nodes  []node
	opts   ValidateOptions
	report *Report
	faults *faults.List[Fault]

	root       *decoded          // nil if it is missing or unusable
	like       *shared           // of root
	rootDigest map[string]string // of the root inventory, by algorithm
	spec       string            // of the declaration
	held       int64             // bytes of names and digests
	versions   []string          // existing version folders, oldest first
	wants      wants
}

func (v *validator) fault(code, path, format string, args ...any) {
	v.faults.Add(faultOf(code, path, format, args...))
}

// addFaults adds the faults of an inventory.
func (v *validator) addFaults(d *decoded) {
	for _, f := range d.faults.Kept() {
		v.faults.Add(f)
	}
	v.faults.Count(d.faults.Total() - int64(len(d.faults.Kept())))
}

func (v *validator) run(ctx context.Context) error {
	for _, n := range v.nodes {
		if n.kind == otherNode {
			v.fault("E090", n.path, "neither a file nor a folder")
		}
		if n.linked {
			v.fault("E090", n.path, "a hard link: another name of the object is the same file")
		}
	}
	if err := v.checkDeclaration(ctx); err != nil {
		return err
	}
	if err := v.checkRootInventory(ctx); err != nil {
		return err
	}
	v.checkTop()
	for _, name := range v.versions {
		v.checkVersionFolder(name)
	}
	if v.root == nil {
		return nil
	}
	v.wants.addInventory(&v.root.inv, inventoryName)
	if err := v.checkVersionInventories(ctx); err != nil {
		return err
	}
	return v.checkContent(ctx)
}

// has reports whether there is a file at path.
func (v *validator) has(path string) bool {
	i, ok := slices.BinarySearchFunc(v.nodes, path, func(n node, p string) int { return strings.Compare(n.path, p) })
	return ok && v.nodes[i].kind == fileNode
}

// read returns a small file.
func (v *validator) read(ctx context.Context, path string) (string, error) {
	in, err := v.tree.open(ctx, path)
	if err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxSmall))
	if err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	return string(data), nil
}

// checkDeclaration checks the one file that declares the folder to be an object (3.2).
func (v *validator) checkDeclaration(ctx context.Context) error {
	var found []string
	for _, n := range v.nodes {
		name := n.path
		if strings.Contains(name, "/") || n.kind != fileNode {
			continue
		}
		tag, value, isTag := strings.Cut(name, "=")
		switch {
		case !isTag:
			continue
		case tag != "0" && strings.HasPrefix(value, "ocfl_object_"):
			v.fault("E005", name, "a declaration begins with 0=")
			if len(tag) != 1 || tag[0] < '0' || tag[0] > '9' {
				v.fault("E002", name, "the tag before = is not a digit")
			}
		case tag != "0":
			continue
		case !strings.HasPrefix(value, "ocfl_object_"):
			v.fault("E006", name, "a declaration begins with %s", objectPrefix)
		case value != "ocfl_object_"+Spec10 && value != "ocfl_object_"+Spec11:
			v.fault("E004", name, "unknown version of the specification")
		}
		found = append(found, name)
	}
	if len(found) != 1 {
		v.fault("E003", "", "%d declarations, want one", len(found))
	}
	for _, name := range found {
		text, err := v.read(ctx, name)
		if err != nil {
			return err
		}
		if want := strings.TrimPrefix(name, "0="); text != want+"\n" {
			v.fault("E007", name, "content is not the file's name after 0= and a newline")
		}
		if spec := strings.TrimPrefix(name, objectPrefix); spec > v.spec && (spec == Spec10 || spec == Spec11) {
			v.spec = spec
		}
	}
	v.report.Spec = v.spec
	return nil
}

// checkRootInventory reads the inventory in the object's folder.
func (v *validator) checkRootInventory(ctx context.Context) error {
	if !v.has(inventoryName) {
		for _, code := range []string{"E063", "E034"} {
			v.fault(code, "", "there is no file %s", inventoryName)
		}
		return nil
	}
	out, sums, err := v.readInventory(ctx, inventoryName)
	if err != nil {
		return err
	}
	v.addFaults(out)
	v.report.ID, v.report.Head = out.inv.ID, out.head
	v.rootDigest = sums
	if v.spec != "" && out.inv.Spec != "" && out.inv.Spec != v.spec {
		v.fault("E038", inventoryName, "type is that of OCFL %s, the object declares %s", out.inv.Spec, v.spec)
	}
	v.held += out.held
	if len(out.inv.Versions) > 0 && out.inv.Manifest != nil {
		v.root, v.like = out, newShared(&out.inv)
	}
	return v.checkSidecar(ctx, inventoryName, out.inv.Algorithm, sums)
}

// readInventory decodes an inventory and returns its digests by algorithm.
func (v *validator) readInventory(ctx context.Context, path string) (*decoded, map[string]string, error) {
	in, err := v.tree.open(ctx, path)
	if err != nil {
		return nil, nil, fmt.Errorf("read %q: %w", path, err)
	}
	defer in.Close()
	hashes := newHashes(SHA512, SHA256, "md5") // md5 is not allowed, but used by invalid objects
	// The decoder may stop early at a fault, but the digest covers the whole file.
	tee := io.TeeReader(storage.Interruptible(ctx, in), hashes)
	limit := int64(0)
	if v.opts.Memory > 0 {
		limit = max(v.opts.Memory-v.held, 1)
	}
	out, err := decodeLike(tee, path, v.like, limit)
	if err == nil {
		_, err = io.Copy(io.Discard, tee)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %q: %w", path, err)
	}
	return out, hashes.sums(), nil
}

// checkSidecar compares an inventory with the digest beside it (3.6).
func (v *validator) checkSidecar(ctx context.Context, inventory, algorithm string, sums map[string]string) error {
	if algorithm == "" {
		return nil // reported as a fault of the inventory
	}
	path := inventory + "." + algorithm
	if !v.has(path) {
		v.fault("E058", inventory, "no sidecar %s", path)
		return nil
	}
	text, err := v.read(ctx, path)
	if err != nil {
		return err
	}
	digest, ok := parseSidecar(text)
	if !ok {
		v.fault("E061", path, "not of the form DIGEST %s", inventoryName)
		return nil
	}
	if got, ok := sums[algorithm]; ok && !strings.EqualFold(got, digest) {
		v.fault("E060", path, "digest is %s, that of the inventory %s", digest, got)
	}
	return nil
}

// gone reports whether a listed file was missing when it was opened.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
