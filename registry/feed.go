package registry

// FeedQuery selects events of the feed; empty fields do not restrict.
type FeedQuery struct {
	After  int64    `json:"after"`             // the cursor of the last event that was seen
	ItemID string   `json:"item_id,omitempty"` // only events of this item
	Types  []string `json:"types"`             // only events of these types
	Within []string `json:"within"`            // only events of items in these collections; nil: all, empty: none
	Limit  int      `json:"limit"`             // 0: 50; at most 500
}

// AuditQuery selects entries of the audit log: what people asked and what they were refused, not what workers and the
// Registry did by themselves. An act on many items is one entry. Empty fields do not restrict.
type AuditQuery struct {
	Actor string   `json:"actor"` // who asked: the name of a token
	Types []string `json:"types"` // only entries of these types
	After string   `json:"after"` // Next of the page before
	Limit int      `json:"limit"` // 0: 50; at most 500
}

// Types of events that are no act on an item.
const (
	EventTokenCreated = "token-created"
	EventTokenRevoked = "token-revoked"
	EventRefused      = "refused"
	// Those about credentials tell collection, origin, kind and name, and no secret.
	EventCredentialSet     = "credential-set"
	EventCredentialRemoved = "credential-removed"
)
