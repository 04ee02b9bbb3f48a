package bagit

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
)

// info judges bag-info.txt, which was package-info.txt in 0.93 and 0.94.
func (j *judge) info() {
	file, tag := InfoFile, j.tagFile(InfoFile)
	if old := j.tagFile(packageInfoFile); old != nil && j.version > 0 && (tag == nil && j.beforeV1() || j.version <= Version094) {
		file, tag = packageInfoFile, old
	}
	if tag == nil {
		return
	}
	j.infoFile = file
	j.r.Info = append(j.r.Info, j.tagsOf(file)...)
	if !j.beforeV1() { // the drafts did not say so
		j.repeatedTags(file)
		j.tagForms(file)
	}
	j.oxum(file)
}

// tagsOf judges the lines of a file of tags, and gives these in UTF-8. None for a file that is not
// there.
func (j *judge) tagsOf(file string) []Tag {
	tag := j.tagFile(file)
	if tag == nil {
		return nil
	}
	var tags []Tag
	j.form(file, tag, RuleBagInfo, "label: value")
	for _, t := range tag.info {
		source := fmt.Sprintf("%s:%d", file, t.line)
		if tag.form != formUTF16 {
			decoded, err := t.decode(j.enc)
			if err != nil {
				j.fail(RuleEncoding, file, j.enc.name, t.Label+": "+t.Value, source)
				continue
			}
			t = decoded
		}
		if t.labelSpaced {
			j.sinceV1(RuleBagInfo, file, "a label without space around it", t.Label, source)
		}
		switch {
		case j.beforeV1() || t.Value == "": // the space may have been trimmed with the line
		case t.spaces == 0:
			j.fail(RuleBagInfo, file, "a space after the colon", t.Label+":"+t.Value, source)
		case t.spaces > 1:
			j.warn(RuleBagInfo, file, "one space after the colon", t.Label, source)
		}
		tags = append(tags, t)
	}
	return tags
}

// tagForms warns of the reserved elements whose values machines cannot read. Payload-Oxum is judged
// by itself.
func (j *judge) tagForms(file string) {
	for _, t := range j.r.Info {
		source := fmt.Sprintf("%s:%d", file, t.line)
		switch {
		case t.Value == "":
		case strings.EqualFold(t.Label, BaggingDateLabel):
			if _, err := time.Parse(time.DateOnly, t.Value); err != nil {
				j.warn(RuleBagInfo, file, t.Label+": YYYY-MM-DD", t.Value, source)
			}
		case strings.EqualFold(t.Label, bagCountLabel):
			n, total, ok := strings.Cut(t.Value, " of ")
			if !ok || !allDigits(n) || total != "?" && !allDigits(total) {
				j.warn(RuleBagInfo, file, t.Label+": N of T", t.Value, source)
			}
		}
	}
}

// repeatedTags warns of the reserved elements that should stand once.
func (j *judge) repeatedTags(file string) {
	count := map[string]int{}
	for _, t := range j.r.Info {
		label := strings.ToLower(t.Label)
		count[label]++
		if count[label] != 2 {
			continue
		}
		switch label {
		case "bagging-date", "bag-size", "bag-group-identifier", "bag-count":
			j.warn(RuleBagInfo, file, t.Label+" once", "repeated", fmt.Sprintf("%s:%d", file, t.line))
		}
	}
}

// oxum compares Payload-Oxum with the payload. With files still to be fetched there is nothing to
// compare.
func (j *judge) oxum(file string) {
	seen := false
	for _, t := range j.r.Info {
		if !strings.EqualFold(t.Label, PayloadOxumLabel) {
			continue
		}
		source := fmt.Sprintf("%s:%d", file, t.line)
		if seen {
			j.sinceV1(RuleOxum, file, PayloadOxumLabel+" once", "repeated", source)
		}
		seen = true
		said, ok := ParseOxum(t.Value)
		if !ok {
			j.sinceV1(RuleOxum, file, "octets.files", t.Value, source)
			continue
		}
		have := Oxum{Bytes: j.r.PayloadBytes, Files: j.r.PayloadFiles}
		if said == have || j.toFetch {
			continue
		}
		if j.excused(said, have) {
			j.warn(RuleOxum, file, said.String(), have.String(), source)
		} else {
			j.fail(RuleOxum, file, said.String(), have.String(), source)
		}
	}
}

