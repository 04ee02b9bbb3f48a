package bagit

import "strings"

// Rule names what a Fault breaks. Its values are part of the API and do not change.
type Rule string

// The rules. "Since 1.0" means an error in 1.0 and a warning before.
const (
	RuleDeclaration    Rule = "declaration"      // bagit.txt is absent or malformed; parts of it since 1.0
	RuleVersion        Rule = "version"          // BagIt-Version is malformed or not supported
	RuleEncoding       Rule = "encoding"         // not the declared one, or not supported: error; not UTF-8 in 1.0: warning
	RuleByteOrderMark  Rule = "byte-order-mark"  // in bagit.txt always an error, in other UTF-8 files since 1.0
	RulePayloadDir     Rule = "payload-dir"      // there is no data folder
	RuleNoManifest     Rule = "no-manifest"      // there is no payload manifest
	RuleManifestLine   Rule = "manifest-line"    // a line of a manifest is malformed
	RuleAlgorithm      Rule = "algorithm"        // unknown: error; name not normalized or two of one: warning
	RuleListedTwice    Rule = "listed-twice"     // two digests: error; the same digest: error since 1.0
	RuleOutsidePayload Rule = "outside-payload"  // a payload manifest lists a file outside data/
	RuleUnlisted       Rule = "unlisted"         // payload not in every manifest (before 1.0: in none); tag file: warning
	RuleMissing        Rule = "missing"          // listed, absent, not in fetch.txt
	RuleNotFetched     Rule = "not-fetched"      // listed, absent, in fetch.txt
	RuleDigest         Rule = "digest"           // the content differs from the manifest
	RuleNotVerified    Rule = "not-verified"     // the digest was not taken of the file
	RuleTagManifest    Rule = "tag-manifest"     // lists payload or tag manifests, or not all manifests: since 1.0
	RuleBagInfo        Rule = "bag-info"         // a line is malformed: error; wrong spaces around label or value: since 1.0
	RuleOxum           Rule = "payload-oxum"     // count differs: error; repeated or malformed: since 1.0
	RuleFetch          Rule = "fetch"            // malformed line: error; file not listed or not payload: since 1.0
	RuleUnsafeName     Rule = "unsafe-name"      // leaves the bag or cannot be handled safely
	RuleFileType       Rule = "file-type"        // a link, a device or the like: refused, never followed
	RuleDuplicateEntry Rule = "duplicate-entry"  // the archive has two files of one name
	RuleFileAndFolder  Rule = "file-and-folder"  // a name is a file and the folder of another
	RuleOutsideBag     Rule = "outside-bag"      // the archive has more than the one bag
	RuleArchive        Rule = "archive"          // the archive is damaged or cut off
	RuleLimit          Rule = "limit"            // more than the limits allow
	RuleNormalization  Rule = "normalization"    // names differ in Unicode normal form only: warning
	RuleCase           Rule = "case"             // names differ in case only: warning; as a stand-in only before 1.0
	RuleRelativePath   Rule = "relative-path"    // "./" in a manifest or fetch.txt: warning
	RulePercent        Rule = "percent-encoding" // CR, LF or % not escaped as the version asks: warning
	RuleMD5Sum         Rule = "md5sum-format"    // the lines have the format of md5sum: warning
	RuleSystemFile     Rule = "system-file"      // .DS_Store and the like, listed: warning; absent, unlisted: since 1.0
	RulePortableName   Rule = "portable-name"    // not every file system can hold the name: warning
)

// The rules of Options.Profile. They leave a bag complete but not valid. Clause names the field of
// the profile.
const (
	RuleProfileVersion  Rule = "profile-version"       // Accept-BagIt-Version
	RuleProfileForm     Rule = "profile-serialization" // Serialization and Accept-Serialization
	RuleProfileTag      Rule = "profile-tag"           // Bag-Info, Other-Info; a recommended tag is absent, or a tag is empty: warning
	RuleProfileManifest Rule = "profile-manifest"      // Manifests and Tag-Manifests, -Required and -Allowed
	RuleProfileFetch    Rule = "profile-fetch"         // Allow-Fetch.txt and Fetch.txt-Required
	RuleProfileFile     Rule = "profile-file"          // Tag-Files and Payload-Files, -Required and -Allowed; Data-Empty
)

// profileClause is the specification that Clause cites for the rules of profiles.
const profileClause = "BagIt Profiles 1.4.0"

func (r Rule) ofProfile() bool { return strings.HasPrefix(string(r), "profile-") }

