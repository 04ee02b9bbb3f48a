package premis

import "strings"

// Vocabularies of the Library of Congress.
const (
	eventTypes    = "http://id.loc.gov/vocabulary/preservation/eventType"
	eventOutcomes = "http://id.loc.gov/vocabulary/preservation/eventOutcome"
	hashFunctions = "http://id.loc.gov/vocabulary/preservation/cryptographicHashFunctions"
	agentTypes    = "http://id.loc.gov/vocabulary/preservation/agentType"
	agentRoles    = "http://id.loc.gov/vocabulary/preservation/eventRelatedAgentRole"
)

// EventType is a kind of event: a label of id.loc.gov. The writer accepts other labels, and writes
// them without a reference to the vocabulary.
type EventType string

// The event types that Holdfast records.
const (
	Accession                  EventType = "accession"
	Capture                    EventType = "capture"
	Creation                   EventType = "creation"
	Deaccession                EventType = "deaccession"
	Decompression              EventType = "decompression"
	Deletion                   EventType = "deletion"
	DigitalSignatureGeneration EventType = "digital signature generation"
	DigitalSignatureValidation EventType = "digital signature validation"
	Dissemination              EventType = "dissemination"
	Exporting                  EventType = "exporting"
	FilenameChange             EventType = "filename change"
	FixityCheck                EventType = "fixity check"
	FormatIdentification       EventType = "format identification"
	// IdentifierAssignment is not in the vocabulary as far as we could check, so it is written
	// without a reference.
	IdentifierAssignment       EventType = "identifier assignment"
	InformationPackageCreation EventType = "information package creation"
	Ingestion                  EventType = "ingestion"
	IngestionEnd               EventType = "ingestion end"
	IngestionStart             EventType = "ingestion start"
	MessageDigestCalculation   EventType = "message digest calculation"
	MetadataExtraction         EventType = "metadata extraction"
	MetadataModification       EventType = "metadata modification"
	Migration                  EventType = "migration"
	Modification               EventType = "modification"
	Packing                    EventType = "packing"
	Quarantine                 EventType = "quarantine"
	Recovery                   EventType = "recovery"
	Replication                EventType = "replication"
	Transfer                   EventType = "transfer"
	Unpacking                  EventType = "unpacking"
	Unquarantine               EventType = "unquarantine"
	Validation                 EventType = "validation"
	VirusCheck                 EventType = "virus check"
)

// URI returns the type's URI at id.loc.gov, or "" if there is none that we know.
func (t EventType) URI() string {
	if code := t.code(); code != "" {
		return eventTypes + "/" + code
	}
	return ""
}

func (t EventType) code() string {
	switch t {
	case Accession:
		return "acc"
	case Capture:
		return "cap"
	case Creation:
		return "cre"
	case Deaccession:
		return "dea"
	case Decompression:
		return "dec"
	case Deletion:
		return "del"
	case DigitalSignatureGeneration:
		return "dsg"
	case DigitalSignatureValidation:
		return "dig"
	case Dissemination:
		return "dis"
	case Exporting:
		return "exp"
	case FilenameChange:
		return "fil"
	case FixityCheck:
		return "fix"
	case FormatIdentification:
		return "for"
	case InformationPackageCreation:
		return "ipc"
	case Ingestion:
		return "ing"
	case IngestionEnd:
		return "ine"
	case IngestionStart:
		return "ins"
	case MessageDigestCalculation:
		return "mes"
	case MetadataExtraction:
		return "mee"
	case MetadataModification:
		return "mem"
	case Migration:
		return "mig"
	case Modification:
		return "mod"
	case Packing:
		return "pac"
	case Quarantine:
		return "qua"
	case Recovery:
		return "rec"
	case Replication:
		return "rep"
	case Transfer:
		return "tra"
	case Unpacking:
		return "unp"
	case Unquarantine:
		return "unq"
	case Validation:
		return "val"
	case VirusCheck:
		return "vir"
	default:
		return ""
	}
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
