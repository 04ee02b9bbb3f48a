package bagit

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
)

// info checks bag-info.txt, which was called package-info.txt in 0.93 and 0.94.
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
	if !j.beforeV1() { // the drafts had no such rules
		j.repeatedTags(file)
		j.tagForms(file)
	}
	j.oxum(file)
}

// tagsOf checks the lines of a tag file and returns its tags in UTF-8. It returns nil if there is
// no such file.
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

// tagForms warns of values of reserved tags that machines cannot read. oxum checks Payload-Oxum.
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

// repeatedTags warns of reserved tags that should occur once.
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

// oxum compares Payload-Oxum with the payload, unless files are still to be fetched.
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

// excused reports whether harmless differences explain the counts: files that stand for two names,
// and system files that were added or are missing.
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

// fetch checks the share's entries of fetch.txt. unlistedFetch later compares them with the
// manifests.
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

// spelled returns the file that has one of the names in any normal form, or -1.
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

// unlistedFetch reports entries of fetch.txt that the payload manifests do not list.
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
		if e.Present { // checked like any other file
			continue
		}
		claims := listed[normalized(e.File)] & all
		if claims == 0 || claims != all && !j.beforeV1() {
			j.sinceV1(RuleFetch, e.File, "listed in every payload manifest", "not listed", fmt.Sprintf("%s:%d", FetchFile, e.line))
		}
	}
}

// fetchName checks and unescapes the path of an entry. key is the path as the bag's manifests spell
// it. It returns false if the file must not be fetched.
func (j *judge) fetchName(e *FetchEntry, source string) (key string, ok bool) {
	name := e.File
	why := unsafeReference(name)
	if why == "" && strings.ContainsFunc(strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(name), unicode.IsControl) {
		why = "control character" // for a file to be created; an existing one is only not portable
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
	if strings.Contains(name, "%25") { // the percent sign was not escaped before 1.0
		e.File = name
	}
	return name, true
}
