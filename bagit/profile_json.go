package bagit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// profileParser reads the document of a profile and collects its faults.
type profileParser struct {
	profile *Profile
	faults  []error
}

// jsonField is a member of an object in a profile.
type jsonField struct {
	path string // from the top, with dots between
	key  string
	raw  json.RawMessage
}

func (p *profileParser) fail(field, reason string) {
	p.faults = append(p.faults, &ProfileError{Field: field, Reason: reason})
}

// document checks that raw is JSON and returns the members of its object.
func (p *profileParser) document(raw []byte) ([]jsonField, bool) {
	if !utf8.Valid(raw) {
		p.fail("", "not UTF-8")
		return nil, false
	}
	var all json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		reason := "not JSON: " + err.Error()
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			reason += fmt.Sprintf(", in line %d", 1+bytes.Count(raw[:min(int(syntax.Offset), len(raw))], []byte("\n")))
		}
		p.fail("", reason)
		return nil, false
	}
	return p.object(jsonField{raw: all})
}

// object returns the members of an object in their order. A repeated one is reported and left out.
func (p *profileParser) object(f jsonField) ([]jsonField, bool) {
	dec := json.NewDecoder(bytes.NewReader(f.raw))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		p.wrongType(f, "an object")
		return nil, false
	}
	var out []jsonField
	seen := map[string]bool{}
	for dec.More() {
		key, _ := dec.Token() // the document is known to be well-formed
		name, _ := key.(string)
		member := jsonField{path: name, key: name}
		if f.path != "" {
			member.path = f.path + "." + name
		}
		if err := dec.Decode(&member.raw); err != nil {
			p.fail(member.path, err.Error())
			return nil, false
		}
		if seen[name] {
			p.fail(member.path, "given more than once")
			continue
		}
		seen[name] = true
		out = append(out, member)
	}
	return out, true
}

func (p *profileParser) wrongType(f jsonField, want string) {
	found := string(f.raw)
	if len(found) > 60 {
		found = strings.ToValidUTF8(found[:60], "") + "..."
	}
	p.fail(f.path, fmt.Sprintf("must be %s, not %s", want, found))
}

// unknown reports an unknown field, and the known one that may be meant.
func (p *profileParser) unknown(f jsonField, known []string) {
	reason := "no such field; known are " + strings.Join(known, ", ")
	for _, name := range known {
		if normalizeAlgorithm(name) == normalizeAlgorithm(f.key) {
			reason = "no such field; " + name + " is"
		}
	}
	p.fail(f.path, reason)
}

func (p *profileParser) text(f jsonField) string {
	var s *string
	if err := json.Unmarshal(f.raw, &s); err != nil || s == nil {
		p.wrongType(f, "a text")
		return ""
	}
	return *s
}

// filled reads a text that must not be empty.
func (p *profileParser) filled(f jsonField) string {
	s := p.text(f)
	if strings.TrimSpace(s) == "" && string(f.raw) != "null" && f.raw[0] == '"' {
		p.fail(f.path, "must not be empty")
	}
	return s
}

func (p *profileParser) boolean(f jsonField) bool {
	var b *bool
	if err := json.Unmarshal(f.raw, &b); err != nil || b == nil {
		p.wrongType(f, "true or false")
		return false
	}
	return *b
}

// list reads texts. None may be empty or repeated.
func (p *profileParser) list(f jsonField) []string {
	var raw []json.RawMessage
	if err := json.Unmarshal(f.raw, &raw); err != nil || raw == nil {
		p.wrongType(f, "a list of texts")
		return nil
	}
	out := []string{}
	for i, item := range raw {
		s := p.filled(jsonField{path: fmt.Sprintf("%s[%d]", f.path, i), raw: item})
		if slices.Contains(out, s) && s != "" {
			p.fail(f.path, fmt.Sprintf("has %q more than once", s))
		}
		out = append(out, s)
	}
	return out
}

// algorithms reads checksum algorithms and normalizes their names (RFC 8493 section 2.4).
func (p *profileParser) algorithms(f jsonField) []string {
	var out []string
	for _, name := range p.list(f) {
		if _, ok := lookupAlgorithm(name); !ok {
			p.fail(f.path, fmt.Sprintf("%q is not one of %s", name, strings.Join(Algorithms(), ", ")))
			continue
		}
		out = append(out, normalizeAlgorithm(name))
	}
	return out
}

// paths reads paths or path patterns, relative to the base directory of the bag.
func (p *profileParser) paths(f jsonField) []string {
	names := p.list(f)
	payload := f.key == fieldPayloadRequired || f.key == fieldPayloadAllowed
	for _, name := range names {
		why := unsafeReference(name)
		required := f.key == fieldTagFilesRequired || f.key == fieldPayloadRequired
		switch {
		case name == "":
			continue // reported
		case why != "":
		case path.Clean(name) != strings.TrimSuffix(name, "/"):
			why = "not a plain path; " + path.Clean(name) + " is"
		case required && strings.Contains(name, "*"):
			why = "a pattern, but only a path can be required"
		case !required && strings.HasSuffix(name, "/"):
			why = "a folder; write " + name + "* for all that is in it"
		case payload && !strings.HasPrefix(name, payloadPrefix) && (required || !strings.ContainsAny(name, "*?[")):
			why = "not below " + payloadPrefix
		case !payload && strings.HasPrefix(name, payloadPrefix):
			why = "payload; see " + fieldPayloadRequired + " and " + fieldPayloadAllowed
		}
		if why != "" {
			p.fail(f.path, fmt.Sprintf("%q: %s", name, why))
		}
	}
	return names
}

