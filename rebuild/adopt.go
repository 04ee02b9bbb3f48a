package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// AdoptOptions say what is adopted.
type AdoptOptions struct {
	Root       ocfl.Named
	To         registry.Adopting
	From       evidence.Source // what To has
	Collection registry.Collection
	// Mint returns a new ARK.
	Mint func() (string, error)
	// AtOnce is how many objects are read at once; 0: 8.
	AtOnce int
	// DryRun reads everything, and changes nothing.
	DryRun   bool
	Software string // with its version
	Now      func() time.Time
	Progress func(Adoption)      // as in Options
	Found    func(Adopted) error // called for each object that is not known, from one goroutine at a time
}

// Adoption says what an adoption did, over all its runs.
type Adoption struct {
	Objects  int64 `json:"objects"`  // read
	Adopted  int64 `json:"adopted"`  // or that would be
	Known    int64 `json:"known"`    // that the Registry had
	Refused  int64 `json:"refused"`  // left as they are
	Versions int64 `json:"versions"` // of the adopted objects
	Files    int64 `json:"files"`    // content files of these
	Bytes    int64 `json:"bytes"`
	Before   int64 `json:"-"` // how many of Objects killed runs before this one had read
}

// Adopted is an object that was adopted, or refused.
type Adopted struct {
	Folder   string   `json:"folder"`
	Stored   string   `json:"stored_id,omitempty"` // its identifier there; "": it cannot be read
	ID       string   `json:"object_id,omitempty"` // its ARK; "": none yet
	Versions int      `json:"versions,omitempty"`
	Spec     string   `json:"ocfl,omitempty"`
	Files    int64    `json:"files,omitempty"`
	Bytes    int64    `json:"bytes,omitempty"`
	Refused  []string `json:"refused,omitempty"`  // why
	Warnings []string `json:"warnings,omitempty"` // of the validation
}

// mostReasons bounds the reasons and warnings of an object that are listed.
const mostReasons = 20

func (a *Adopted) refuse(format string, args ...any) {
	if len(a.Refused) < mostReasons {
		a.Refused = append(a.Refused, fmt.Sprintf(format, args...))
	}
}

// Adopt takes the objects that others made in a storage root into the Registry, as they lie: it validates
// each object, reading every byte, and changes none. What it cannot take it names, and leaves.
//
// An object whose identifier there is an ARK keeps that. Every other one gets a new ARK, and its identifier
// becomes a local id of the collection's owner. The order of writing leaves no object with two ARKs: first
// the Registry binds the ARK to the identifier, then come the versions and their files, then one transaction
// makes the object visible, with its events and receipts, and last the receipts are written beside the bytes.
// Whoever is killed and repeats it finds the bound ARK; the receipts tell it to a Registry that is made again.
//
// It goes on after the last portion that it had noted. The Registry may serve meanwhile, and two adoptions may
// run at once: what both want, one of them gets. It keeps a portion of objects in memory, each with the
// inventory of its newest version.
func Adopt(ctx context.Context, o AdoptOptions) (Adoption, error) {
	a := &adopting{AdoptOptions: o}
	if a.AtOnce == 0 {
		a.AtOnce = 8
	}
	if err := a.begin(ctx); err != nil {
		return a.report, err
	}
	p := portions{atOnce: a.AtOnce, done: func(last string) error {
		a.state.After = last
		return a.save(ctx)
	}}
	for folder, err := range a.Root.Folders(ctx, a.state.After) {
		if err != nil {
			return a.report, errors.Join(err, p.wait())
		}
		if err := p.run(ctx, folder, func(ctx context.Context) error { return a.object(ctx, folder) }); err != nil {
			return a.report, err
		}
	}
	if err := p.end(); err != nil {
		return a.report, err
	}
	a.state.Ended = a.Now()
	return a.report, a.save(ctx)
}

// adopting is an Adopt.
type adopting struct {
	AdoptOptions
	state registry.RebuildState

	mu     sync.Mutex
	report Adoption
}

