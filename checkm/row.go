package checkm

import (
	"slices"
	"time"
)

// Row is one entry of a manifest, unescaped and normalized.
type Row struct {
	// Line is its line in the manifest, from 1.
	Line int `json:"line"`
	// URL is the absolute address of the file as written. It is empty only in an InContainer
	// manifest.
	URL string `json:"url,omitempty"`
	// Algorithm and Digest are both set or both empty. Algorithm is a canonical name of the
	// function Algorithm. Digest is lower-case hex of its length.
	Algorithm string `json:"algorithm,omitempty"`
	Digest    string `json:"digest,omitempty"`
	// Size is in bytes, or -1 if not given.
	Size int64 `json:"size"`
	// Modified is in UTC, or zero if not given.
	Modified time.Time `json:"modified,omitzero"`
	// Name is the relative path of the file within its object, byte for byte, with slashes. If the
	// manifest has none it is the last part of the URL's path.
	Name string `json:"name"`
	// MIMEType is as written.
	MIMEType string `json:"mime_type,omitempty"`
	// PrimaryID is a well-formed ARK as written, with or without the slash after "ark:".
	PrimaryID string `json:"primary_id,omitempty"`
	// LocalIDs lists each identifier once, in the order given.
	LocalIDs []string `json:"local_ids,omitempty"`
	// Creator, Title and Date are free text.
	Creator string `json:"creator,omitempty"`
	Title   string `json:"title,omitempty"`
	Date    string `json:"date,omitempty"`
}

// Equal reports whether both rows have the same values, apart from Line.
func (r Row) Equal(o Row) bool {
	return r.URL == o.URL && r.Algorithm == o.Algorithm && r.Digest == o.Digest && r.Size == o.Size &&
		r.Modified.Equal(o.Modified) && r.Name == o.Name && r.MIMEType == o.MIMEType &&
		r.PrimaryID == o.PrimaryID && slices.Equal(r.LocalIDs, o.LocalIDs) &&
		r.Creator == o.Creator && r.Title == o.Title && r.Date == o.Date
}
