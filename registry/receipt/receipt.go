// Package receipt makes and verifies signed deposit receipts. A receipt says what a version of an
// object consists of, what was done to it, and where it is stored. The service that holds the
// object signs it.
//
// It makes two promises. Each line of a receipt has exactly one form, so any tool can compute
// digests and signatures over its bytes, in fifty years. Only the first line is signed: it has the
// digest of the list of files and the ends of the chain of events. So a receipt of any number of
// files is small to sign and to keep, and is written and read as a stream.
//
// docs/receipt.md describes the format. Ed25519 is RFC 8032; a key's id is the SHA-256 of its
// SubjectPublicKeyInfo (RFC 8410).
package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"time"
)

// Format is the version of the format that this package writes. It reads all earlier versions. In
// format 1 no file has a time. Since format 3 a receipt has all that a Registry knows of a version,
// so that one can be made again from what lies beside the bytes, and it may be unsigned.
const Format = 3

// Magic begins every receipt of every format.
const Magic = `{"holdfast_receipt":`

// Zero is the hash before the first event of an object.
var Zero = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// Header is the signed first line.
type Header struct {
	Format   int      `json:"-"`       // 0: Format
	Object   string   `json:"object"`  // its ARK
	Version  int      `json:"version"` // from 1
	Owner    string   `json:"owner"`
	LocalIDs []string `json:"local_ids"`
	Title    string   `json:"title"`
	Creator  string   `json:"creator"`
	Date     string   `json:"date"`
	// These are known since format 3.
	Collection     string    `json:"collection"`
	Item           string    `json:"item"`            // the job that made the version
	ProfileVersion int       `json:"profile_version"` // of the collection's profile; 0: not known
	EZIDItem       string    `json:"ezid_item"`       // the item under which EZID knows the object; "": it does not
	Named          time.Time `json:"named"`           // when the object got its ARK
	Terms          Terms     `json:"terms"`           // in force once the version was recorded

	Created   time.Time `json:"created"`  // the version, as its OCFL inventory says
	Recorded  time.Time `json:"recorded"` // when it became preserved
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Manifest  string    `json:"manifest"` // sha256:HEX of the lines of files
	Events    Span      `json:"events"`
	Replicas  []Replica `json:"replicas"`
	Key       string    `json:"key"`        // PublicKey.ID of the key that signed; "": nobody did
	PublicKey string    `json:"public_key"` // that key, in hex
}

// Terms are the rights, the preservation level and the embargo of the object; "" is what is not stated.
type Terms struct {
	Basis             string `json:"basis"` // of the rights, and what follows up to URI
	Status            string `json:"status"`
	Jurisdiction      string `json:"jurisdiction"`
	Statement         string `json:"statement"`
	URI               string `json:"uri"`
	PreservationLevel string `json:"preservation_level"`
	EmbargoUntil      string `json:"embargo_until"` // YYYY-MM-DD
	EmbargoReason     string `json:"embargo_reason"`
}

// Span is the part of an object's chain of events that a receipt holds: all events since the
// previous version's receipt.
type Span struct {
	First  int64  `json:"first"` // number of the first event, from 1
	Count  int64  `json:"count"`
	Before string `json:"before"` // hash of the event before the first, or Zero
	After  string `json:"after"`  // hash of the last event; Before if there is none
}

// Last returns the number of the last event, First-1 if there is none.
func (s Span) Last() int64 { return s.First + s.Count - 1 }

// Replica is a copy of the version that was read back and compared.
type Replica struct {
	Storage   string    `json:"storage"`   // name of the storage
	Verified  time.Time `json:"verified"`  // when the check had read all of it
	Inventory string    `json:"inventory"` // ALGORITHM:HEX of its OCFL inventory
}

// File is one file of the version.
type File struct {
	Path    string // logical path, as bytes: producer/NAME or system/NAME
	Size    int64
	Digests map[string]string // hex by algorithm
	// Modified is when the producer last changed it, as its source said, in microseconds. It is
	// zero if unknown.
	Modified time.Time
	// These are known since format 3.
	MIMEType string
	Format   *FileFormat // nil: not identified
	Since    int         // the version from which on the path has this content; 0: not known
	Content  string      // content path in the OCFL object
}

// FileFormat is a file's format in PRONOM.
type FileFormat struct {
	PUID     string `json:"puid"`
	Name     string `json:"name"`
	Version  string `json:"version"`  // of the format
	Registry string `json:"registry"` // version of PRONOM
	Warning  string `json:"warning"`  // why it may be wrong
}

// Event is one event of the object's chain.
type Event struct {
	Seq     int64     `json:"seq"` // its number in the chain, from 1
	Object  string    `json:"object"`
	ID      string    `json:"id"`
	Version int       `json:"version"` // the event's version; 0: all
	Type    string    `json:"type"`
	At      time.Time `json:"at"`
	Agent   string    `json:"agent"`
	Outcome string    `json:"outcome"`
	Detail  string    `json:"detail"`
}

// Hash returns the hash that chains an event to the one before. It is the SHA-256 of the previous
// hash in hex, a line feed, the event as in its line, and a line feed.
func (e Event) Hash(before string) string {
	var w line
	w.text(before)
	w.text("\n")
	w.event(e)
	w.text("\n")
	sum := sha256.Sum256(w.b)
	return hex.EncodeToString(sum[:])
}

// Line returns the event's line in a receipt. hash is the event's own.
func (e Event) Line(hash string) []byte {
	var w line
	w.text(`{"event":`)
	w.event(e)
	w.field("hash", hash)
	w.text("}\n")
	return w.b
}

// Line returns the file's line in a receipt.
func (f File) Line() []byte {
	var w line
	w.text(`{"file":`)
	w.string(EscapePath(f.Path))
	w.numberField("size", f.Size)
	w.text(`,"digests":`)
	w.digests(f.Digests)
	if !f.Modified.IsZero() && fourDigitYear(f.Modified) {
		w.timeField("modified", f.Modified)
	}
	if f.MIMEType != "" {
		w.field("mime", f.MIMEType)
	}
	if f.Format != nil {
		w.format(*f.Format)
	}
	if f.Since != 0 {
		w.numberField("since", int64(f.Since))
	}
	w.field("content", EscapePath(f.Content))
	w.text("}\n")
	return w.b
}

// Manifest sums up the files of a version. Its zero value is empty and ready to use.
type Manifest struct {
	Files, Bytes int64
	sum          hash.Hash
}

// Add adds a file and returns its line. Files must come in ascending order of their paths.
func (m *Manifest) Add(f File) []byte {
	if m.sum == nil {
		m.sum = sha256.New()
	}
	text := f.Line()
	m.sum.Write(text)
	m.Files++
	m.Bytes += f.Size
	return text
}

// Digest returns sha256:HEX of the lines so far.
func (m *Manifest) Digest() string {
	if m.sum == nil {
		m.sum = sha256.New()
	}
	return "sha256:" + hex.EncodeToString(m.sum.Sum(nil))
}
