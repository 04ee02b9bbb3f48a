package metadata

import (
	"io"
	"time"
)

// Ingest is the content of mrt-ingest.txt: what was submitted, by whom, and what became of it. The
// fields are in the order of the file. Service, SubmissionDate, Batch, Job, File, Type, Profile and
// Collections are required. Other empty fields are left out, except for SuppliedIdentifier.
type Ingest struct {
	Service            string    // ingest: the software and its version
	SubmissionDate     time.Time // written in UTC
	Batch              string
	Job                string
	UserAgent          string // the submitter
	File               string
	Type               string // Merritt's name for the type: file, container, object-manifest ...
	Profile            string
	Collections        []string // collection ARKs
	StorageService     string
	StorageNode        string
	Notification       []string // mail addresses
	SuppliedIdentifier string   // the ARK in the submission; (:unas) if empty
	DigestType         string
	DigestValue        string
	Creator            string
	Title              string
	Date               string
	LocalIDs           []string
	Note               string

	// The results of later steps.
	PackageIntegrity    string // "valid" if the payload had its declared digest
	ContainerValidity   string
	ManifestValidity    string
	ManifestIntegrity   string
	AssignedIdentifier  string // the ARK minted here
	RetrievedIdentifier string // the ARK found by a local id
	EmbargoEndDate      string
	Handlers            []string // the steps that ran, in order
}

// WriteIngest writes mrt-ingest.txt: ANVL with a tab after the colon, lists joined with
// JoinLocalIDs.
//
// For a missing required field, or a value that ANVL cannot hold, it returns a *FieldError and
// writes nothing.
func WriteIngest(w io.Writer, v Ingest) error {
	supplied := v.SuppliedIdentifier
	if supplied == "" {
		supplied = string(Unassigned)
	}
	date := ""
	if !v.SubmissionDate.IsZero() {
		date = v.SubmissionDate.UTC().Format(time.RFC3339Nano)
	}
	return writeFields(w, "mrt-ingest.txt", Tab, []field{
		{"ingest", v.Service, true},
		{"submissionDate", date, true},
		{"batch", v.Batch, true},
		{"job", v.Job, true},
		{"userAgent", v.UserAgent, false},
		{"file", v.File, true},
		{"type", v.Type, true},
		{"profile", v.Profile, true},
		{"collection", JoinLocalIDs(v.Collections), true},
		{"storageService", v.StorageService, false},
		{"storageNode", v.StorageNode, false},
		{"notification", JoinLocalIDs(v.Notification), false},
		{"suppliedIdentifier", supplied, true},
		{"digestType", v.DigestType, false},
		{"digestValue", v.DigestValue, false},
		{"creator", v.Creator, false},
		{"title", v.Title, false},
		{"date", v.Date, false},
		{"localIdentifier", JoinLocalIDs(v.LocalIDs), false},
		{"note", v.Note, false},
		{"packageIntegrity", v.PackageIntegrity, false},
		{"containerValidity", v.ContainerValidity, false},
		{"manifestValidity", v.ManifestValidity, false},
		{"manifestIntegrity", v.ManifestIntegrity, false},
		{"assignedIdentifier", v.AssignedIdentifier, false},
		{"retrievedIdentifier", v.RetrievedIdentifier, false},
		{"embargoEndDate", v.EmbargoEndDate, false},
		{"handlers", JoinLocalIDs(v.Handlers), false},
	})
}

type field struct {
	label, value string
	required     bool
}

// writeFields writes the fields that have a value. A missing required field is an error.
func writeFields(w io.Writer, file string, sep Separator, fields []field) error {
	var r Record
	for _, f := range fields {
		switch {
		case f.value != "":
			r = r.Add(f.label, f.value)
		case f.required:
			return &FieldError{File: file, Field: f.label, Reason: "is missing"}
		}
	}
	return writeANVL(w, file, sep, r)
}
