package bagit

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/pathset"
)

// nameIndex finds files by their names, ignoring case and normal form.
type nameIndex struct {
	first map[string]int32
	more  map[string][]int32
}

// mostLike bounds how many files are tried in place of an absent one.
const mostLike = 1000

func (x *nameIndex) add(name string, file int32) (other int32, clash bool) {
	key := pathset.Fold(name)
	other, clash = x.first[key]
	if clash {
		x.more[key] = append(x.more[key], file)
		return other, true
	}
	x.first[key] = file
	return 0, false
}

func (x *nameIndex) like(name string) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		key := pathset.Fold(name)
		file, ok := x.first[key]
		if !ok || !yield(file) {
			return
		}
		more := x.more[key]
		for _, file := range more[:min(len(more), mostLike)] {
			if !yield(file) {
				return
			}
		}
	}
}

// inOrder returns the files sorted by name, so that the verdict does not depend on their order in
// the archive.
func (j *judge) inOrder() []int32 {
	order := make([]int32, len(j.files))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(j.rel(a), j.rel(b)) })
	return order
}

// indexFiles counts the files of the share, and reports faults of their names.
func (j *judge) indexFiles() {
	for _, file := range j.inOrder() {
		name, size := j.rel(file), j.files[file].size
		if strings.HasPrefix(name, payloadPrefix) {
			j.r.PayloadFiles++
			j.r.PayloadBytes += size
		} else {
			j.r.TagFiles++
		}
		if why := unportable(name); why != "" {
			j.warn(RulePortableName, name, "a name that every file system can hold", why, "")
		}
		if other, clash := j.known.add(name, file); clash {
			rule := RuleCase
			if normalized(j.rel(other)) == normalized(name) {
				rule = RuleNormalization
			}
			j.warn(rule, name, "names that differ in more", j.rel(other), "")
		}
		j.checkParents(name)
	}
}

// payloadFolder reports a bag without a payload folder.
func (j *judge) payloadFolder() {
	if j.r.PayloadFiles > 0 || j.v.dataDirs[j.base+PayloadDir] {
		return
	}
	if fetch := j.tagFile(FetchFile); fetch == nil || fetch.fetch.Len() == 0 { // otherwise all payload may still have to be fetched
		j.fail(RulePayloadDir, PayloadDir, "a folder", "none", "")
	}
}

// checkParents reports a name that is both a file and the folder of this file. Only one of the two
// could be unpacked.
func (j *judge) checkParents(name string) {
	if j.parents != nil {
		j.checkAllParents(name)
		return
	}
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if j.lookup(dir) >= 0 {
			j.bothKinds(dir, name)
			return
		}
	}
}

// checkAllParents does the work of checkParents for a bag of several shares, where the folders of a
// file may be in another share.
func (j *judge) checkAllParents(name string) {
	j.parentsMet++
	switch clash := j.parents.Add(name, j.parentsMet); clash.Kind {
	case pathset.FileFolder:
		if clash.Folder == "" {
			j.bothKinds(name, "a file below it")
		} else {
			j.bothKinds(clash.Folder, name)
		}
	case pathset.TooMany:
		if !j.v.limited["folders"] {
			j.v.limited["folders"] = true
			j.fail(RuleLimit, "", fmt.Sprintf("at most %d files and %d folders", pathset.MaxFiles, pathset.MaxFolders), "more", "")
		}
	}
}

func (j *judge) bothKinds(dir, name string) {
	j.fail(RuleFileAndFolder, dir, "a file or a folder", "both, as in "+name, "")
}

// listing reports files that the manifests do not list.
func (j *judge) listing() {
	for _, f := range j.files {
		if !strings.HasPrefix(f.name, payloadPrefix) {
			j.listedTag(f.name, f.claims)
			continue
		}
		j.listedPayload(f.name, f.claims)
		if f.claims == 0 && isSystemFile(f.name) {
			j.unclaimed.Files++
			j.unclaimed.Bytes += f.size
		}
	}
}

func (j *judge) listedPayload(name string, claims uint64) {
	listed := false
	for _, m := range j.payload {
		if claims&m.bit != 0 {
			listed = true
		} else if !j.beforeV1() {
			j.fail(RuleUnlisted, name, "listed in every payload manifest", "not listed", m.file)
		}
	}
	switch {
	case isSystemFile(name) && (listed || j.beforeV1()):
		j.warn(RuleSystemFile, name, "no files of the operating system", name, "")
	case !listed && j.beforeV1() && len(j.payload) > 0:
		j.fail(RuleUnlisted, name, "listed in a payload manifest", "not listed", j.payload[0].file)
	}
}

func (j *judge) listedTag(name string, claims uint64) {
	kind, _ := manifestName(name)
	if kind == tagManifest {
		return
	}
	for _, m := range j.tags {
		switch {
		case claims&m.bit != 0:
		case kind == payloadManifest:
			j.sinceV1(RuleTagManifest, name, "listed in every tag manifest", "not listed", m.file)
		default:
			j.warn(RuleUnlisted, name, "listed in the tag manifests", "not listed", m.file)
		}
	}
}
