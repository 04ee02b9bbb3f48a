package bagit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Profile holds what a community requires of its bags beyond RFC 8493 (BagIt Profiles Specification
// 1.4.0, https://bagit-profiles.github.io/bagit-profiles-specification). ParseProfile makes it. It
// is immutable and may be used by several goroutines; see Options.Profile.
type Profile struct {
	identifier string

	tags  []tagRule            // of bag-info.txt
	other map[string][]tagRule // of other tag files, by file name

	manifests, tagManifests choice
	tagFiles, payloadFiles  choice

	forbidFetch, requireFetch, dataEmpty bool

	serialization string   // forbidden, required or optional
	formats       []string // media types; empty allows all
	versions      []string
}

// Identifier returns the profile's address, which bags that follow it name in bag-info.txt.
func (p *Profile) Identifier() string { return p.identifier }

// Accepts reports whether Serialization and Accept-Serialization allow bags of this form. It
// accepts FormUnknown.
func (p *Profile) Accepts(f Form) bool {
	switch {
	case f == FormFolder:
		return p.serialization != serializationRequired
	case len(f.mediaTypes()) == 0:
		return true
	}
	return p.serialization != serializationForbidden && (len(p.formats) == 0 || f.isOneOf(p.formats))
}

// tagRule is what a profile requires of one tag.
type tagRule struct {
	label       string
	required    bool
	recommended bool
	once        bool
	values      []string // empty allows all
}

// choice says what must and what may be in a bag.
type choice struct {
	required []string
	allowed  []string
	limited  bool // only what allowed lists; otherwise everything is allowed
}

// The fields of a profile.
const (
	fieldInfo                 = "BagIt-Profile-Info"
	fieldTags                 = "Bag-Info"
	fieldOther                = "Other-Info"
	fieldManifestsRequired    = "Manifests-Required"
	fieldManifestsAllowed     = "Manifests-Allowed"
	fieldTagManifestsRequired = "Tag-Manifests-Required"
	fieldTagManifestsAllowed  = "Tag-Manifests-Allowed"
	fieldTagFilesRequired     = "Tag-Files-Required"
	fieldTagFilesAllowed      = "Tag-Files-Allowed"
	fieldPayloadRequired      = "Payload-Files-Required"
	fieldPayloadAllowed       = "Payload-Files-Allowed"
	fieldAllowFetch           = "Allow-Fetch.txt"
	fieldFetchRequired        = "Fetch.txt-Required"
	fieldDataEmpty            = "Data-Empty"
	fieldSerialization        = "Serialization"
	fieldFormats              = "Accept-Serialization"
	fieldVersions             = "Accept-BagIt-Version"

	profileIdentifierLabel = "BagIt-Profile-Identifier"

	serializationForbidden = "forbidden"
	serializationRequired  = "required"
	serializationOptional  = "optional"
)

// maxProfile bounds a profile in octets. Published profiles have a few KiB.
const maxProfile = 1 << 20

// ErrProfile is wrapped by all errors of ParseProfile but those of reading.
var ErrProfile = errors.New("not a BagIt profile")

// ProfileError is one fault of a profile.
type ProfileError struct {
	Field  string // as a path, such as "Bag-Info.Contact-Email.required"; "" for the document
	Reason string
}

// Error implements error.
func (e *ProfileError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Unwrap returns ErrProfile.
func (e *ProfileError) Unwrap() error { return ErrProfile }

// ParseProfile reads a profile of version 1.1 to 1.4: a JSON document of at most 1 MiB. It refuses
// unknown, repeated and contradicting fields, because a misspelled field would require nothing. The
// error joins one *ProfileError for each fault, or comes from reading.
//
// ParseProfile also reads two extensions that published profiles use:
//   - "recommended" of a tag: a warning if the tag is absent (Beyond the Repository).
//   - Other-Info: rules for further tag files, by file name. It is an object like Bag-Info for each
//     file, or a list of such objects. The keys "APTrust-Info" and "aptrust-info.txt" mean the same
//     file.
func ParseProfile(r io.Reader) (*Profile, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p := profileParser{profile: &Profile{serialization: serializationOptional, other: map[string][]tagRule{}}}
	if len(raw) > maxProfile {
		p.fail("", fmt.Sprintf("longer than %d octets", maxProfile))
	} else if doc, ok := p.document(raw); ok {
		p.fields(doc)
	}
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return p.profile, nil
}

// otherTagFile returns the name of the tag file that a key of Other-Info means.
func otherTagFile(key string) string {
	if strings.HasSuffix(key, ".txt") {
		return key
	}
	return strings.ToLower(key) + ".txt"
}

// fields reads the fields of the document.
func (p *profileParser) fields(doc []jsonField) {
	allowFetch := true
	seen := map[string]bool{}
	for _, f := range doc {
		seen[f.key] = true
		switch f.key {
		case fieldInfo:
			p.info(f)
		case fieldTags:
			p.profile.tags = p.tags(f)
		case fieldOther:
			p.other(f)
		case fieldManifestsRequired:
			p.profile.manifests.required = p.algorithms(f)
		case fieldManifestsAllowed:
			p.profile.manifests.allowed, p.profile.manifests.limited = p.algorithms(f), true
		case fieldTagManifestsRequired:
			p.profile.tagManifests.required = p.algorithms(f)
		case fieldTagManifestsAllowed:
			p.profile.tagManifests.allowed, p.profile.tagManifests.limited = p.algorithms(f), true
		case fieldTagFilesRequired:
			p.profile.tagFiles.required = p.paths(f)
		case fieldTagFilesAllowed:
			p.profile.tagFiles.allowed, p.profile.tagFiles.limited = p.paths(f), true
		case fieldPayloadRequired:
			p.profile.payloadFiles.required = p.paths(f)
		case fieldPayloadAllowed:
			p.profile.payloadFiles.allowed, p.profile.payloadFiles.limited = p.paths(f), true
		case fieldAllowFetch:
			allowFetch = p.boolean(f)
		case fieldFetchRequired:
			p.profile.requireFetch = p.boolean(f)
		case fieldDataEmpty:
			p.profile.dataEmpty = p.boolean(f)
		case fieldSerialization:
			p.serialization(f)
		case fieldFormats:
			p.profile.formats = p.mediaTypes(f)
		case fieldVersions:
			p.profile.versions = p.versions(f)
		default:
			p.unknown(f, topFields)
		}
	}
	p.profile.forbidFetch = !allowFetch
	p.contradictions(seen)
}

// topFields are the fields that a document may have.
var topFields = []string{
	fieldInfo, fieldTags, fieldOther, fieldManifestsRequired, fieldManifestsAllowed, fieldTagManifestsRequired,
	fieldTagManifestsAllowed, fieldTagFilesRequired, fieldTagFilesAllowed, fieldPayloadRequired, fieldPayloadAllowed,
	fieldAllowFetch, fieldFetchRequired, fieldDataEmpty, fieldSerialization, fieldFormats, fieldVersions,
}

// contradictions reports missing fields, and fields that no bag can satisfy together.
func (p *profileParser) contradictions(seen map[string]bool) {
	for _, name := range []string{fieldInfo, fieldVersions} {
		if !seen[name] {
			p.fail(name, "required, but absent")
		}
	}
	if seen[fieldSerialization] && p.profile.serialization != serializationForbidden && len(p.profile.formats) == 0 {
		p.fail(fieldFormats, fmt.Sprintf("must name at least one media type, because %s is %q", fieldSerialization, p.profile.serialization))
	}
	if p.profile.requireFetch && p.profile.forbidFetch {
		p.fail(fieldFetchRequired, "cannot be true while "+fieldAllowFetch+" is false")
	}
	p.covered(fieldManifestsRequired, fieldManifestsAllowed, p.profile.manifests, slices.Contains[[]string])
	p.covered(fieldTagManifestsRequired, fieldTagManifestsAllowed, p.profile.tagManifests, slices.Contains[[]string])
	p.covered(fieldTagFilesRequired, fieldTagFilesAllowed, p.profile.tagFiles, coversPath)
	p.covered(fieldPayloadRequired, fieldPayloadAllowed, p.profile.payloadFiles, coversPath)
}

// covered reports what is required but not allowed.
func (p *profileParser) covered(required, allowed string, c choice, has func([]string, string) bool) {
	for _, name := range c.required {
		if c.limited && !has(c.allowed, name) {
			p.fail(allowed, fmt.Sprintf("must allow %q, which %s asks for", name, required))
		}
	}
}

// coversPath reports whether the patterns match a path. For a folder, which ends in a slash, they
// must match some file in it.
func coversPath(patterns []string, name string) bool {
	if !strings.HasSuffix(name, "/") {
		return matchesAny(patterns, name)
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return strings.HasPrefix(pattern, name) || matches(pattern, name+"x")
	})
}
