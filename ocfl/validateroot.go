package ocfl

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/storage"
)

// RootReport is the result of the validation of a storage root. Its faults are those of the root
// itself; each object has its own Report.
type RootReport struct {
	Spec    string `json:"spec"`    // from the declaration
	Layout  string `json:"layout"`  // the extension in ocfl_layout.json
	Objects int    `json:"objects"` // objects that were found
	Invalid int    `json:"invalid"` // objects with errors
	Files   int    `json:"files"`   // content files that were read
	Bytes   int64  `json:"bytes"`   // their total size
	// Faults lists the first 1,000, errors before warnings. Count counts all.
	Faults []Fault `json:"faults"`
	Count  int64   `json:"count"`
}

// Valid reports whether neither the root nor an object in it has an error.
func (r *RootReport) Valid() bool { return len(onlyErrors(r.Faults)) == 0 && r.Invalid == 0 }

// ValidateRoot checks the storage root in the folder key of store against section 4 of OCFL 1.0 or
// 1.1, and every object in it as Validate does. It calls object with each report as soon as it is
// complete, and with the object's folder below the root; an error ends the validation. It returns
// ErrNotFound if the folder is empty. Any other error says that something could not be read, and is
// no verdict. It needs memory for one object and for the faults, however many objects there are.
func ValidateRoot(ctx context.Context, store storage.Store, key string, opts ValidateOptions, object func(folder string, r *Report) error) (*RootReport, error) {
	prefix := ""
	if key != "" {
		prefix = key + "/"
	}
	report, err := validateRoot(ctx, storeTree{store: store, prefix: prefix}, opts, object)
	if err != nil {
		return nil, fmt.Errorf("validate storage root %q: %w", key, err)
	}
	return report, nil
}

// ValidateRootFS does what ValidateRoot does, for a storage root in the root of a file system.
func ValidateRootFS(ctx context.Context, fsys fs.FS, opts ValidateOptions, object func(folder string, r *Report) error) (*RootReport, error) {
	report, err := validateRoot(ctx, fsTree{fsys: fsys}, opts, object)
	if err != nil {
		return nil, fmt.Errorf("validate storage root: %w", err)
	}
	return report, nil
}

func validateRoot(ctx context.Context, t tree, opts ValidateOptions, object func(string, *Report) error) (*RootReport, error) {
	v := &rootValidator{
		tree: t, opts: opts, object: object, report: &RootReport{}, faults: newFaults(),
		ids: make(map[[sha256.Size]byte]bool), depths: make(map[int]bool), reported: make(map[Fault]bool),
	}
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	v.report.Faults, v.report.Count = listed(v.faults)
	return v.report, nil
}

// rootValidator is one validation of a storage root. It walks the root once.
type rootValidator struct {
	tree     tree
	opts     ValidateOptions
	object   func(string, *Report) error
	report   *RootReport
	faults   *faults.List[Fault]
	reported map[Fault]bool // faults that many files may cause, so that each is reported once; bounded

	layout   Layout // nil if unknown
	top      []node // files directly in the root
	branch   []*branch
	folder   string // of the current object, or empty
	gathered []node
	held     int64 // bytes of the gathered nodes
	ids      map[[sha256.Size]byte]bool
	depths   map[int]bool // the depths at which objects lie
}

// branch is a folder of the hierarchy above the current file.
type branch struct {
	name    string   // below the root, ends in a slash
	objects int      // objects below it
	strays  []node   // files in it
	empties []string // empty folders in it
}

func (v *rootValidator) fault(code, path, format string, args ...any) {
	v.faults.Add(faultOf(code, path, format, args...))
}

func (v *rootValidator) run(ctx context.Context) error {
	if err := v.readLayout(ctx); err != nil {
		return err
	}
	empty := true
	for n, err := range v.tree.each(ctx) {
		if err != nil {
			return err
		}
		empty = false
		if err := v.meet(ctx, n); err != nil {
			return err
		}
	}
	if _, isStore := v.tree.(storeTree); isStore && empty {
		return ErrNotFound
	}
	if err := v.finishObject(ctx); err != nil {
		return err
	}
	v.leave("")
	if err := v.checkDeclaration(ctx); err != nil {
		return err
	}
	if v.depths[1] && len(v.depths) > 1 {
		v.fault("W015", "", "some objects lie directly in the root, others in a hierarchy")
	}
	if v.layout == nil && len(v.depths) > 1 {
		v.fault("W014", "", "objects lie at different depths, as with several layouts")
	}
	return nil
}

// meet processes the next file or empty folder of the root.
func (v *rootValidator) meet(ctx context.Context, n node) error {
	if v.folder != "" {
		if rest, ok := strings.CutPrefix(n.path, v.folder+"/"); ok {
			n.path = rest
			v.gather(n)
			return nil
		}
		if err := v.finishObject(ctx); err != nil {
			return err
		}
	}
	top, _, below := strings.Cut(n.path, "/")
	switch {
	case n.kind == otherNode:
		v.fault("E090", n.path, "neither a file nor a folder")
	case n.linked && (!below || top == extensionsFolder):
		v.fault("E090", n.path, "a hard link: another name of the root is the same file")
	case !below && n.kind == emptyFolder:
		v.fault("E073", n.path, "an empty folder")
	case !below:
		v.top = append(v.top, n)
	case top == extensionsFolder:
		v.checkExtension(n)
	default:
		v.meetBelow(n)
	}
	return nil
}

