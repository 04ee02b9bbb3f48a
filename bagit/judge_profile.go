package bagit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// profile checks the bag against Options.Profile, after manifests, tags and files. Files in
// fetch.txt count as present, so that the verdict is the same before and after they are fetched.
func (j *judge) profile() {
	p := j.v.opts.Profile
	if p == nil {
		return
	}
	j.r.Profile = p.identifier
	j.profileVersion(p)
	j.profileForm(p)
	j.profileIdentifier(p)
	j.profileTags(p.tags, j.r.Info, cmp.Or(j.infoFile, InfoFile), fieldTags)
	for _, file := range slices.Sorted(maps.Keys(p.other)) {
		j.profileTags(p.other[file], j.tagsOf(file), file, fieldOther)
	}
	j.profileManifests(p.manifests, j.r.Algorithms, "manifest-", fieldManifestsRequired, fieldManifestsAllowed)
	j.profileManifests(p.tagManifests, j.r.TagAlgorithms, "tagmanifest-", fieldTagManifestsRequired, fieldTagManifestsAllowed)
	j.profileFetch(p)
	j.profileFiles(p)
}

// against reports a fault against a field of the profile.
func (j *judge) against(sev Severity, field string, rule Rule, file, expected, found, source string) {
	f := newFault(sev, rule, file, expected, found).at(source)
	f.Clause = profileClause + ", " + field
	j.add(f)
}

func (j *judge) profileVersion(p *Profile) {
	if !slices.Contains(p.versions, j.version.String()) {
		j.against(SeverityError, fieldVersions, RuleProfileVersion, DeclarationFile, oneOf(p.versions), j.version.String(), "")
	}
}

func oneOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return "one of " + strings.Join(names, ", ")
}

func (j *judge) profileForm(p *Profile) {
	form := j.v.opts.Form
	if p.Accepts(form) {
		return
	}
	field, expected := fieldFormats, oneOf(p.formats)
	switch {
	case form == FormFolder:
		field, expected = fieldSerialization, "a packed bag, "+oneOf(p.formats)
	case p.serialization == serializationForbidden:
		field, expected = fieldSerialization, "a folder"
	}
	j.against(SeverityError, field, RuleProfileForm, "", expected, string(form), "")
}

// profileIdentifier checks that the bag names this profile. A bag may name several.
func (j *judge) profileIdentifier(p *Profile) {
	file := cmp.Or(j.infoFile, InfoFile)
	found, source := "no such tag", ""
	for _, t := range j.r.Info {
		if !strings.EqualFold(t.Label, profileIdentifierLabel) {
			continue
		}
		if t.Value == p.identifier {
			return
		}
		found, source = t.Value, fmt.Sprintf("%s:%d", file, t.line)
	}
	if j.infoFile == "" {
		found = "no file " + InfoFile
	}
	j.against(SeverityError, profileIdentifierLabel, RuleProfileTag, file, profileIdentifierLabel+": "+p.identifier, found, source)
}

// profileTags checks the tags of one file.
func (j *judge) profileTags(rules []tagRule, tags []Tag, file, field string) {
	for _, rule := range rules {
		field := field + "." + rule.label
		seen := 0
		for _, t := range tags {
			if !strings.EqualFold(t.Label, rule.label) {
				continue
			}
			seen++
			source := fmt.Sprintf("%s:%d", file, t.line)
			value := strings.ReplaceAll(t.Value, "\n", " ") // a long value is continued on further lines
			switch {
			case len(rule.values) > 0 && !slices.Contains(rule.values, value) && !slices.Contains(rule.values, t.Value):
				j.against(SeverityError, field, RuleProfileTag, file, rule.label+": "+oneOf(rule.values), value, source)
			case value == "" && (rule.required || rule.recommended):
				j.against(SeverityWarning, field, RuleProfileTag, file, rule.label+" with a value", "an empty one", source)
			}
			if rule.once && seen > 1 {
				j.against(SeverityError, field, RuleProfileTag, file, rule.label+" once", "repeated", source)
			}
		}
		switch {
		case seen > 0:
		case rule.required:
			j.against(SeverityError, field, RuleProfileTag, file, rule.label, "no such tag", "")
		case rule.recommended:
			j.against(SeverityWarning, field, RuleProfileTag, file, rule.label, "no such tag", "")
		}
	}
}