// begin reads how far an earlier run was, or notes that one begins.
func (a *adopting) begin(ctx context.Context) error {
	a.state = registry.RebuildState{Begun: a.Now(), Storages: []string{a.Root.Name, a.Collection.Mnemonic}, Storage: a.Root.Name}
	if a.DryRun {
		return nil
	}
	before, err := a.To.AdoptState(ctx)
	if err != nil {
		return err
	}
	if before.Open() && slices.Equal(before.Storages, a.state.Storages) {
		if err := goOn(&a.state, before, &a.report); err != nil {
			return err
		}
		a.report.Before = a.report.Objects
	}
	return a.save(ctx)
}

// save notes how far it is.
func (a *adopting) save(ctx context.Context) error {
	if a.Progress != nil {
		a.Progress(a.report)
	}
	if a.DryRun {
		return nil
	}
	state, err := noted(a.state, a.report)
	if err != nil {
		return err
	}
	return a.To.SaveAdopt(ctx, state)
}

// add counts an object, and tells of it.
func (a *adopting) add(out Adopted, known bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report.Objects++
	switch {
	case known:
		a.report.Known++
		return nil
	case len(out.Refused) > 0:
		a.report.Refused++
	default:
		a.report.Adopted++
		a.report.Versions += int64(out.Versions)
		a.report.Files += out.Files
		a.report.Bytes += out.Bytes
	}
	if a.Found == nil {
		return nil
	}
	return a.Found(out)
}

// object adopts the object in a folder.
func (a *adopting) object(ctx context.Context, folder string) error {
	found, err := a.Root.In(ctx, folder)
	out := Adopted{Folder: found.Key, Stored: found.ID, Spec: found.Spec, Versions: found.Head}
	switch {
	case errors.Is(err, ocfl.ErrNotFound) || unreadable(err):
		if err := a.validate(ctx, &out); err != nil {
			return err
		}
		if len(out.Refused) == 0 {
			out.refuse("%v", err)
		}
		return a.add(out, false)
	case err != nil:
		return err
	}
	if why := a.misplaced(found); why != "" {
		out.refuse("%s", why)
		return a.add(out, false)
	}
	known, err := a.To.StoredAs(ctx, found.ID)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	there := err == nil
	out.ID = known.ID
	switch {
	case there && known.Gone != "":
		out.refuse("the object %s was deleted", known.ID)
		return a.add(out, false)
	case there && known.Head > 0:
		why, err := a.differs(ctx, found, known.ID)
		if err != nil {
			return err
		}
		if why != "" {
			out.refuse("%s", why)
			return a.add(out, false)
		}
		return errors.Join(a.keep(ctx, found, known), a.add(out, true))
	case there && known.Adopted == 0:
		out.refuse("a job of this Registry has its identifier: %s", known.ID)
		return a.add(out, false)
	}
	w := &newcomer{adopting: a, found: found, out: &out}
	if err := w.judge(ctx); err != nil {
		return fmt.Errorf("judge the object in %s: %w", found.Key, err)
	}
	if len(out.Refused) == 0 && !a.DryRun {
		if err := w.enter(ctx); err != nil {
			return fmt.Errorf("adopt the object in %s: %w", found.Key, err)
		}
	}
	return a.add(out, false)
}

// misplaced says why an object does not lie where the storage's layout has it; "": it does.
func (a *adopting) misplaced(found ocfl.Object) string {
	switch folder, err := a.Root.ObjectKey(found.ID); {
	case err != nil:
		return fmt.Sprintf("the storage's layout has no folder for it: %v", err)
	case folder != found.Key:
		return fmt.Sprintf("the storage's layout %s has its folder at %s: name the layout by which the root was made (docs/operating.md, Layout)", a.Root.Layout().Name(), folder)
	}
	return ""
}

