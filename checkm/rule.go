package checkm

// Rule names the rule that a fault breaks. The values are part of the API: users filter by them.
type Rule string

// Rules on the manifest as a whole.
const (
	// RuleEmpty: the file is empty.
	RuleEmpty Rule = "empty"
	// RuleBOM: it begins with a byte order mark, of UTF-8 or UTF-16.
	RuleBOM Rule = "byte-order-mark"
	// RuleEncoding: a NUL byte, or a byte that is not UTF-8.
	RuleEncoding Rule = "encoding"
	// RuleNoProfile: no #%profile line and no type given by the submitter.
	RuleNoProfile Rule = "profile-missing"
	// RuleProfileUnknown: the profile is not one of Merritt's.
	RuleProfileUnknown Rule = "profile-unknown"
	// RuleProfileMismatch: a profile other than the type given by the submitter.
	RuleProfileMismatch Rule = "profile-mismatch"
	// RuleProfileRepeated: a second #%profile; the first counts. A warning.
	RuleProfileRepeated Rule = "profile-repeated"
	// RuleFields: a #%fields line that names a column twice or lacks the required one (an error),
	// or that has an unknown name (a warning).
	RuleFields Rule = "fields"
	// RuleHeaderMissing: no #%checkm, #%prefix or #%fields line. A warning.
	RuleHeaderMissing Rule = "header-missing"
	// RuleHeader: a header line that is unknown, misspelt or of another version. A warning.
	RuleHeader Rule = "header"
	// RuleHeaderLate: a header line after the first row; it is ignored. A warning.
	RuleHeaderLate Rule = "header-late"
	// RuleTruncated: no #%eof at the end. On a row: the last line has no line break and no #%eof
	// follows, so its values may be cut off.
	RuleTruncated Rule = "truncated"
	// RuleAfterEOF: rows or header lines after #%eof (an error), or blank lines, comments or text
	// on its line (a warning).
	RuleAfterEOF Rule = "after-eof"
	// RuleFinalLineBreak: no line break after the last line, #%eof. A warning.
	RuleFinalLineBreak Rule = "final-line-break"
	// RuleNoEntries: no row.
	RuleNoEntries Rule = "no-entries"
)

// Rules on a row.
const (
	// RuleLineLength: a line longer than MaxLine bytes.
	RuleLineLength Rule = "line-length"
	// RuleURLMissing: no URL.
	RuleURLMissing Rule = "url-missing"
	// RuleURL: not an absolute URL (an error), or one with a fragment that is probably part of a
	// file's name (a warning).
	RuleURL Rule = "url"
	// RuleURLScheme: a scheme other than http, https and s3.
	RuleURLScheme Rule = "url-scheme"
	// RuleURLSecret: a name or password in the URL, which must not be stored.
	RuleURLSecret Rule = "url-secret"
	// RuleAlgorithm: an unknown digest algorithm, or a digest without algorithm.
	RuleAlgorithm Rule = "algorithm"
	// RuleDigest: a malformed digest, or an algorithm without one.
	RuleDigest Rule = "digest"
	// RuleSize: not a number of bytes from 0 to 2^63-1.
	RuleSize Rule = "size"
	// RuleModified: an unreadable date, which is ignored. A warning.
	RuleModified Rule = "modified"
	// RuleNameMissing: no name, and the URL does not end in one.
	RuleNameMissing Rule = "name-missing"
	// RuleName: a name that leads out of its folder, is absolute, has empty or dot
	// segments or control characters (an error), or has folders in a batch (a warning).
	RuleName Rule = "name"
	// RuleEscape: a name with %7C, %09, %0a or %0d, which are no escapes here. A warning.
	RuleEscape Rule = "escape"
	// RuleNamePipe: a name that was cut at an unescaped pipe.
	RuleNamePipe Rule = "name-pipe"
	// RuleContainerName: a name in a batch of containers that has the extension of another kind of
	// file.
	RuleContainerName Rule = "container-name"
	// RuleNameDuplicate: a name that an earlier row of the same object has.
	RuleNameDuplicate Rule = "name-duplicate"
	// RuleFileAndFolder: a name that is a file in one row and a folder in another row of the
	// object.
	RuleFileAndFolder Rule = "file-and-folder"
	// RuleFolders: more files, folders or similar names in one object than can be checked.
	RuleFolders Rule = "folders"
	// RuleNameLong: a part of a name that most file systems cannot hold. A warning.
	RuleNameLong Rule = "name-long"
	// RuleNameCase: a name that differs from an earlier one only in case or Unicode normal form. A
	// warning.
	RuleNameCase Rule = "name-case"
	// RuleMIMEType: not type/subtype. A warning.
	RuleMIMEType Rule = "mime-type"
	// RulePrimaryID: not a well-formed ARK.
	RulePrimaryID Rule = "primary-identifier"
	// RuleExtraColumns: more columns than the profile or #%fields has.
	RuleExtraColumns Rule = "extra-columns"
)