// describe returns the clause that a rule comes from, and how to fix the fault.
func (r Rule) describe() (clause, fix string) {
	const rfc = "RFC 8493 section "
	switch r {
	case RuleDeclaration:
		return rfc + "2.1.1", "write bagit.txt with exactly the two lines BagIt-Version and Tag-File-Character-Encoding"
	case RuleVersion:
		return rfc + "2.1.1", "declare the version that the bag was made for; 1.0 is current"
	case RuleEncoding:
		return rfc + "2.3", "write all tag files in the declared encoding, best UTF-8"
	case RuleByteOrderMark:
		return rfc + "2.3", "write the file without a byte-order mark"
	case RulePayloadDir:
		return rfc + "2.1.2", "put the payload into a folder named data"
	case RuleNoManifest:
		return rfc + "2.1.3", "add a payload manifest, such as manifest-sha512.txt"
	case RuleManifestLine:
		return rfc + "2.1.3", "write the line as checksum, space, path"
	case RuleAlgorithm:
		return rfc + "2.4", "use a registered algorithm, best sha512, and its lower-case name in the file name"
	case RuleListedTwice:
		return rfc + "2.1.3", "list every file once in each manifest"
	case RuleOutsidePayload:
		return rfc + "2.1.3", "list files below data/ in payload manifests, all others in tag manifests"
	case RuleUnlisted:
		return rfc + "3", "list the file in every manifest of its kind, or take it out of the bag"
	case RuleMissing:
		return rfc + "3", "add the file, or remove it from the manifests if it does not belong to the bag"
	case RuleNotFetched:
		return rfc + "2.2.3", "download the file from its address in fetch.txt, then validate again"
	case RuleDigest:
		return rfc + "3", "send the file again; if it was changed on purpose, write new manifests"
	case RuleNotVerified:
		return rfc + "3", "validate again with the digests of this algorithm"
	case RuleTagManifest:
		return rfc + "2.2.1", "list every payload manifest and other tag files, but no tag manifests and no payload"
	case RuleBagInfo:
		return rfc + "2.2.2", "write the line as label, colon, space, value; indent continued lines"
	case RuleOxum:
		return rfc + "2.2.2", "write Payload-Oxum once, as octets, dot, number of files; if files are missing, send them again"
	case RuleFetch:
		return rfc + "2.2.3", "write the line as url, length or -, path of a file that is in every payload manifest"
	case RuleUnsafeName:
		return rfc + "5.1", "use a relative path inside the bag, with / between its parts and without control characters"
	default:
		return r.describePractice()
	}
}

// describePractice describes the rules of practice and of serialization.
func (r Rule) describePractice() (clause, fix string) {
	const (
		rfc           = "RFC 8493 section "
		serialization = "BagIt 0.97 section 4"
	)
	switch r {
	case RuleFileType:
		return rfc + "5.1", "put the file itself into the bag instead of a link or a special file"
	case RuleDuplicateEntry:
		return serialization, "pack the bag again, each file once"
	case RuleFileAndFolder:
		return serialization, "rename one of the two"
	case RuleOutsideBag:
		return serialization, "pack one bag in one top folder and nothing beside it"
	case RuleArchive:
		return serialization, "pack and send the archive again"
	case RuleLimit:
		return rfc + "5", "split the bag into several"
	case RuleNormalization:
		return rfc + "6.1.1.3", "use one Unicode normal form, best NFC, for names and manifests"
	case RuleCase:
		return rfc + "6.1.1.3", "give the files names that differ in more than case"
	case RuleRelativePath:
		return rfc + "2.1.3", `write paths without "./"`
	case RulePercent:
		return rfc + "2.1.3", "escape CR, LF and since 1.0 the percent sign in manifests, and nothing else"
	case RuleMD5Sum:
		return rfc + "6.1.3", "write new manifests; strict validation fails on the marks of md5sum"
	case RuleSystemFile:
		return rfc + "6.1", "leave files out of the bag that the operating system creates"
	case RulePortableName:
		return rfc + "6.1.2", "avoid control characters, \\ < > : \" | ? * and the device names of Windows"
	}
	return r.describeProfile()
}

// describeProfile describes the rules of profiles.
func (r Rule) describeProfile() (clause, fix string) {
	switch r {
	case RuleProfileVersion:
		return profileClause, "make the bag again in a version that the profile accepts"
	case RuleProfileForm:
		return profileClause, "send the bag in a form that the profile accepts"
	case RuleProfileTag:
		return profileClause, "write the tag as the profile requires, then write new tag manifests"
	case RuleProfileManifest:
		return profileClause, "make the bag with the algorithms that the profile requires"
	case RuleProfileFetch:
		return profileClause, "send the bag with or without fetch.txt, as the profile requires"
	case RuleProfileFile:
		return profileClause, "put the files into the bag that the profile requires, and no others"
	}
	return "", ""
}
