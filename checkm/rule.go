package checkm

// Rule names what a fault broke. The texts are part of the contract: users filter by them.
type Rule string

// Rules on the manifest as a whole.
const (
	// RuleEmpty: there is nothing in it.
	RuleEmpty Rule = "empty"
	// RuleBOM: it begins with a byte order mark, of UTF-8 or UTF-16.
	RuleBOM Rule = "byte-order-mark"
	// RuleEncoding: a NUL byte, or a byte that is not UTF-8.
	RuleEncoding Rule = "encoding"
	// RuleNoProfile: no #%profile line and no type given by the submitter.
	RuleNoProfile Rule = "profile-missing"
	// RuleProfileUnknown: a profile that is none of Merritt's.
	RuleProfileUnknown Rule = "profile-unknown"
	// RuleProfileMismatch: a profile other than the type given by the submitter.
	RuleProfileMismatch Rule = "profile-mismatch"
	// RuleProfileRepeated: a second #%profile; the first counts. A warning.
	RuleProfileRepeated Rule = "profile-repeated"
	// RuleFields: a #%fields line that gives a column twice, or leaves out the one that
	// rows cannot do without (an error), or has a name that is not known (a warning).
	RuleFields Rule = "fields"
	// RuleHeaderMissing: no #%checkm, #%prefix or #%fields line. A warning.
	RuleHeaderMissing Rule = "header-missing"
	// RuleHeader: a header line that is unknown, misspelt or of another version. A warning.
	RuleHeader Rule = "header"
	// RuleHeaderLate: a header line after the first row; it is ignored. A warning.
	RuleHeaderLate Rule = "header-late"
	// RuleTruncated: no #%eof at the end. On a row: the last line ended without a line
	// break or #%eof, so its values may be cut short.
	RuleTruncated Rule = "truncated"
	// RuleAfterEOF: rows or header lines after #%eof (an error), or blank lines, comments
	// or text on its own line (a warning).
	RuleAfterEOF Rule = "after-eof"
	// RuleFinalLineBreak: no line break after the last line, #%eof. A warning.
	RuleFinalLineBreak Rule = "final-line-break"
	// RuleNoEntries: not one row.
	RuleNoEntries Rule = "no-entries"
)

// Rules on a row.
const (
	// RuleLineLength: a line of more than MaxLine bytes.
	RuleLineLength Rule = "line-length"
	// RuleURLMissing: no URL.
	RuleURLMissing Rule = "url-missing"
	// RuleURL: not an absolute URL (an error), or one whose fragment is likely part of a
	// file's name (a warning).
	RuleURL Rule = "url"
	// RuleURLScheme: a scheme other than http, https and s3.
	RuleURLScheme Rule = "url-scheme"
	// RuleURLSecret: a name or a password in the URL, which must not be kept with it.
	RuleURLSecret Rule = "url-secret"
	// RuleAlgorithm: a digest algorithm that is not known, or a digest without one.
	RuleAlgorithm Rule = "algorithm"
	// RuleDigest: a digest that is missing beside its algorithm, or not of its form.
	RuleDigest Rule = "digest"
	// RuleSize: not a count of bytes from 0 to 2^63-1.
	RuleSize Rule = "size"
	// RuleModified: a date that cannot be read; it is left out. A warning.
	RuleModified Rule = "modified"
	// RuleNameMissing: no name and none to be had from the URL.
	RuleNameMissing Rule = "name-missing"
	// RuleName: a name that leads out of its folder, is absolute, has empty or dot
	// segments or control characters (an error), or has folders in a batch (a warning).
	RuleName Rule = "name"
	// RuleEscape: a name with %7C, %09, %0a or %0d, which are no escapes here. A warning.
	RuleEscape Rule = "escape"
	// RuleNamePipe: a name that was cut at an unescaped pipe.
	RuleNamePipe Rule = "name-pipe"
	// RuleContainerName: a name in a batch of containers that is another kind of file's.
	RuleContainerName Rule = "container-name"
	// RuleNameDuplicate: a name that an earlier row of the same object has.
	RuleNameDuplicate Rule = "name-duplicate"
	// RuleFileAndFolder: a name that is the folder of another row of the same object, or
	// whose own folder is a file there.
	RuleFileAndFolder Rule = "file-and-folder"
	// RuleFolders: more folders in one object than are told apart.
	RuleFolders Rule = "folders"
	// RuleNameLong: a part of a name that most file systems cannot hold. A warning.
	RuleNameLong Rule = "name-long"
	// RuleNameCase: a name that differs from an earlier one only by case or by the
	// normal form of its letters. A warning.
	RuleNameCase Rule = "name-case"
	// RuleMIMEType: not type/subtype. A warning.
	RuleMIMEType Rule = "mime-type"
	// RulePrimaryID: not a well-formed ARK.
	RulePrimaryID Rule = "primary-identifier"
	// RuleExtraColumns: more columns than the profile or #%fields has.
	RuleExtraColumns Rule = "extra-columns"
)
