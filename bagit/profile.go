package bagit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Profile is what a community asks of its bags beyond RFC 8493, after the BagIt Profiles
// Specification 1.4.0 (https://bagit-profiles.github.io/bagit-profiles-specification). It is made
// by ParseProfile, never changes, and can judge any number of bags at once: see Options.Profile.
type Profile struct {
	identifier string

	tags  []tagRule            // of bag-info.txt
	other map[string][]tagRule // of further tag files, by name

	manifests, tagManifests choice
	tagFiles, payloadFiles  choice

	forbidFetch, requireFetch, dataEmpty bool

	serialization string   // forbidden, required or optional
	formats       []string // media types; none says that any will do
	versions      []string
}

// Identifier is the profile's own address, which bags that follow it name in bag-info.txt.
func (p *Profile) Identifier() string { return p.identifier }

// Accepts says whether bags may come in the form, by Serialization and Accept-Serialization.
// FormUnknown is accepted.
func (p *Profile) Accepts(f Form) bool {
	switch {
	case f == FormFolder:
		return p.serialization != serializationRequired
	case len(f.mediaTypes()) == 0:
		return true
	}
	return p.serialization != serializationForbidden && (len(p.formats) == 0 || f.isOneOf(p.formats))
}

// tagRule is what a profile asks of one element of bag-info.txt.
type tagRule struct {
	label       string
	required    bool
	recommended bool
	once        bool
	values      []string // none says that any will do
}

// choice is what must be there and what may be there.
type choice struct {
	required []string
	allowed  []string
	limited  bool // allowed was given; otherwise everything is
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

// maxProfile bounds a profile; the published ones have a few KiB.
const maxProfile = 1 << 20

// ErrProfile is what all errors of ParseProfile but those of reading are.
var ErrProfile = errors.New("not a BagIt profile")

// ProfileError is one thing that is wrong with a profile.
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

// Unwrap says that it is an ErrProfile.
func (e *ProfileError) Unwrap() error { return ErrProfile }

// ParseProfile reads a profile of the versions 1.1 to 1.4, a JSON document of at most 1 MiB. It is
// strict, for a field that is misspelled would ask for nothing: unknown, repeated and contradicting
// fields are errors. The error joins a *ProfileError for each thing that is wrong, all of which are
// ErrProfile; any other is of reading.
//
// Beyond the specification two things are read that published profiles use: "recommended" of a tag,
// which is a warning where the tag is absent (Beyond the Repository), and Other-Info, an object (or
// a list of such) of further tag files by their names with their tags, as Bag-Info has them:
// "APTrust-Info" and "aptrust-info.txt" both are that file.
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

// otherTagFile is the name of the tag file that a key of Other-Info stands for.
func otherTagFile(key string) string {
	if strings.HasSuffix(key, ".txt") {
		return key
	}
	return strings.ToLower(key) + ".txt"
}

// fields reads the document's fields.
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

// topFields are all that a document may have.
var topFields = []string{
	fieldInfo, fieldTags, fieldOther, fieldManifestsRequired, fieldManifestsAllowed, fieldTagManifestsRequired,
	fieldTagManifestsAllowed, fieldTagFilesRequired, fieldTagFilesAllowed, fieldPayloadRequired, fieldPayloadAllowed,
	fieldAllowFetch, fieldFetchRequired, fieldDataEmpty, fieldSerialization, fieldFormats, fieldVersions,
}

// contradictions reports fields that are lacking, and those that no bag could meet together.
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

// coversPath says that a path, or a folder with the slash at its end, is among the patterns. Some
// file in the folder must be.
func coversPath(patterns []string, name string) bool {
	if !strings.HasSuffix(name, "/") {
		return matchesAny(patterns, name)
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return strings.HasPrefix(pattern, name) || matches(pattern, name+"x")
	})
}
