// Package wire holds the requests and answers that exist only in the HTTP API under /api/v1. Server
// and client share these types, so the two cannot differ. Everything else travels as the registry's
// own types, whose JSON names are part of that contract.
//
// A new field is optional, and a field's meaning never changes (docs/invariants.md, R27).
package wire

// Base is the path under which the API lies.
const Base = "/api/v1"

// Names of headers that are ours or that both sides must spell alike.
const (
	// DigestHeader carries a digest as ALGORITHM:HEX: of an upload's bytes, as the sender knows it,
	// and of content that is downloaded.
	DigestHeader = "X-Holdfast-Digest"
	// StorageHeader names the storage that content was read from.
	StorageHeader = "X-Holdfast-Storage"
	// IdempotencyHeader makes a repeated POST answer what the first one did.
	IdempotencyHeader = "Idempotency-Key"
	// RequestIDHeader names a request in the server's log.
	RequestIDHeader = "X-Request-Id"
)
