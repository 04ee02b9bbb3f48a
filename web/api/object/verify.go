package object

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// What the Registry knows otherwise than storage.
const (
	nothingThere      = "R001"
	versionMissing    = "R002"
	storageUnknown    = "R003"
	inventoryReplaced = "R004"
	fileDiffers       = "R005"
	versionUnrecorded = "R006"
	recordUnreadable  = "R007"
)

// replicaVerification is the verification of an object in one storage.
type replicaVerification struct {
	service *Service
	object  registry.Object
	storage string
	root    *ocfl.Root
	out     wire.VerifyReplica
	faults  []wire.VerifyFault
}

// verifyReplica reads every byte of an object in one storage, and compares what is there with
// itself, by OCFL, and with what was recorded. The first says that files and inventory agree, which
// whoever can write there can see to; the second that they are those that were preserved.
func (s *Service) verifyReplica(ctx context.Context, o registry.Object, h replicaHead) (wire.VerifyReplica, []wire.VerifyFault, error) {
	v := &replicaVerification{
		service: s, object: o, storage: h.storage,
		out: wire.VerifyReplica{Storage: h.storage, Recorded: h.version, Against: wire.AgainstRecord},
	}
	err := v.run(ctx)
	return v.out, v.faults, err
}

func (v *replicaVerification) note(code, path, format string, args ...any) {
	v.faults = append(v.faults, wire.VerifyFault{Storage: v.storage, Code: code, Path: path, Message: fmt.Sprintf(format, args...)})
}

// fault notes what makes the replica unsound.
func (v *replicaVerification) fault(code, path, format string, args ...any) {
	v.out.Valid = false
	v.note(code, path, format, args...)
}

func (v *replicaVerification) run(ctx context.Context) error {
	root, err := v.service.Objects.Of(v.storage)
	if err != nil {
		v.fault(storageUnknown, "", "it is recorded there, and this Registry knows no storage of that name; name it in HOLDFAST_STORAGE_URL")
		return nil //nolint:nilerr // it is a finding
	}
	v.root = root.Root
	r, err := root.Verify(ctx, v.object.ID, ocfl.ValidateOptions{})
	switch {
	case errors.Is(err, ocfl.ErrNotFound):
		v.fault(nothingThere, "", "it is recorded, and storage has nothing of it")
		return nil
	case err != nil:
		return fmt.Errorf("verify %s in storage %q: %w", v.object.ID, v.storage, err)
	}
	v.out.Valid, v.out.Files, v.out.Bytes = r.Valid(), r.Files, r.Bytes
	for _, f := range r.Faults {
		v.note(f.Code, f.Path, "%s", f.Message)
	}
	if n, ok := versionNumber(r.Head); ok {
		v.out.Version = n
	}
	if err := v.compare(ctx); err != nil {
		var record *recordError
		if ctx.Err() != nil || !errors.As(err, &record) {
			return fmt.Errorf("verify %s in storage %q: %w", v.object.ID, v.storage, err)
		}
		v.service.Log.WarnContext(ctx, "an object was verified without its record", "object", v.object.ID, "storage", v.storage, "error", err)
		v.out.Against = wire.AgainstInventory
		v.note(recordUnreadable, "", "what was recorded could not be read, so the files were compared with the inventory beside them only; verify it again")
	}
	return nil
}

// recordError says that what was recorded could not be read.
type recordError struct{ err error }

// Error implements error.
func (e *recordError) Error() string { return "read what was recorded: " + e.err.Error() }

// Unwrap returns what kept it from being read.
func (e *recordError) Unwrap() error { return e.err }

// compare compares storage with the record. An error says that either could not be read, a
// *recordError that it was the record.
func (v *replicaVerification) compare(ctx context.Context) error {
	if err := v.compareHead(ctx); err != nil {
		return err
	}
	for _, version := range v.object.Versions {
		if version.Version <= v.out.Recorded {
			if err := v.compareInventory(ctx, version); err != nil {
				return err
			}
		}
	}
	return v.compareFiles(ctx)
}

// compareHead compares the newest version in storage with the recorded one. One below it means that
// a version is gone; one above it must have been announced, or be recorded by now.
func (v *replicaVerification) compareHead(ctx context.Context) error {
	n := v.out.Version
	if n == 0 {
		return nil // it cannot be told, which is a fault already
	}
	if n < v.out.Recorded {
		v.fault(versionMissing, "", "version %d is recorded, and the newest in storage is %d", v.out.Recorded, n)
	}
	if n <= v.object.Head {
		return nil
	}
	now, err := v.service.Registry.Object(ctx, v.object.ID)
	if err != nil {
		return &recordError{err}
	}
	if n > max(now.Head, now.Announced) {
		v.fault(versionUnrecorded, fmt.Sprintf("v%d", n), "version %d is in storage, and nobody recorded or announced one after version %d", n, now.Head)
	}
	return nil
}