func (j *judge) profileManifests(c choice, have []string, prefix, required, allowed string) {
	for _, alg := range c.required {
		if !slices.Contains(have, alg) {
			j.against(SeverityError, required, RuleProfileManifest, prefix+alg+".txt", "a manifest of "+alg, "none", "")
		}
	}
	for _, alg := range have {
		if c.limited && !slices.Contains(c.allowed, alg) {
			j.against(SeverityError, allowed, RuleProfileManifest, prefix+alg+".txt", oneOf(c.allowed), alg, "")
		}
	}
}

func (j *judge) profileFetch(p *Profile) {
	has := j.tagFile(FetchFile) != nil
	switch {
	case has && p.forbidFetch:
		j.against(SeverityError, fieldAllowFetch, RuleProfileFetch, FetchFile, "no "+FetchFile, "one", "")
	case !has && p.requireFetch:
		j.against(SeverityError, fieldFetchRequired, RuleProfileFetch, FetchFile, "a file "+FetchFile, "none", "")
	}
}

// profileShare checks which files the share has. Files still to be fetched count.
func (j *judge) profileShare() {
	p := j.v.opts.Profile
	if p == nil {
		return
	}
	fetched := map[string]bool{}
	for _, e := range j.entries {
		fetched[normalized(e.File)] = true
		if !e.Present {
			j.profileFile(p, e.File)
		}
	}
	for _, f := range j.files {
		j.profileFile(p, f.name)
		if strings.HasPrefix(f.name, payloadPrefix) && !fetched[normalized(f.name)] {
			j.sent.Files++
			j.sent.Bytes += f.size
		}
	}
}

// profileFiles reports the profile's requirements on the files of all shares together.
func (j *judge) profileFiles(p *Profile) {
	if p.dataEmpty && (j.sent.Files > 1 || j.sent.Bytes > 0) {
		found := fmt.Sprintf("%d files of %d octets", j.sent.Files, j.sent.Bytes)
		j.against(SeverityError, fieldDataEmpty, RuleProfileFile, PayloadDir, "no file, or one without content", found, "")
	}
	j.required.report(j, p.tagFiles.required, fieldTagFilesRequired)
	j.required.report(j, p.payloadFiles.required, fieldPayloadRequired)
}

// profileFile checks the name of one file.
func (j *judge) profileFile(p *Profile, name string) {
	j.required.see(name)
	field, c := fieldPayloadAllowed, p.payloadFiles
	if !strings.HasPrefix(name, payloadPrefix) {
		if reserved(name) {
			return
		}
		field, c = fieldTagFilesAllowed, p.tagFiles
	}
	if c.limited && !matchesAny(c.allowed, name) {
		j.against(SeverityError, field, RuleProfileFile, name, "no file but "+oneOf(c.allowed), name, "")
	}
}

// reserved reports whether RFC 8493 defines the tag file. Other fields of a profile deal with
// these.
func reserved(name string) bool {
	kind, _ := manifestName(name)
	return kind != 0 || name == DeclarationFile || name == InfoFile || name == FetchFile || name == packageInfoFile
}

// required holds the files that must exist and were not found yet. A folder ends in a slash.
type required map[string]bool

func lookFor(lists ...[]string) required {
	out := required{}
	for _, name := range slices.Concat(lists...) {
		out[normalized(name)] = true
	}
	return out
}

// see removes a file and the folders that it lies in.
func (r required) see(name string) {
	if len(r) == 0 {
		return
	}
	name = normalized(name)
	delete(r, name)
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		delete(r, name[:i+1])
	}
}

func (r required) report(j *judge, names []string, field string) {
	for _, name := range names {
		if !r[normalized(name)] {
			continue
		}
		expected := "a file"
		if strings.HasSuffix(name, "/") {
			expected = "a folder with a file in it"
		}
		j.against(SeverityError, field, RuleProfileFile, name, expected, "none", "")
	}
}
