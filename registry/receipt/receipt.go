// Package receipt makes and verifies signed deposit receipts: what a version of an object consists
// of, what was done to it, and where it lies, signed by the service that holds it.
//
// It makes two promises. A receipt is a text of lines with exactly one form each, so any tool can
// compute digests and signatures over its bytes, in fifty years. And only its first line is signed:
// it has the digest of the list of files and the ends of the chain of events. So a receipt of any
// number of files is small to sign and to keep, and is read and written as a stream.
//
// docs/receipt.md describes the format. Ed25519 is RFC 8032; the key's id is the SHA-256 of its
// SubjectPublicKeyInfo (RFC 8410).
package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"time"
)

// Format is the version of the format that is written here. Those before are understood for ever:
// in format 1 no file has a time.
const Format = 2

// Magic begins every receipt of whatever format.
const Magic = `{"holdfast_receipt":`

// Zero is the hash before the first event of an object.
var Zero = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// Header is the signed first line.
type Header struct {
	Format    int       `json:"-"`       // 0: the one that is written here
	Object    string    `json:"object"`  // its ARK
	Version   int       `json:"version"` // from 1
	Owner     string    `json:"owner"`
	LocalIDs  []string  `json:"local_ids"`
	Title     string    `json:"title"`
	Creator   string    `json:"creator"`
	Date      string    `json:"date"`
	Created   time.Time `json:"created"`  // the version, as its OCFL inventory says
	Recorded  time.Time `json:"recorded"` // from when on it counted as preserved
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Manifest  string    `json:"manifest"` // sha256:HEX of the lines of files
	Events    Span      `json:"events"`
	Replicas  []Replica `json:"replicas"`
	Key       string    `json:"key"`        // PublicKey.ID of the key that signed
	PublicKey string    `json:"public_key"` // that key, in hex
}

// Span is the part of an object's chain of events that a receipt holds: all since the receipt of
// the version before.
type Span struct {
	First  int64  `json:"first"` // number of its first event in the chain, from 1
	Count  int64  `json:"count"`
	Before string `json:"before"` // hash of the event before the first, or Zero
	After  string `json:"after"`  // hash of the last one; Before when there is none
}

// Replica is a copy of the version that was read back and found right.
type Replica struct {
	Storage   string    `json:"storage"`   // name of the storage
	Verified  time.Time `json:"verified"`  // when all of it had been read back
	Inventory string    `json:"inventory"` // ALGORITHM:HEX of its OCFL inventory
}

// File is one file of the version.
type File struct {
	Path    string // logical path, as bytes: producer/NAME or system/NAME
	Size    int64
	Digests map[string]string // hex by algorithm
	// Modified is when the producer last changed it, as its source told, to the microsecond; zero
	// when nobody knows.
	Modified time.Time
	Content  string // its place in the OCFL object
}

// Event is one event of the object's chain.
type Event struct {
	Seq     int64     `json:"seq"` // its number in the chain, from 1
	Object  string    `json:"object"`
	ID      string    `json:"id"`
	Version int       `json:"version"` // that it is about; 0: all
	Type    string    `json:"type"`
	At      time.Time `json:"at"`
	Agent   string    `json:"agent"`
	Outcome string    `json:"outcome"`
	Detail  string    `json:"detail"`
}

// Hash chains an event to the one before: the SHA-256 of that one's hash in hex, a line feed, the
// event as it stands in its line, and a line feed.
func (e Event) Hash(before string) string {
	var w line
	w.text(before)
	w.text("\n")
	w.event(e)
	w.text("\n")
	sum := sha256.Sum256(w.b)
	return hex.EncodeToString(sum[:])
}

// Line is the event's line in a receipt; hash is its own.
func (e Event) Line(hash string) []byte {
	var w line
	w.text(`{"event":`)
	w.event(e)
	w.text(`,"hash":`)
	w.string(hash)
	w.text("}\n")
	return w.b
}

// Line is the file's line in a receipt.
func (f File) Line() []byte {
	var w line
	w.text(`{"file":`)
	w.string(EscapePath(f.Path))
	w.text(`,"size":`)
	w.number(f.Size)
	w.text(`,"digests":`)
	w.digests(f.Digests)
	if !f.Modified.IsZero() && oneYear(f.Modified) {
		w.text(`,"modified":`)
		w.time(f.Modified)
	}
	w.text(`,"content":`)
	w.string(EscapePath(f.Content))
	w.text("}\n")
	return w.b
}

// Manifest adds up the files of a version. The zero value is empty.
type Manifest struct {
	Files, Bytes int64
	sum          hash.Hash
}

// Add adds a file and returns its line. Files come by ascending path.
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

// Digest is sha256:HEX of the lines so far.
func (m *Manifest) Digest() string {
	if m.sum == nil {
		m.sum = sha256.New()
	}
	return "sha256:" + hex.EncodeToString(m.sum.Sum(nil))
}
