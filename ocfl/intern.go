package ocfl

import (
	"slices"
	"strings"
)

// shared is an inventory whose strings another inventory of the same object reuses. Objects have
// hundreds of thousands of files, and most of them are the same in all versions.
type shared struct {
	inv   *Inventory
	paths []string // all content paths, sorted
}

// newShared prepares inv for sharing.
func newShared(inv *Inventory) *shared {
	s := &shared{inv: inv}
	for _, e := range inv.Manifest {
		s.paths = append(s.paths, e.Paths...)
	}
	slices.Sort(s.paths)
	return s
}

// below reports whether a content path begins with prefix.
func (s *shared) below(prefix string) bool {
	i, _ := slices.BinarySearch(s.paths, prefix)
	return i < len(s.paths) && strings.HasPrefix(s.paths[i], prefix)
}

// interner returns an equal string that is already in memory, if there is one.
type interner struct {
	like *shared
	own  map[string]string // digests and content paths that like does not have
	last []StateFile       // state of the version that was read last
	held int64             // bytes of the strings that like does not have
}

// keep returns the string as it occurred before in this inventory.
func (n *interner) keep(s string) string {
	if known, ok := n.own[s]; ok {
		return known
	}
	n.held += int64(len(s))
	if n.own != nil {
		n.own[s] = s
		n.held += perString
	}
	return s
}

// digest interns a digest of the manifest or of a state.
func (n *interner) digest(s string) string {
	if n.like != nil {
		if i, ok := findEntry(n.like.inv.Manifest, s); ok {
			return n.like.inv.Manifest[i].Digest
		}
	}
	return n.keep(s)
}

// fixityDigest interns a digest of a fixity block, which occurs once in an inventory.
func (n *interner) fixityDigest(algorithm, s string) string {
	if n.like != nil {
		entries := n.like.inv.Fixity[algorithm]
		if i, ok := findEntry(entries, s); ok {
			return entries[i].Digest
		}
	}
	n.held += int64(len(s))
	return s
}

// contentPath interns a path of the manifest or of a fixity block.
func (n *interner) contentPath(s string) string {
	if n.like != nil {
		if i, ok := slices.BinarySearch(n.like.paths, s); ok {
			return n.like.paths[i]
		}
	}
	return n.keep(s)
}

// logicalPath interns a path of a state. Most paths were in the version before.
func (n *interner) logicalPath(s string) string {
	if f, ok := lookup(n.last, s); ok {
		return f.Path
	}
	if n.like != nil {
		if f, ok := n.like.inv.Lookup(0, s); ok {
			return f.Path
		}
	}
	// The usual content path is v1/content/ and the logical path.
	if known, ok := n.own["v1/"+defaultContent+"/"+s]; ok {
		return strings.TrimPrefix(known, "v1/"+defaultContent+"/")
	}
	n.held += int64(len(s))
	return s
}
