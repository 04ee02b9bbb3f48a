package bagit

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/names"
)

// nameIndex finds files by what their names have in common apart from case and normal form.
type nameIndex struct {
	first map[string]int32
	more  map[string][]int32
}

func (x *nameIndex) add(name string, file int32) (other int32, clash bool) {
	key := names.Fold(name)
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
		key := names.Fold(name)
		file, ok := x.first[key]
		if !ok || !yield(file) {
			return
		}
		for _, file := range x.more[key] {
			if !yield(file) {
				return
			}
		}
	}
}

// byName gives the files in the order of their names, so that the verdict does not depend on that of the archive.
func (j *judge) byName() []int32 {
	order := make([]int32, len(j.v.files))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return strings.Compare(j.v.names.list[j.v.files[a].name], j.v.names.list[j.v.files[b].name])
	})
	return order
}

// indexFiles counts the files, and reports what their names alone show.
func (j *judge) indexFiles() {
	j.known = nameIndex{first: make(map[string]int32, len(j.v.files)), more: map[string][]int32{}}
	for _, file := range j.byName() {
		full, size := j.v.names.list[j.v.files[file].name], j.v.files[file].size
		if !j.inBag(file) {
			if isSystemFile(full) {
				j.warn(RuleSystemFile, full, "nothing beside the bag", full, "")
			} else {
				j.fail(RuleOutsideBag, full, "a path below "+j.base, full, "")
			}
			continue
		}
		name := j.rel(file)
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
	if j.r.PayloadFiles == 0 && !j.v.dataDirs[j.base+PayloadDir] {
		fetch := j.tagFile(FetchFile)
		if fetch == nil || len(fetch.fetch) == 0 { // with one, all of the payload may be still to come
			j.fail(RulePayloadDir, PayloadDir, "a folder", "none", "")
		}
	}
}

// checkParents reports a file that is also the folder of this one: only one of the two could be unpacked.
func (j *judge) checkParents(name string) {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if j.lookup(dir) >= 0 {
			j.fail(RuleFileAndFolder, dir, "a file or a folder", "both, as in "+name, "")
			return
		}
	}
}

// listing reports files that the manifests do not have.
func (j *judge) listing() {
	for i := range j.v.files {
		file := int32(i)
		if !j.inBag(file) {
			continue
		}
		name := j.rel(file)
		if strings.HasPrefix(name, payloadPrefix) {
			j.listedPayload(name, j.claims[i])
		} else {
			j.listedTag(name, j.claims[i])
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
