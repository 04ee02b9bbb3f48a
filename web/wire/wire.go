// Package wire holds the requests and answers that exist only in the HTTP API under /api/v1. Server
// and client share these types, so they always agree. All else travels as the registry's own types,
// whose JSON names are part of its contract.
//
// A new field is optional, and a field's meaning never changes (docs/invariants.md, R27).
package wire

// Base is the path of the API.
const Base = "/api/v1"

// Names of Holdfast's own headers, and of headers that both sides must spell alike.
const (
	// DigestHeader carries a digest as ALGORITHM:HEX: of an upload's bytes, as the sender computed
	// it, and of downloaded content.
	DigestHeader = "X-Holdfast-Digest"
	// ExportHeader gives the id of the export that a file is read for. The audit log then has one entry
	// for the export instead of one for files that were read.
	ExportHeader = "X-Holdfast-Export"
	// CommandAgent begins the User-Agent of this program's commands.
	CommandAgent = "holdfast/"
	// StorageHeader names the storage that the content was read from.
	StorageHeader = "X-Holdfast-Storage"
	// IdempotencyHeader is the key of a POST. A repeated POST with the same key gets the first
	// one's answer.
	IdempotencyHeader = "Idempotency-Key"
	// RequestIDHeader identifies a request in the server's log.
	RequestIDHeader = "X-Request-Id"
)