// differs says why what lies there is not the recorded object of the same identifier, nor a copy of it; "": it
// is. The newest version's inventory decides, which names the digests of all files.
func (a *adopting) differs(ctx context.Context, found ocfl.Object, id string) (string, error) {
	recorded, err := a.To.Recorded(ctx, id)
	if err != nil {
		return "", err
	}
	n := slices.IndexFunc(recorded.Versions, func(v registry.ObjectVersion) bool { return v.Version == found.Head })
	if n < 0 {
		return fmt.Sprintf("it has version %d, and the Registry has %d of %s, which is stored under its identifier: holdfast reconcile compares them", found.Head, recorded.Head, id), nil
	}
	v := recorded.Versions[n]
	algorithm, digest, err := a.Root.Sidecar(ctx, found.ID, found.VersionFolder(found.Head)+"/inventory.json")
	if err != nil && !errors.Is(err, ocfl.ErrNotFound) {
		return "", err
	}
	if err == nil && strings.EqualFold(v.Inventory, algorithm+":"+digest) {
		return "", nil
	}
	var storages []string
	for _, r := range v.Replicas {
		storages = append(storages, r.Storage)
	}
	return fmt.Sprintf("another object has its identifier: %s, in storage %s, whose version %d is not the one here", id, strings.Join(storages, ", "), found.Head), nil
}

// keep writes the receipts of an object's adopted versions beside its bytes, where they are missing.
func (a *adopting) keep(ctx context.Context, found ocfl.Object, o registry.Object) error {
	if a.DryRun || o.Adopted == 0 {
		return nil
	}
	return evidence.KeepReceipts(ctx, a.From, o.Adopted, evidence.Object{Store: a.Root.Store(), Folder: found.Key, ID: o.ID})
}

// validate refuses an object that is not valid, with the codes of the specification.
func (a *adopting) validate(ctx context.Context, out *Adopted) error {
	r, err := ocfl.Validate(ctx, a.Root.Store(), out.Folder, ocfl.ValidateOptions{Memory: inMemory})
	if err != nil {
		return err
	}
	out.Files, out.Bytes = int64(r.Files), r.Bytes
	for _, f := range r.Faults {
		switch {
		case f.Error():
			out.refuse("%s", f.String())
		case len(out.Warnings) < mostReasons:
			out.Warnings = append(out.Warnings, f.String())
		}
	}
	return nil
}

// newcomer is an object that the Registry does not have.
type newcomer struct {
	*adopting
	found ocfl.Object
	out   *Adopted

	inv         *ocfl.Inventory // of the newest version
	inventories []string        // of each version, ALGORITHM:HEX
	sizes       map[string]int64
}

// inMemory bounds the names and digests of an object that are kept in memory, in bytes.
const inMemory = 64 << 20

