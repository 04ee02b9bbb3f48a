package object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// Codes of differences between the Registry's record and a storage.
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
	judge   *evidence.Judge
	out     wire.VerifyReplica
	faults  []wire.VerifyFault
}

// verifyReplica reads every byte of an object in one storage. It validates the object by OCFL and
// compares it, and the evidence beside it, with the record. The first shows that files and inventory agree, which anybody who
// can write there can achieve. The second shows that they are the preserved ones.
func (s *Service) verifyReplica(ctx context.Context, o registry.Object, h replicaHead, judge *evidence.Judge) (wire.VerifyReplica, []wire.VerifyFault, error) {
	v := &replicaVerification{
		service: s, object: o, storage: h.storage, judge: judge,
		out: wire.VerifyReplica{Storage: h.storage, Recorded: h.version, Against: wire.AgainstRecord},
	}
	err := v.run(ctx)
	return v.out, v.faults, err
}

func (v *replicaVerification) note(code, path, format string, args ...any) {
	v.faults = append(v.faults, wire.VerifyFault{Storage: v.storage, Code: code, Path: path, Message: fmt.Sprintf(format, args...)})
}

// fault records a fault and marks the replica invalid.
func (v *replicaVerification) fault(code, path, format string, args ...any) {
	v.out.Valid = false
	v.note(code, path, format, args...)
}

func (v *replicaVerification) run(ctx context.Context) error {
	root, err := v.service.Objects.Of(v.storage)
	if err != nil {
		v.fault(storageUnknown, "", "the object is recorded in a storage that this Registry does not know; add it to HOLDFAST_STORAGE_URL")
		return nil //nolint:nilerr // reported as a fault
	}
	v.root = root.Root
	r, err := root.Verify(ctx, v.object.Stored(), ocfl.ValidateOptions{})
	switch {
	case errors.Is(err, ocfl.ErrNotFound):
		v.fault(nothingThere, "", "the object is recorded here but missing from the storage")
		return nil
	case err != nil:
		return fmt.Errorf("verify %s in storage %q: %w", v.object.ID, v.storage, err)
	}
	v.out.Valid, v.out.Files, v.out.Bytes = r.Valid(), r.Files, r.Bytes
	for _, f := range r.Faults {
		if f.Code != adviceSHA512 || !v.recordedBy(ocfl.SHA256) {
			v.note(f.Code, f.Path, "%s", f.Message)
		}
	}
	if n, ok := versionNumber(r.Head); ok {
		v.out.Version = n
	}
	if err := v.compare(ctx); err != nil {
		var record *recordError
		if ctx.Err() != nil || !errors.As(err, &record) {
			return fmt.Errorf("verify %s in storage %q: %w", v.object.ID, v.storage, err)
		}
		v.service.Log.WarnContext(ctx, "verified an object without its record", "object", v.object.ID, "storage", v.storage, "error", err)
		v.out.Against = wire.AgainstInventory
		v.note(recordUnreadable, "", "the record could not be read, so the files were compared only with the inventory beside them; verify the object again")
	}
	return nil
}

// adviceSHA512 is OCFL's advice to address content by SHA-512.
const adviceSHA512 = "W004"

// recordedBy reports whether a version of the object was recorded with this algorithm. What the
// collection has chosen is no finding.
func (v *replicaVerification) recordedBy(algorithm string) bool {
	return slices.ContainsFunc(v.object.Versions, func(version registry.ObjectVersion) bool {
		return strings.HasPrefix(version.Inventory, algorithm+":")
	})
}

// recordError says that the record could not be read.
type recordError struct{ err error }

// Error implements error.
func (e *recordError) Error() string { return "read the record: " + e.err.Error() }

// Unwrap returns the read error.
func (e *recordError) Unwrap() error { return e.err }

// compare compares a storage with the record. An error says that one of them could not be read; a
// *recordError means the record.
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
	if err := v.compareFiles(ctx); err != nil {
		return err
	}
	return v.compareEvidence(ctx)
}

