package premis

import "strings"

// Vocabularies of the Library of Congress.
const (
	eventTypes        = "http://id.loc.gov/vocabulary/preservation/eventType"
	eventOutcomes     = "http://id.loc.gov/vocabulary/preservation/eventOutcome"
	hashFunctions     = "http://id.loc.gov/vocabulary/preservation/cryptographicHashFunctions"
	agentTypes        = "http://id.loc.gov/vocabulary/preservation/agentType"
	rightsBases       = "http://id.loc.gov/vocabulary/preservation/rightsBasis"
	copyrightStatuses = "http://id.loc.gov/vocabulary/preservation/copyrightStatus"
	agentRoles        = "http://id.loc.gov/vocabulary/preservation/eventRelatedAgentRole"
)

// EventType is a kind of event: a label of id.loc.gov. The writer accepts other labels, and writes
// them without a reference to the vocabulary.
type EventType string

// The event types that Holdfast records.
const (
	Deletion             EventType = "deletion"
	Dissemination        EventType = "dissemination"
	FilenameChange       EventType = "filename change"
	FixityCheck          EventType = "fixity check"
	FormatIdentification EventType = "format identification"
	// IdentifierAssignment is not in the vocabulary as far as we could check, so it is written without
	// a reference.
	IdentifierAssignment     EventType = "identifier assignment"
	Ingestion                EventType = "ingestion"
	MessageDigestCalculation EventType = "message digest calculation"
	MetadataExtraction       EventType = "metadata extraction"
	PolicyAssignment         EventType = "policy assignment"
	Replication              EventType = "replication"
	Validation               EventType = "validation"
	VirusCheck               EventType = "virus check"
)

// URI returns the type's URI at id.loc.gov, or "" if there is none that we know.
func (t EventType) URI() string {
	codes := map[EventType]string{
		Deletion: "del", Dissemination: "dis", FilenameChange: "fil", FixityCheck: "fix", FormatIdentification: "for", Ingestion: "ing",
		MessageDigestCalculation: "mes", MetadataExtraction: "mee", PolicyAssignment: "poa", Replication: "rep", Validation: "val", VirusCheck: "vir",
	}
	if codes[t] == "" {
		return ""
	}
	return eventTypes + "/" + codes[t]
}

// Outcome is how an event ended: a label of id.loc.gov. The writer accepts other labels.
type Outcome string

// The outcomes of id.loc.gov.
const (
	Success Outcome = "success"
	Fail    Outcome = "fail"
	Warning Outcome = "warning"
)

// URI returns the outcome's URI at id.loc.gov, or "" if there is none.
func (o Outcome) URI() string {
	switch o {
	case Success:
		return eventOutcomes + "/suc"
	case Fail:
		return eventOutcomes + "/fai"
	case Warning:
		return eventOutcomes + "/war"
	default:
		return ""
	}
}

// HashFunction returns a digest algorithm's label and URI at id.loc.gov. For an unknown algorithm
// it returns the name unchanged, and "".
func HashFunction(algorithm string) (label, uri string) {
	labels := map[string]string{"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}
	code := strings.ReplaceAll(strings.ToLower(algorithm), "-", "")
	if labels[code] == "" {
		return algorithm, ""
	}
	return labels[code], hashFunctions + "/" + code
}

// URI returns the type's URI at id.loc.gov, or "" if there is none.
func (t AgentType) URI() string {
	codes := map[AgentType]string{Person: "per", Organization: "org", Software: "sof", Hardware: "har"}
	if codes[t] == "" {
		return ""
	}
	return agentTypes + "/" + codes[t]
}

func agentRoleURI(role string) string {
	codes := map[string]string{ExecutingProgram: "exe", Implementer: "imp", Authorizer: "aut"}
	if codes[role] == "" {
		return ""
	}
	return agentRoles + "/" + codes[role]
}

// rightsBasisURI returns a basis's URI at id.loc.gov, or "" for an unknown one.
func rightsBasisURI(basis string) string {
	codes := map[string]string{"copyright": "cop", "license": "lic", "statute": "sta", "other": "oth"}
	if codes[basis] == "" {
		return ""
	}
	return rightsBases + "/" + codes[basis]
}

// copyrightStatusURI returns a status's URI at id.loc.gov, or "" for an unknown one.
func copyrightStatusURI(status string) string {
	codes := map[string]string{"copyrighted": "cpr", "public domain": "pub", "unknown": "unk"}
	if codes[status] == "" {
		return ""
	}
	return copyrightStatuses + "/" + codes[status]
}