func (p *profileParser) mediaTypes(f jsonField) []string {
	var out []string
	for _, name := range p.list(f) {
		kind, _, err := mime.ParseMediaType(name)
		if err != nil || !strings.Contains(kind, "/") {
			if name != "" {
				p.fail(f.path, fmt.Sprintf("%q is not a media type, as application/zip is", name))
			}
			continue
		}
		out = append(out, kind)
	}
	return out
}

func (p *profileParser) versions(f jsonField) []string {
	names := p.list(f)
	if len(names) == 0 && f.raw[0] == '[' {
		p.fail(f.path, "must name at least one version")
	}
	for _, name := range names {
		if v, ok := parseVersion(name); name != "" && (!ok || !v.Supported()) {
			p.fail(f.path, fmt.Sprintf("%q is not a version of BagIt that is known: 0.93 to 0.97, 1.0", name))
		}
	}
	return names
}

func (p *profileParser) serialization(f jsonField) {
	kinds := []string{serializationForbidden, serializationRequired, serializationOptional}
	s := p.text(f)
	if !slices.Contains(kinds, s) && f.raw[0] == '"' {
		p.fail(f.path, fmt.Sprintf("%q is not one of %s", s, strings.Join(kinds, ", ")))
	}
	p.profile.serialization = s
}

// info reads the profile's description of itself.
func (p *profileParser) info(f jsonField) {
	members, ok := p.object(f)
	if !ok {
		return
	}
	seen := map[string]bool{}
	for _, m := range members {
		seen[m.key] = true
		switch m.key {
		case profileIdentifierLabel:
			p.profile.identifier = p.filled(m)
		case "BagIt-Profile-Version":
			p.specVersion(m)
		case "Source-Organization", "External-Description", "Version":
			p.filled(m)
		default:
			p.text(m) // further tags are allowed, as in bag-info.txt
		}
	}
	for _, name := range []string{"Source-Organization", "External-Description", "Version", profileIdentifierLabel} {
		if !seen[name] {
			p.fail(f.path+"."+name, "required, but absent")
		}
	}
}

// specVersion checks the version of the specification: 1.0 to 1.4. The field came with 1.2; a
// profile without it is of 1.1.
func (p *profileParser) specVersion(f jsonField) {
	s := p.text(f)
	if f.raw[0] != '"' {
		return
	}
	major, rest, _ := strings.Cut(s, ".")
	minor, patch, _ := strings.Cut(rest, ".")
	if major != "1" || len(minor) != 1 || minor > "4" || minor < "0" || patch != "" && !allDigits(patch) {
		p.fail(f.path, fmt.Sprintf("%q is not a version of the specification that is known: 1.1.0 to 1.4.0", s))
	}
}

// tags reads Bag-Info.
func (p *profileParser) tags(f jsonField) []tagRule {
	members, _ := p.object(f)
	out := []tagRule{}
	for _, m := range members {
		label := strings.TrimSpace(m.key)
		switch {
		case label == "" || label != m.key || strings.ContainsAny(label, ":\r\n"):
			p.fail(m.path, "cannot be the label of a tag")
			continue
		case slices.ContainsFunc(out, func(r tagRule) bool { return strings.EqualFold(r.label, label) }):
			p.fail(m.path, "given more than once; labels that differ only in case are the same")
			continue
		}
		out = append(out, p.tag(m))
	}
	return out
}

func (p *profileParser) tag(f jsonField) tagRule {
	rule := tagRule{label: f.key}
	members, _ := p.object(f)
	for _, m := range members {
		switch m.key {
		case "required":
			rule.required = p.boolean(m)
		case "recommended":
			rule.recommended = p.boolean(m)
		case "repeatable":
			rule.once = !p.boolean(m)
		case "values":
			rule.values = p.list(m)
		case "description":
			p.text(m)
		default:
			p.unknown(m, []string{"required", "recommended", "repeatable", "values", "description"})
		}
	}
	return rule
}

// other reads Other-Info: an object of tag files, or a list of such objects.
func (p *profileParser) other(f jsonField) {
	var objects []json.RawMessage
	if json.Unmarshal(f.raw, &objects) != nil || objects == nil {
		objects = []json.RawMessage{f.raw}
	}
	for _, raw := range objects {
		members, _ := p.object(jsonField{path: f.path, raw: raw})
		for _, m := range members {
			name := otherTagFile(m.key)
			switch {
			case unsafeReference(name) != "" || strings.Contains(name, "/"):
				p.fail(m.path, "cannot be a tag file beside bag-info.txt")
			case reserved(name):
				p.fail(m.path, "has a form of its own; tags of "+InfoFile+" belong in "+fieldTags)
			case p.profile.other[name] != nil:
				p.fail(m.path, "given more than once")
			default:
				p.profile.other[name] = p.tags(m)
			}
		}
	}
}