// compareInventory compares the inventory of a version with its recorded digest.
func (v *replicaVerification) compareInventory(ctx context.Context, version registry.ObjectVersion) error {
	algorithm, digest, ok := strings.Cut(version.Inventory, ":")
	if !ok {
		return nil // recorded before its digest was: the comparison of its files remains
	}
	file := fmt.Sprintf("v%d/inventory.json", version.Version)
	got, err := v.root.Examine(ctx, ocfl.Stored{ID: v.object.ID, Path: file, Algorithm: algorithm, Digest: digest}, nil)
	if err != nil {
		return err
	}
	switch got {
	case ocfl.Wrong:
		v.fault(inventoryReplaced, file, "it is not the inventory that was recorded, whose %s is %s", algorithm, digest)
	case ocfl.Gone:
		v.fault(inventoryReplaced, file, "it is missing; its recorded %s is %s", algorithm, digest)
	case ocfl.Right:
	}
	return nil
}

// compareFiles compares the files of all versions, as the newest recorded version's inventory in
// storage has them, with the recorded ones, version by version. An inventory that is damaged has
// been found so by then.
func (v *replicaVerification) compareFiles(ctx context.Context) error {
	inv, err := v.root.Inventory(ctx, v.object.ID, min(v.out.Recorded, v.out.Version))
	if err != nil {
		if v.out.Valid || ctx.Err() != nil {
			return err
		}
		return nil
	}
	c := newComparison(inv, v.fault)
	for after := (registry.FilePlace{}); ; {
		rows, err := v.service.Registry.FileHistory(ctx, v.object.ID, after, endpoint.StreamRows)
		if err != nil {
			return &recordError{err}
		}
		for _, f := range rows {
			after = registry.FilePlace{Path: f.Path, Version: f.Version}
			c.add(f)
		}
		if len(rows) < endpoint.StreamRows {
			c.end()
			return nil
		}
	}
}

// comparison compares the states in an inventory with the recorded rows of an object's files, which
// come by path and version, as the states are sorted: both are gone through once, side by side.
type comparison struct {
	inv    *ocfl.Inventory
	states [][]ocfl.StateFile // by version; what no row has been compared with yet
	fault  func(code, path, format string, args ...any)
	rows   []registry.File // of one path
}

func newComparison(inv *ocfl.Inventory, fault func(code, path, format string, args ...any)) *comparison {
	c := &comparison{inv: inv, fault: fault}
	for n := range inv.Head() {
		c.states = append(c.states, inv.State(n+1))
	}
	return c
}

func (c *comparison) add(f registry.File) {
	if f.Version > len(c.states) {
		return // of a version that is not compared
	}
	if len(c.rows) > 0 && c.rows[0].Path != f.Path {
		c.path()
	}
	c.rows = append(c.rows, f)
}

// end tells of what no row has led to.
func (c *comparison) end() {
	if len(c.rows) > 0 {
		c.path()
	}
	for n := range c.states {
		c.before(n, "")
	}
}

// path compares one path in all versions with its rows, and tells of each row once.
func (c *comparison) path() {
	path := c.rows[0].Path
	at := -1 // the row that holds
	told := -2
	for n := range c.states {
		for at+1 < len(c.rows) && c.rows[at+1].Version <= n+1 {
			at++
		}
		c.before(n, path)
		var digest string
		if rest := c.states[n]; len(rest) > 0 && rest[0].Path == path {
			digest, c.states[n] = rest[0].Digest, rest[1:]
		}
		if told == at {
			continue
		}
		if why := c.differs(at, digest); why != "" {
			c.fault(fileDiffers, receipt.EscapePath(path), "in version %d %s", n+1, why)
			told = at
		}
	}
	c.rows = c.rows[:0]
}

// differs says how a path's digest in a version ("": it is not there) differs from the row that
// holds then, or "".
func (c *comparison) differs(at int, digest string) string {
	if at < 0 || c.rows[at].Deleted {
		if digest != "" {
			return "storage has it, and it was not recorded"
		}
		return ""
	}
	row := c.rows[at]
	want := row.Digests[c.inv.Algorithm]
	switch {
	case digest == "":
		return "it is recorded, and storage has it not"
	case want == "":
		return fmt.Sprintf("its %s was not recorded, and it cannot be compared", c.inv.Algorithm)
	case !strings.EqualFold(digest, want):
		return fmt.Sprintf("its %s is %s in storage, and %s is recorded", c.inv.Algorithm, digest, want)
	default:
		return ""
	}
}

// before tells of the files of a version that come before a path, "" being the end: no row has led
// to them.
func (c *comparison) before(n int, path string) {
	rest := c.states[n]
	for len(rest) > 0 && (path == "" || rest[0].Path < path) {
		c.fault(fileDiffers, receipt.EscapePath(rest[0].Path), "in version %d storage has it, and it was not recorded", n+1)
		rest = rest[1:]
	}
	c.states[n] = rest
}
