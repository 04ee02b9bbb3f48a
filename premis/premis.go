// Package premis writes PREMIS 3.0 documents: what an object is made of, what was done to it, and
// who did it.
//
// It makes two promises. After Close, the output is a document that the PREMIS 3.0 schema accepts:
// elements in its order and number, in its namespace. An entity that cannot be written so is
// refused whole, before its first byte. And the same entities give the same bytes, with identifiers
// derived from what they name (see [EventID]), so recording an object twice changes nothing.
//
// A [Writer] holds one entity at a time, so memory does not grow with the number of files.
//
// Source: PREMIS Data Dictionary and schema, version 3.0; the vocabularies of id.loc.gov.
package premis

import "time"

// Identifier is a typed identifier of an object, an event or an agent. Both fields must be given.
type Identifier struct {
	Type  string // such as ARK, UUID, local
	Value string
}

// Category is the kind of an object.
type Category int

// The categories that Holdfast writes.
const (
	IntellectualEntity Category = iota + 1 // what the ARK names, over all its versions
	Representation                         // one version of it: a set of files
	File                                   // one file
)

// Object describes an intellectual entity, a representation or a file.
type Object struct {
	Category Category
	IDs      []Identifier // at least one
	// OriginalName is the producer's name. Control characters and bytes that are no text, which XML
	// cannot carry, are written as %XX, as is every "%" of such a name and all of a name of white
	// space alone; a significantProperties element then says so.
	OriginalName string
	// Characteristics must be given for a File and for nothing else.
	Characteristics *Characteristics
	Storage         []Storage // not for an intellectual entity
	Relationships   []Relationship
	Events          []Identifier // events that this object took part in
}

// Characteristics are the properties of a file's bytes.
type Characteristics struct {
	Fixity []Fixity
	Size   int64 // in bytes; negative when unknown
	// Formats are the format's identifications. The schema wants one: when there is none, "unknown"
	// is written.
	Formats []Format
	// Modified is when the file was last changed before it came, left out when zero or when its
	// year does not have four digits. It is written as
	// creatingApplication/dateCreatedByApplication, in UTC: the data dictionary (1.5.5.3) has the
	// date of the last modification there, which no copy changes.
	Modified time.Time
}

// Fixity is a digest of a file. Algorithm and Digest must be given.
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

// Storage is a place where an object's bytes are. One of Location and Medium must be given.
type Storage struct {
	Location Identifier
	Medium   string
}

// Relationship ties an object to others.
type Relationship struct {
	Type    string       // such as structural
	SubType string       // such as is included in
	Objects []Identifier // at least one
	Events  []Identifier // the events by which it came about
}

// IncludedIn returns the relationship of a file to its representation. It points from the part to
// the whole, so that a whole of many parts stays small.
func IncludedIn(whole Identifier) Relationship {
	return Relationship{Type: "structural", SubType: "is included in", Objects: []Identifier{whole}}
}

// Represents returns the relationship of a representation to its intellectual entity.
func Represents(entity Identifier) Relationship {
	return Relationship{Type: "structural", SubType: "represents", Objects: []Identifier{entity}}
}

// Event is something that was done, to one object or in one run to many.
type Event struct {
	ID      Identifier // see EventID
	Type    EventType
	Time    time.Time // when it ended; written in UTC
	Details []string  // how it was done
	Outcome Outcome   // the zero value leaves it out
	Notes   []string  // what came of it
	Agents  []Link
	Objects []Link
}

// Link ties an event to an agent or an object.
type Link struct {
	ID    Identifier
	Roles []string // such as implementer or executing program; source or outcome
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

// The roles of agents that Holdfast writes: the software that did it, who had it done, and who
// allowed it.
const (
	ExecutingProgram = "executing program"
	Implementer      = "implementer"
	Authorizer       = "authorizer"
)

// Agent is who did or was answerable for an event: a worker, a person, an institution.
type Agent struct {
	IDs     []Identifier // at least one
	Names   []string
	Type    AgentType // must be given
	Version string    // of the software
	Notes   []string
}