// meetBelow processes a node of the hierarchy that belongs to no known object.
func (v *rootValidator) meetBelow(n node) {
	folder, base := path.Split(n.path)
	v.leave(folder)
	v.enter(folder)
	here := v.branch[len(v.branch)-1]
	isObject := strings.HasPrefix(base, objectPrefix) || base == inventoryName
	if _, _, isVersion := parseVersionName(path.Base(folder)); base == inventoryName && isVersion && strings.Count(folder, "/") > 1 {
		// An object that lost its declaration and its inventory still has the inventories of its
		// versions.
		v.branch = v.branch[:len(v.branch)-1]
		here = v.branch[len(v.branch)-1]
	}
	switch {
	case n.kind == emptyFolder:
		here.empties = append(here.empties, n.path)
	case !isObject:
		here.strays = append(here.strays, n)
	default:
		// The nodes before the file that reveals the object belong to the object too.
		v.folder = strings.TrimSuffix(here.name, "/")
		for _, stray := range append(here.strays, n) {
			stray.path = strings.TrimPrefix(stray.path, here.name)
			v.gather(stray)
		}
		for _, empty := range here.empties {
			v.gather(node{path: strings.TrimPrefix(empty, here.name), kind: emptyFolder})
		}
		here.strays, here.empties = nil, nil
		for _, b := range v.branch {
			b.objects++
		}
	}
}

// enter extends the branch to folder, which is below its end.
func (v *rootValidator) enter(folder string) {
	at := 0
	if len(v.branch) > 0 {
		at = len(v.branch[len(v.branch)-1].name)
	}
	for at < len(folder) {
		at += strings.IndexByte(folder[at:], '/') + 1
		v.branch = append(v.branch, &branch{name: folder[:at]})
	}
}

// leave shortens the branch to the part that it shares with folder, and checks the folders left.
func (v *rootValidator) leave(folder string) {
	for len(v.branch) > 0 {
		b := v.branch[len(v.branch)-1]
		if folder != "" && strings.HasPrefix(folder, b.name) {
			return
		}
		v.branch = v.branch[:len(v.branch)-1]
		name := strings.TrimSuffix(b.name, "/")
		for _, n := range b.strays {
			v.fault("E072", n.path, "a file that belongs to no object")
			switch value, isRoot := strings.CutPrefix(path.Base(n.path), rootPrefix); {
			case isRoot && (value == Spec10 || value == Spec11):
				v.fault("E074", n.path, "a storage root inside another one")
			case b.objects > 0:
				v.fault("E084", n.path, "a file in a folder on the way to objects")
			}
		}
		for _, empty := range b.empties {
			v.fault("E073", empty, "an empty folder")
		}
		if b.objects == 0 && len(b.strays) > 0 {
			v.fault("E085", name, "a folder that ends in no object")
			if strings.Count(name, "/") == 0 {
				v.fault("E088", name, "a folder that is neither of the hierarchy of objects nor the one for extensions")
			}
		}
	}
}

// gather adds a node to the current object, unless the object is too large.
func (v *rootValidator) gather(n node) {
	v.held += int64(len(n.path)) + perNode
	if limit := v.opts.Memory; limit > 0 && v.held > limit {
		v.gathered = nil
		return
	}
	v.gathered = append(v.gathered, n)
}

// finishObject validates the current object.
func (v *rootValidator) finishObject(ctx context.Context) error {
	if v.folder == "" {
		return nil
	}
	folder, nodes, held := v.folder, v.gathered, v.held
	v.folder, v.gathered, v.held = "", nil, 0
	sortNodes(nodes)
	v.checkNested(folder, nodes)
	report, err := &Report{Faults: []Fault{tooLarge(v.opts.Memory)}, Count: 1}, error(nil)
	if limit := v.opts.Memory; limit <= 0 || held <= limit {
		report, err = judge(ctx, v.tree.below(folder), nodes, held, v.opts)
	}
	if err != nil {
		return fmt.Errorf("object %q: %w", folder, err)
	}
	v.checkPlace(folder, report)
	v.depths[strings.Count(folder, "/")+1] = true
	v.report.Objects++
	v.report.Files += report.Files
	v.report.Bytes += report.Bytes
	if !report.Valid() {
		v.report.Invalid++
	}
	return v.object(folder, report)
}

// checkNested reports objects inside an object. An object must be the end of the hierarchy.
func (v *rootValidator) checkNested(folder string, nodes []node) {
	for _, n := range nodes {
		within, base := path.Split(n.path)
		if within == "" || !strings.HasPrefix(base, objectPrefix) || inContent(n.path) {
			continue
		}
		if top, _, _ := strings.Cut(within, "/"); top != extensionsFolder && top != logsFolder {
			v.fault("E082", folder+"/"+n.path, "an object inside another one")
		}
	}
}

