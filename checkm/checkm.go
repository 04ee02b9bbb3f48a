// Package checkm reads, checks and writes Checkm 0.7 manifests in the dialect of Merritt's
// depositors.
//
// It makes two promises:
//   - A row is usable only if nothing in it can cause another file to be fetched, named or verified
//     than the depositor meant. A bad row fails alone, with all its faults by line and column.
//   - A manifest is sound only if it was read to its #%eof, so a truncated manifest is never taken
//     for a shorter one. A caller that acts on rows while it reads must handle an unsound end, or
//     call [Check] first.
//
// Everything streams. Memory does not grow with the number of rows, except for the index of names
// in [Check], about 20 bytes per row. The package fetches nothing and does not know whether the
// files exist.
package checkm

// Kind is the kind of a manifest: what its rows are. Its text is the name of the submission type.
type Kind string

// The kinds of manifest.
const (
	// Unknown is the zero Kind: the profile is missing or unknown.
	Unknown Kind = ""
	// Object lists the files of one object (profile mrt-ingest-manifest).
	Object Kind = "object-manifest"
	// Batch lists object manifests, one object a row (mrt-batch-manifest).
	Batch Kind = "batch-manifest"
	// ContainerBatch lists containers, one object a row (mrt-container-batch-manifest).
	ContainerBatch Kind = "container-batch-manifest"
	// FileBatch lists single files, one object a row (mrt-single-file-batch-manifest).
	FileBatch Kind = "single-file-batch-manifest"
	// Add lists the files to be added to storage (mrt-add-manifest).
	Add Kind = "add-manifest"
	// InContainer lists the files of the container that it lies in as mrt-manifest.txt. Its rows
	// have names and no URLs (mrt-object-manifest).
	InContainer Kind = "in-container-manifest"
)

const (
	registry    = "http://uc3.cdlib.org/registry/"
	ingestBase  = registry + "ingest/manifest/"
	storeBase   = registry + "store/manifest/"
	legacyBase  = registry + "mrt/"
	mrtPrefix   = "http://merritt.cdlib.org/terms#"
	nfoPrefix   = "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#"
	declaration = "#%checkm_0.7"
)

// Batch reports whether each row of the manifest becomes an object of its own.
func (k Kind) Batch() bool {
	return k == Batch || k == ContainerBatch || k == FileBatch
}

// Listing reports whether the rows together are the files of one object, so that each name may
// occur only once.
func (k Kind) Listing() bool {
	return k == Object || k == Add || k == InContainer
}

// ProfileURI returns the profile that manifests of this kind declare, or "" for [Unknown].
func (k Kind) ProfileURI() string {
	name := k.profileName()
	switch {
	case name == "":
		return ""
	case k == Add || k == InContainer:
		return storeBase + name
	}
	return ingestBase + name
}

func (k Kind) profileName() string {
	switch k {
	case Object:
		return "mrt-ingest-manifest"
	case Batch:
		return "mrt-batch-manifest"
	case ContainerBatch:
		return "mrt-container-batch-manifest"
	case FileBatch:
		return "mrt-single-file-batch-manifest"
	case Add:
		return "mrt-add-manifest"
	case InContainer:
		return "mrt-object-manifest"
	}
	return ""
}

// KindOf returns the kind that a profile URI declares: the current URI or the legacy one under
// registry/mrt/. The comparison is exact: https or another case makes another profile.
func KindOf(profile string) (Kind, bool) {
	for _, k := range []Kind{Object, Batch, ContainerBatch, FileBatch, Add, InContainer} {
		if profile == k.ProfileURI() || profile == legacyBase+k.profileName() {
			return k, true
		}
	}
	return Unknown, false
}

// sameColumns reports whether both kinds have the same columns, so that one can be read as the
// other.
func sameColumns(a, b Kind) bool {
	return a.Batch() && b.Batch() || (a == Object || a == Add) && (b == Object || b == Add)
}
