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

// RootReport is the outcome of the validation of a storage root. Its faults are the root's own;
// those of objects are in their reports.
type RootReport struct {
	Spec    string `json:"spec"`    // of the declaration
	Layout  string `json:"layout"`  // the extension that ocfl_layout.json names
	Objects int    `json:"objects"` // that were found
	Invalid int    `json:"invalid"` // how many of them have errors
	Files   int    `json:"files"`   // content files that were read
	Bytes   int64  `json:"bytes"`   // and their size
	// Faults are the first 1,000, errors before warnings. Count counts all.
	Faults []Fault `json:"faults"`
	Count  int64   `json:"count"`
}

// Valid says that neither the root nor an object of it has an error.
func (r *RootReport) Valid() bool { return len(onlyErrors(r.Faults)) == 0 && r.Invalid == 0 }

// Codes returns the codes of the root's own faults, sorted, each once.
func (r *RootReport) Codes() []string { return codesOf(r.Faults) }

// ValidateRoot judges the storage root in the folder key of store by section 4 of OCFL 1.0 or 1.1,
// and every object in it as Validate does. object gets the report of each as soon as it is known,
// with its folder below the root; its error ends the validation. An error says that something could
// not be read, which is no verdict; ErrNotFound, that the folder holds nothing. Memory is needed
// for one object and for what is wrong, however many objects there are.
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

// ValidateRootFS is ValidateRoot for a storage root in the root of a file system.
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
		ids: make(map[[sha256.Size]byte]bool), depths: make(map[int]bool), told: make(map[Fault]bool),
	}
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	v.report.Faults, v.report.Count = listed(v.faults)
	return v.report, nil
}

// rootValidator is one validation of a storage root, which it walks once.
type rootValidator struct {
	tree   tree
	opts   ValidateOptions
	object func(string, *Report) error
	report *RootReport
	faults *faults.List[Fault]
	told   map[Fault]bool // of those that many files would give rise to; the first of very many

	layout   Layout // nil where it is not known
	top      []node // files directly in the root
	branch   []*branch
	folder   string // of the object that is being gathered, or empty
	gathered []node
	held     int64 // bytes of them
	ids      map[[sha256.Size]byte]bool
	depths   map[int]bool // at which objects lie
}

// branch is a folder of the hierarchy, on the way to what is being looked at.
type branch struct {
	name    string   // below the root, with a slash at the end
	objects int      // below it
	strays  []node   // files in it
	empties []string // folders in it that hold nothing
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
		v.fault("W014", "", "objects lie at different depths, as by more than one layout")
	}
	return nil
}

// meet takes the next file, or empty folder, of the root.
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

// meetBelow takes what lies in the hierarchy, in no object that is known by now.
func (v *rootValidator) meetBelow(n node) {
	folder, base := path.Split(n.path)
	v.leave(folder)
	v.enter(folder)
	here := v.branch[len(v.branch)-1]
	isObject := strings.HasPrefix(base, objectPrefix) || base == inventoryName
	if _, _, isVersion := parseVersionName(path.Base(folder)); base == inventoryName && isVersion && strings.Count(folder, "/") > 1 {
		// An object that lost its declaration and its inventory still has those of its versions.
		v.branch = v.branch[:len(v.branch)-1]
		here = v.branch[len(v.branch)-1]
	}
	switch {
	case n.kind == emptyFolder:
		here.empties = append(here.empties, n.path)
	case !isObject:
		here.strays = append(here.strays, n)
	default:
		// What came before the file by which the object is known is the object's, too.
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

// leave shortens the branch to what folder has in common with it, and judges what was left.
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

// gather adds a node to the object in hand, unless it is too large to be judged.
func (v *rootValidator) gather(n node) {
	v.held += int64(len(n.path)) + perNode
	if limit := v.opts.Memory; limit > 0 && v.held > limit {
		v.gathered = nil
		return
	}
	v.gathered = append(v.gathered, n)
}

// finishObject judges the object that was gathered.
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

// checkNested looks for objects inside an object: it has to be the end of the hierarchy.
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

// checkPlace checks what an object is to the root: where it lies, and that it is there once.
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
		return // which has one place for each
	}
	id := sha256.Sum256([]byte(report.ID))
	if v.ids[id] {
		v.fault("E083", folder, "another folder has the object %q, too", report.ID)
	}
	v.ids[id] = true
}

// checkExtension checks something in the folder for extensions of the root (4.4).
func (v *rootValidator) checkExtension(n node) {
	name, _, below := strings.Cut(strings.TrimPrefix(n.path, extensionsFolder+"/"), "/")
	fault := faultOf("W016", extensionsFolder+"/"+name, "no registered extension")
	switch {
	case !below && n.kind == fileNode:
		v.fault("E112", n.path, "a file among the folders of extensions")
	case !below:
		v.fault("E073", n.path, "an empty folder")
	case !registeredExtension(name) && !v.told[fault]:
		if len(v.told) < faults.Most {
			v.told[fault] = true
		}
		v.faults.Add(fault)
	}
}

// checkDeclaration looks for the one file that makes the folder a storage root (4.2). Files that
// are not understood are ignored (E087).
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
				v.fault("E075", n.path, "the tag before = is no digit")
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

// readLayout reads, before the walk, which specification and layout the root has. What is wrong
// with them is said here, too, but for the declaration's faults.
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
		v.fault("E070", layoutName, "no JSON object: %v", err)
		return nil
	}
	for _, key := range []string{"extension", "description"} {
		if _, ok := file[key].(string); !ok {
			v.fault("E070", layoutName, "key %s is missing, or no string", key)
		}
	}
	name, ok := file["extension"].(string)
	if !ok {
		return nil
	}
	v.report.Layout = name
	if !registeredExtension(name) {
		v.fault("E071", layoutName, "%q is no registered extension", name)
		return nil
	}
	if !slices.Contains([]string{hashedNTuple, flatOmitPrefix}, name) {
		return nil // where objects lie is not known here
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