// judge refuses an object that cannot be kept as it lies.
func (w *newcomer) judge(ctx context.Context) error {
	if err := w.validate(ctx, w.out); err != nil {
		return err
	}
	if len(w.out.Refused) > 0 {
		return nil
	}
	w.judgeName()
	for _, part := range []func(context.Context) error{w.judgeFolder, w.judgeVersions, w.judgeRecord} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// longestID bounds the identifiers of objects, in bytes.
const longestID = 1000

func (w *newcomer) judgeName() {
	if len(w.found.ID) > longestID || strings.ContainsFunc(w.found.ID, unicode.IsControl) {
		w.out.refuse("its identifier has %d bytes, or control characters: no local id can be like that", len(w.found.ID))
	}
	if w.found.Spec > w.Root.Spec() {
		w.out.refuse("E081: it declares OCFL %s, and the storage root %s", w.found.Spec, w.Root.Spec())
	}
}

// judgeFolder looks at what lies in the object's folder beside its content.
func (w *newcomer) judgeFolder(ctx context.Context) error {
	w.sizes = map[string]int64{}
	for info, err := range w.Root.Store().List(ctx, w.found.Key+"/") {
		if err != nil {
			return fmt.Errorf("list the object: %w", err)
		}
		name := strings.TrimPrefix(info.Key, w.found.Key+"/")
		switch {
		case strings.HasPrefix(name, "extensions/0005-mutable-head/"), strings.HasPrefix(name, "extensions/mutable-head/"): // Fedora's before there was 0005
			w.out.refuse("it has a version that is not committed (%s): commit or discard it with the program that made it", name)
			return nil
		case evidence.Within(name):
			w.out.refuse("Holdfast's receipts lie in it, and this Registry does not know it: it belongs to another one, or to this one before its loss (holdfast rebuild, holdfast reconcile)")
			return nil
		case !ocfl.Beside(name):
			w.sizes[name] = info.Size
		}
	}
	return nil
}

// longestContent leaves room for the folder of the object in another storage.
const longestContent = storage.MaxKey - 320

// judgeVersions reads the inventories.
func (w *newcomer) judgeVersions(ctx context.Context) (err error) {
	for n := 1; n <= w.found.Head; n++ {
		algorithm, digest, err := w.Root.Sidecar(ctx, w.found.ID, w.found.VersionFolder(n)+"/inventory.json")
		if errors.Is(err, ocfl.ErrNotFound) {
			w.out.refuse("version %d has no inventory of its own (W010): nothing could show later that the version is as it was", n)
			continue
		} else if err != nil {
			return err
		}
		w.inventories = append(w.inventories, algorithm+":"+digest)
	}
	if len(w.inventories) < w.found.Head {
		return nil
	}
	if w.inv, err = w.Root.Committed(ctx, w.found.ID, w.found.Head); err != nil {
		return err
	}
	newest := ocfl.Stored{ID: w.found.ID, Path: w.found.VersionFolder(w.found.Head) + "/inventory.json"}
	newest.Algorithm, newest.Digest, _ = strings.Cut(w.inventories[w.found.Head-1], ":")
	foreign, err := w.Root.Foreign(ctx, newest, w.found.Head, ocfl.Beside)
	if err != nil {
		return err
	}
	for _, file := range foreign {
		w.out.refuse("%s belongs to no version: move it away first", file)
	}
	for n := 1; n <= w.found.Head; n++ {
		w.judgePaths(n)
	}
	return nil
}

// judgePaths looks at the names of a version's files.
func (w *newcomer) judgePaths(n int) {
	for _, f := range w.inv.State(n) {
		if strings.HasPrefix(f.Path, registry.SystemFolder) || f.Path+"/" == registry.SystemFolder {
			w.out.refuse("version %d has the file %q: the folder %s is for Holdfast's own files", n, f.Path, registry.SystemFolder)
		}
		if outside, below := strings.CutPrefix(f.Path, registry.ProducerFolder); below {
			if _, twice := w.inv.Lookup(n, outside); twice {
				w.out.refuse("version %d has the files %q and %q, which an export would give one name", n, f.Path, outside)
			}
		}
		for _, content := range w.inv.ContentPaths(f.Digest) {
			if len(content) > longestContent {
				w.out.refuse("the path %.80q... has %d bytes: other storages could not hold it", content, len(content))
			}
		}
	}
}

// judgeRecord looks for what the Registry has already.
func (w *newcomer) judgeRecord(ctx context.Context) error {
	ark := ARKOf(w.found.ID)
	if w.out.ID == "" {
		w.out.ID = ark
	}
	if w.out.ID != "" {
		switch err := w.To.MayAdopt(ctx, w.proposed(w.out.ID), w.Root.Name); {
		case errors.Is(err, registry.ErrTaken):
			w.out.refuse("%v", err)
		case err != nil:
			return err
		}
	}
	if ark != "" {
		switch _, err := w.Root.Tombstone(ctx, ark); {
		case err == nil:
			w.out.refuse("the storage has a tombstone of %s: it was deleted", ark)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
	}
	var ids []registry.OwnedID
	for _, id := range w.localIDs() {
		ids = append(ids, registry.OwnedID{Owner: w.Collection.Profile.Owner, LocalID: id})
	}
	taken, err := w.To.TakenIDs(ctx, w.out.ID, ids)
	for _, id := range taken {
		w.out.refuse("%s", takenText(id))
	}
	return err
}

// localIDs returns the local ids that the object gets.
func (w *newcomer) localIDs() []string {
	if ARKOf(w.found.ID) == w.found.ID {
		return nil
	}
	return []string{w.found.ID}
}

// proposed returns the object as it is to be named by an ARK.
func (w *newcomer) proposed(ark string) registry.Object {
	o := registry.Object{
		ID: ark, Place: registry.Place{Adopted: w.found.Head, Padding: w.found.Padding()},
		Collection: w.Collection.Mnemonic, Owner: w.Collection.Profile.Owner,
	}
	if ark != w.found.ID {
		o.OCFLID = w.found.ID
	}
	return o
}

// name binds an ARK to the object.
func (w *newcomer) name(ctx context.Context) (ark string, err error) {
	ark = w.out.ID
	minted := ark == ""
	const tries = 10
	for range tries {
		if minted {
			if ark, err = w.Mint(); err != nil {
				return "", fmt.Errorf("mint: %w", err)
			}
		}
		ark, err = w.To.NameAdopted(ctx, w.proposed(ark), w.Root.Name)
		if !minted || !errors.Is(err, registry.ErrTaken) {
			return ark, err
		}
	}
	return "", err
}

// enter enters an object that was not refused.
func (w *newcomer) enter(ctx context.Context) error {
	at := w.Now().UTC().Truncate(time.Microsecond)
	ark, err := w.name(ctx)
	if errors.Is(err, registry.ErrTaken) {
		w.out.refuse("%v", err)
		return nil
	} else if err != nil {
		return err
	}
	w.out.ID = ark
	o := registry.AdoptedObject{ProfileVersion: w.Collection.Version, Object: registry.Object{
		ID: ark, Collection: w.Collection.Mnemonic, Owner: w.Collection.Profile.Owner, LocalIDs: w.localIDs(), Head: w.found.Head,
	}}
	digests := w.digests()
	for n := 1; n <= w.found.Head; n++ {
		v, err := w.version(ctx, ark, n, at, digests)
		if err != nil {
			return err
		}
		o.Versions = append(o.Versions, v)
		o.Files, o.SizeBytes = v.Files, v.SizeBytes
	}
	o.Events = w.events(ark, at)
	err = w.To.RecordAdopted(ctx, o)
	if errors.Is(err, registry.ErrTaken) { // since it was judged
		w.out.refuse("%v", err)
		return nil
	} else if err != nil {
		return err
	}
	return w.keep(ctx, w.found, registry.Object{ID: ark, Place: registry.Place{Adopted: w.found.Head}})
}

// digests returns the digests of the content files by path and algorithm.
func (w *newcomer) digests() map[string]map[string]string {
	out := fixityOf(w.inv)
	for _, e := range w.inv.Manifest {
		for _, path := range e.Paths {
			if out[path] == nil {
				out[path] = map[string]string{}
			}
			out[path][w.inv.Algorithm] = strings.ToLower(e.Digest)
		}
	}
	return out
}

// version enters a version with its files.
func (w *newcomer) version(ctx context.Context, ark string, n int, at time.Time, digests map[string]map[string]string) (registry.ObjectVersion, error) {
	v := registry.ObjectVersion{
		Version: n, CreatedAt: w.inv.Versions[n-1].Created, RecordedAt: at, Inventory: w.inventories[n-1],
		Replicas: []registry.Replica{{Storage: w.Root.Name, VerifiedAt: at}},
	}
	for _, f := range w.inv.State(n) {
		v.Files++
		v.SizeBytes += w.sizes[w.inv.ContentPaths(f.Digest)[0]]
	}
	// The version is in the first part, since it names the storage: no other one can go on with the object.
	p := part{to: w.To, next: registry.Entered{
		ObjectID: ark, Versions: []registry.EnteredVersion{{ObjectVersion: v, Padding: w.found.Padding()}},
	}}
	rows := p.fileRows(n, at)
	for _, f := range w.inv.State(n) {
		path := w.inv.ContentPaths(f.Digest)[0]
		err := rows.add(ctx, registry.File{Path: f.Path, ContentPath: path, SizeBytes: w.sizes[path], Digests: digests[path]})
		if err != nil {
			return v, err
		}
	}
	if err := rows.end(ctx); err != nil {
		return v, err
	}
	return v, p.enter(ctx)
}
