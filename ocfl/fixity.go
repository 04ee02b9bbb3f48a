package ocfl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// fixityValue is one value of a fixity block.
type fixityValue struct {
	algorithm, digest, path string
}

// newFixity returns a fixity block with the values of old and those added. It returns an error if
// two values of one algorithm for one file differ, because nobody could tell which is right. It
// sorts instead of using maps, because an object may have hundreds of thousands of files.
func newFixity(old map[string][]Entry, added []fixityValue) (map[string][]Entry, error) {
	values := added
	for algorithm, entries := range old {
		for _, e := range entries {
			for _, path := range e.Paths {
				values = append(values, fixityValue{algorithm: algorithm, digest: e.Digest, path: path})
			}
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	slices.SortFunc(values, func(a, b fixityValue) int {
		return cmp.Or(cmp.Compare(a.algorithm, b.algorithm), cmp.Compare(a.path, b.path), cmp.Compare(a.digest, b.digest))
	})
	kept := values[:1]
	for _, v := range values[1:] {
		last := kept[len(kept)-1]
		if v.algorithm != last.algorithm || v.path != last.path {
			kept = append(kept, v)
		} else if !strings.EqualFold(v.digest, last.digest) {
			return nil, fmt.Errorf("ocfl: %s of %q is given as %s and as %s", v.algorithm, v.path, last.digest, v.digest)
		}
	}
	slices.SortFunc(kept, func(a, b fixityValue) int {
		return cmp.Or(cmp.Compare(a.algorithm, b.algorithm), cmp.Compare(a.digest, b.digest), cmp.Compare(a.path, b.path))
	})
	fixity := make(map[string][]Entry)
	for i, v := range kept {
		entries := fixity[v.algorithm]
		if i > 0 && kept[i-1].algorithm == v.algorithm && kept[i-1].digest == v.digest {
			entries[len(entries)-1].Paths = append(entries[len(entries)-1].Paths, v.path)
			continue
		}
		fixity[v.algorithm] = append(entries, Entry{Digest: v.digest, Paths: []string{v.path}})
	}
	return fixity, nil
}
