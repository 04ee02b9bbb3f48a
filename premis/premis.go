// Package premis writes PREMIS 3.0 documents: what an object consists of, what was done to it, and
// who did it.
//
// It makes two promises. After Close, the PREMIS 3.0 schema accepts the output: its elements have
// the required order, number and namespace. The writer refuses an entity that cannot be written so,
// before its first byte. And the same entities give the same bytes, with identifiers derived from
// what they name (see [EventID]). So recording an object twice changes nothing.
//
// A [Writer] holds one entity at a time, so memory does not grow with the number of files.
//
// Source: PREMIS Data Dictionary and schema, version 3.0; the vocabularies of id.loc.gov.
package premis

import "time"

// Identifier is a typed identifier of an object, an event or an agent. Both fields are required.
type Identifier struct {
	Type  string // such as ARK, UUID, local
	Value string
}

// Category is the kind of an object.
type Category int

// The categories that Holdfast writes.
const (
	IntellectualEntity Category = iota + 1 // what the ARK names: all versions
	Representation                         // one version: a set of files
	File                                   // one file
)

// Object describes an intellectual entity, a representation or a file.
type Object struct {
	Category Category
	IDs      []Identifier // at least one
	// OriginalName is the producer's name. XML cannot carry control characters and invalid UTF-8. A
	// name with such bytes is percent-encoded there, including every "%", and so is the whole of a
	// name of white space only. A significantProperties element then says so.
	OriginalName string
	// Characteristics are required for a File and forbidden for other objects.
	Characteristics *Characteristics
	// PreservationLevel is how well the object is to be preserved, in the institution's words; "" leaves
	// it out. It is for an intellectual entity.
	PreservationLevel string
	Storage           []Storage // forbidden for an intellectual entity
	Relationships     []Relationship
	Events            []Identifier // events that this object took part in
	Rights            []Identifier // rights statements about this object
}

// Characteristics are the properties of a file's bytes.
type Characteristics struct {
	Fixity []Fixity
	Size   int64 // in bytes; negative when unknown
	// Formats are identifications of the format. The schema requires one: without any, the writer
	// adds "unknown".
	Formats []Format
	// Modified is when the file was last changed before it arrived. It is left out if it is zero or
	// its year does not have four digits. The writer puts it into
	// creatingApplication/dateCreatedByApplication, in UTC: the data dictionary (1.5.5.3) has the
	// date of the last modification there, which copying does not change.
	Modified time.Time
}

// Fixity is a digest of a file. Algorithm and Digest are required.
type Fixity struct {
	Algorithm  string // such as SHA-512 or sha512; see HashFunction
	Digest     string // in hex
	Originator string // who computed it; left out when empty
}

// Format is one identification of a file's format: by name, by registry, or both.
type Format struct {
	Name     string // such as a MIME type
	Version  string // of the named format; needs a Name
	Registry string // such as PRONOM; needs a Key
	Key      string // such as fmt/353; needs a Registry
	Role     string // such as specification; needs a Registry
	Notes    []string
}

// Storage is a place with an object's bytes. Location or Medium is required.
type Storage struct {
	Location Identifier
	Medium   string
}

// Relationship links an object to others.
type Relationship struct {
	Type    string       // such as structural
	SubType string       // such as is included in
	Objects []Identifier // at least one
	Events  []Identifier // the events that created the relationship
}

// IncludedIn returns the relationship of a file to its representation. It goes from the part to the
// whole, so a whole of many parts stays small.
func IncludedIn(whole Identifier) Relationship {
	return Relationship{Type: "structural", SubType: "is included in", Objects: []Identifier{whole}}
}

// Represents returns the relationship of a representation to its intellectual entity.
func Represents(entity Identifier) Relationship {
	return Relationship{Type: "structural", SubType: "represents", Objects: []Identifier{entity}}
}

// Event is something that was done to one object, or in one run to many.
type Event struct {
	ID      Identifier // see EventID
	Type    EventType
	Time    time.Time // when it ended; written in UTC
	Details []string  // how it was done
	Outcome Outcome   // the zero value leaves it out
	Notes   []string  // results
	Agents  []Link
	Objects []Link
}

// Link links an event to an agent or an object.
type Link struct {
	ID    Identifier
	Roles []string // such as implementer or executing program; source or outcome
}

// Rights is a rights statement about an object.
type Rights struct {
	ID    Identifier // required
	Basis string     // copyright, license, statute or other
	// Status and Jurisdiction are required for a copyright, Jurisdiction and Note for a statute, Note for
	// other. A license needs a Note or a Document.
	Status       string
	Jurisdiction string // a country's two letters
	Note         string // a note, the terms of a license, the citation of a statute, or the other basis
	Document     string // URI of the statement or license
	Granted      []Granted
	Objects      []Identifier
}

// Granted is an act that is allowed, with its restrictions.
type Granted struct {
	Act         string
	Restriction string // "": none
	// From and Until are the days between which the restriction holds: YYYY-MM-DD. "" leaves both out.
	From, Until string
}

// AgentType is the kind of an agent.
type AgentType string

// The agent types of id.loc.gov.
const (
	Person       AgentType = "person"
	Organization AgentType = "organization"
	Software     AgentType = "software"
	Hardware     AgentType = "hardware"
)

// Roles of agents: the software that executed the event, who had it done, and who authorized it.
const (
	ExecutingProgram = "executing program"
	Implementer      = "implementer"
	Authorizer       = "authorizer"
)

// Agent is a person, institution or program that did an event or is responsible for it.
type Agent struct {
	IDs     []Identifier // at least one
	Names   []string
	Type    AgentType // required
	Version string    // of the software
	Notes   []string
}