// compareHead compares the newest version in the storage with the record. If it is lower, a version
// is missing. If it is higher, it must be announced, or recorded by now.
func (v *replicaVerification) compareHead(ctx context.Context) error {
	n := v.out.Version
	if n == 0 {
		return nil // unknown, which is already reported as a fault
	}
	if n < v.out.Recorded {
		v.fault(versionMissing, "", "version %d is recorded, but the newest in storage is %d", v.out.Recorded, n)
	}
	if n <= v.object.Head {
		return nil
	}
	now, err := v.service.Registry.Object(ctx, v.object.ID)
	if err != nil {
		return &recordError{err}
	}
	if n > max(now.Head, now.Announced) {
		v.fault(versionUnrecorded, v.object.VersionFolder(n), "version %d is in storage, but no version after %d is recorded or announced", n, now.Head)
	}
	return nil
}

// compareInventory compares a version's inventory with its recorded digest.
func (v *replicaVerification) compareInventory(ctx context.Context, version registry.ObjectVersion) error {
	algorithm, digest, ok := strings.Cut(version.Inventory, ":")
	if !ok {
		return nil // recorded without an inventory digest; its files are compared anyway
	}
	file := v.object.InventoryPath(version.Version)
	got, err := v.root.Examine(ctx, ocfl.Stored{ID: v.object.Stored(), Path: file, Algorithm: algorithm, Digest: digest}, nil)
	if err != nil {
		return err
	}
	switch got {
	case ocfl.Wrong:
		v.fault(inventoryReplaced, file, "it differs from the recorded inventory, whose %s is %s", algorithm, digest)
	case ocfl.Gone:
		v.fault(inventoryReplaced, file, "it is missing; its recorded %s is %s", algorithm, digest)
	case ocfl.Right:
	}
	return nil
}

// compareFiles compares the files of all versions with the record, version by version. It reads
// them from the inventory of the newest recorded version. A damaged inventory has already been
// reported.
func (v *replicaVerification) compareFiles(ctx context.Context) error {
	inv, err := v.root.Inventory(ctx, v.object.Stored(), min(v.out.Recorded, v.out.Version))
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

// comparison compares the states in an inventory with the recorded rows of an object's files. Both
// are sorted by path and version, so it reads both once, side by side.
type comparison struct {
	inv    *ocfl.Inventory
	states [][]ocfl.StateFile // by version; files not yet compared with a row
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
		return // a version that is not compared
	}
	if len(c.rows) > 0 && c.rows[0].Path != f.Path {
		c.path()
	}
	c.rows = append(c.rows, f)
}

// end reports the files in storage without a row.
func (c *comparison) end() {
	if len(c.rows) > 0 {
		c.path()
	}
	for n := range c.states {
		c.before(n, "")
	}
}

// path compares one path in all versions with its rows. It reports each row at most once.
func (c *comparison) path() {
	path := c.rows[0].Path
	at := -1 // the row that is valid
	reported := -2
	for n := range c.states {
		for at+1 < len(c.rows) && c.rows[at+1].Version <= n+1 {
			at++
		}
		c.before(n, path)
		var digest string
		if rest := c.states[n]; len(rest) > 0 && rest[0].Path == path {
			digest, c.states[n] = rest[0].Digest, rest[1:]
		}
		if reported == at {
			continue
		}
		if why := c.differs(at, digest); why != "" {
			c.fault(fileDiffers, receipt.EscapePath(path), "in version %d %s", n+1, why)
			reported = at
		}
	}
	c.rows = c.rows[:0]
}

// differs describes how a path's digest in a version ("": missing) differs from the valid row; ""
// if it does not.
func (c *comparison) differs(at int, digest string) string {
	if at < 0 || c.rows[at].Deleted {
		if digest != "" {
			return "it is in storage but not recorded"
		}
		return ""
	}
	row := c.rows[at]
	want := row.Digests[c.inv.Algorithm]
	switch {
	case digest == "":
		return "it is recorded but not in storage"
	case want == "":
		return fmt.Sprintf("it cannot be compared, because its %s was not recorded", c.inv.Algorithm)
	case !strings.EqualFold(digest, want):
		return fmt.Sprintf("its %s is %s in storage but recorded as %s", c.inv.Algorithm, digest, want)
	default:
		return ""
	}
}

// before reports the files of a version that sort before a path ("": all that are left), because
// they have no row.
func (c *comparison) before(n int, path string) {
	rest := c.states[n]
	for len(rest) > 0 && (path == "" || rest[0].Path < path) {
		c.fault(fileDiffers, receipt.EscapePath(rest[0].Path), "in version %d it is in storage but not recorded", n+1)
		rest = rest[1:]
	}
	c.states[n] = rest
}