// excused says that the counts differ by no more than what was found to be harmless: files that
// stand for two names, and files of the operating system that came or went.
func (j *judge) excused(said, have Oxum) bool {
	have.Files += j.standIns.Files
	have.Bytes += j.standIns.Bytes
	if said == have {
		return true
	}
	if !j.beforeV1() {
		return false
	}
	have.Files -= j.unclaimed.Files
	have.Bytes -= j.unclaimed.Bytes
	have.Files += j.tolerated
	return said == have || j.tolerated > 0 && said.Files == have.Files && said.Bytes >= have.Bytes
}

// fetch judges the share's entries of fetch.txt themselves; whether each is in the manifests shows
// later.
func (j *judge) fetch() {
	if j.toGet == nil {
		return
	}
	tag := j.tagFile(FetchFile)
	for record := range j.toGet.Records() {
		e := readFetchEntry(record)
		source := fmt.Sprintf("%s:%d", FetchFile, e.line)
		if tag.form != formUTF16 {
			decoded, err := e.decode(j.enc)
			if err != nil {
				j.fail(RuleEncoding, FetchFile, j.enc.name, e.URL+" "+e.File, source)
				continue
			}
			e = decoded
		}
		key, ok := j.fetchName(&e, source)
		if !ok {
			continue
		}
		file := j.spelled(e.File, key)
		e.Present = file >= 0
		if e.Present && e.Length >= 0 && e.Length != j.files[file].size {
			j.warn(RuleFetch, e.File, fmt.Sprintf("%d octets", e.Length), fmt.Sprintf("%d", j.files[file].size), source)
		}
		j.fetched[normalized(key)] = true
		j.entries = append(j.entries, e)
	}
	j.r.Fetch = append(j.r.Fetch, j.entries...)
}

// spelled finds a file by any of the names, in whatever normal form.
func (j *judge) spelled(names ...string) int32 {
	for _, name := range names {
		if file := j.lookup(name); file >= 0 {
			return file
		}
	}
	for _, name := range names {
		for file := range j.known.like(name) {
			if normalized(j.rel(file)) == normalized(name) {
				return file
			}
		}
	}
	return -1
}

// unlistedFetch reports entries of fetch.txt that the payload manifests do not have.
func (j *judge) unlistedFetch() {
	if len(j.entries) == 0 {
		return
	}
	var all uint64
	for _, m := range j.payload {
		all |= m.bit
	}
	listed := map[string]uint64{}
	for name, a := range j.absent {
		listed[normalized(name)] |= a.claims
		listed[normalized(unescape(name))] |= a.claims
	}
	for _, e := range j.entries {
		if e.Present { // then it is judged as any other file
			continue
		}
		claims := listed[normalized(e.File)] & all
		if claims == 0 || claims != all && !j.beforeV1() {
			j.sinceV1(RuleFetch, e.File, "listed in every payload manifest", "not listed", fmt.Sprintf("%s:%d", FetchFile, e.line))
		}
	}
}

// fetchName checks and reads the path of an entry; key is the path as manifests of the version have
// it. False when the entry must not be filled.
func (j *judge) fetchName(e *FetchEntry, source string) (key string, ok bool) {
	name := e.File
	why := unsafeReference(name)
	if why == "" && strings.ContainsFunc(strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(name), unicode.IsControl) {
		why = "control character" // in a name that a file is to be made by; one that is there is only not portable
	}
	if why != "" {
		j.fail(RuleUnsafeName, name, "a relative path inside the bag", why, source)
		return "", false
	}
	if strings.HasSuffix(name, "/") {
		j.fail(RuleFetch, name, "the path of a file", "the path of a folder", source)
		return "", false
	}
	if clean := path.Clean(name); clean != name {
		j.warn(RuleRelativePath, name, clean, name, source)
		name = clean
	}
	if !strings.HasPrefix(name, payloadPrefix) {
		j.sinceV1(RuleFetch, name, "a path below "+payloadPrefix, name, source)
		return "", false
	}
	e.File = unescape(name)
	if !j.beforeV1() {
		return e.File, true
	}
	if strings.Contains(name, "%25") { // before 1.0 the percent sign was not escaped
		e.File = name
	}
	return name, true
}