// checkPlace checks that an object lies at its place in the layout, or without a known layout, that
// it occurs only once.
func (v *rootValidator) checkPlace(folder string, report *Report) {
	if v.report.Spec != "" && report.Spec > v.report.Spec {
		v.fault("E081", folder, "the object declares OCFL %s, the storage root %s", report.Spec, v.report.Spec)
	}
	if report.ID == "" {
		return
	}
	if v.layout != nil {
		if want, err := v.layout.Path(report.ID); err != nil {
			v.fault("E083", folder, "layout %s has no place for the object %q: %v", v.layout.Name(), report.ID, err)
		} else if want != folder {
			v.fault("E083", folder, "layout %s has the object %q in %s", v.layout.Name(), report.ID, want)
		}
		return // the layout has one place for each object
	}
	id := sha256.Sum256([]byte(report.ID))
	if v.ids[id] {
		v.fault("E083", folder, "another folder also has the object %q", report.ID)
	}
	v.ids[id] = true
}

// checkExtension checks a file or folder in the root's extensions folder (4.4).
func (v *rootValidator) checkExtension(n node) {
	name, _, below := strings.Cut(strings.TrimPrefix(n.path, extensionsFolder+"/"), "/")
	fault := faultOf("W016", extensionsFolder+"/"+name, "not a registered extension")
	switch {
	case !below && n.kind == fileNode:
		v.fault("E112", n.path, "a file among the folders of extensions")
	case !below:
		v.fault("E073", n.path, "an empty folder")
	case !registeredExtension(name) && !v.reported[fault]:
		if len(v.reported) < faults.Most {
			v.reported[fault] = true
		}
		v.faults.Add(fault)
	}
}

// checkDeclaration checks the one file that declares the folder to be a storage root (4.2). Unknown
// files are ignored (E087).
func (v *rootValidator) checkDeclaration(ctx context.Context) error {
	var found []string
	for _, n := range v.top {
		tag, value, isTag := strings.Cut(n.path, "=")
		switch {
		case !isTag || !strings.HasPrefix(value, "ocfl_"):
			if isTag && tag == "0" && v.report.Spec == "" {
				v.fault("E079", n.path, "a declaration begins with %s", rootPrefix)
			}
			continue
		case tag != "0":
			v.fault("E078", n.path, "a declaration begins with 0=")
			if len(tag) != 1 || tag[0] < '0' || tag[0] > '9' {
				v.fault("E075", n.path, "the tag before = is not a digit")
			}
			continue
		case value != "ocfl_"+Spec10 && value != "ocfl_"+Spec11:
			v.fault("E077", n.path, "unknown version of the specification")
			continue
		}
		found = append(found, n.path)
	}
	if len(found) == 0 {
		v.fault("E069", "", "no declaration of a storage root, such as %s%s", rootPrefix, Spec11)
	}
	if len(found) != 1 {
		v.fault("E076", "", "%d declarations of a storage root, want one", len(found))
	}
	for _, name := range found {
		text, err := v.read(ctx, name)
		if err != nil {
			return err
		}
		if text != strings.TrimPrefix(name, "0=")+"\n" {
			v.fault("E080", name, "content is not the file's name after 0= and a newline")
		}
	}
	return nil
}

// read returns a small file of the root.
func (v *rootValidator) read(ctx context.Context, name string) (string, error) {
	return (&validator{tree: v.tree}).read(ctx, name)
}

// readLayout reads the specification version and the layout of the root before the walk, and
// reports the faults of the layout.
func (v *rootValidator) readLayout(ctx context.Context) error {
	for _, spec := range []string{Spec10, Spec11} {
		if _, err := v.read(ctx, rootPrefix+spec); err == nil {
			v.report.Spec = spec
		} else if !gone(err) {
			return err
		}
	}
	text, err := v.read(ctx, layoutName)
	if err != nil {
		if gone(err) {
			return nil
		}
		return err
	}
	var file map[string]any
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		v.fault("E070", layoutName, "not a JSON object: %v", err)
		return nil
	}
	for _, key := range []string{"extension", "description"} {
		if _, ok := file[key].(string); !ok {
			v.fault("E070", layoutName, "key %s is missing or not a string", key)
		}
	}
	name, ok := file["extension"].(string)
	if !ok {
		return nil
	}
	v.report.Layout = name
	if !registeredExtension(name) {
		v.fault("E071", layoutName, "%q is not a registered extension", name)
		return nil
	}
	if !slices.Contains(layouts, name) {
		return nil // this package does not know where the layout places objects
	}
	config, err := v.read(ctx, path.Join(extensionsFolder, name, "config.json"))
	if err != nil && !gone(err) {
		return err
	}
	if v.layout, err = parseLayout(name, []byte(config)); errors.Is(err, ErrLayout) {
		v.fault("E071", path.Join(extensionsFolder, name, "config.json"), "%v", err)
		err = nil
	}
	return err
}
