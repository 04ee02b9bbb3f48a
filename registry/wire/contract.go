package wire

import "github.com/holdfast/holdfast/registry"

// The requests under /registry carry the arguments of the contract's methods as they are, for Holdfast's own processes.

// ByID names one thing.
type ByID struct {
	ID string `json:"id"`
}

// Somebody names who did something; "" is everybody.
type Somebody struct {
	Name string `json:"name"`
}

// StoredUploads asks for a page of somebody's uploads that have ended, everybody's for "".
type StoredUploads struct {
	Name  string `json:"name"`
	After string `json:"after"`
}

// UploadTaking names an upload on its way, and where whoever takes it forward believes that it stands.
type UploadTaking struct {
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
}

// Nothing is a request, or an answer, that says no more than that it came.
type Nothing struct{}

// Rows is a whole list.
type Rows[T any] struct {
	Rows []T `json:"rows"`
}

// SealRequest names a graph.
type SealRequest struct {
	GraphID string `json:"graph_id"`
	Actor   string `json:"actor"`
}

// HoldRemoval names a hold.
type HoldRemoval struct {
	Scope registry.HoldScope `json:"scope"`
	Key   string             `json:"key"`
	Actor string             `json:"actor"`
}

// CollectionRecord is a collection as it shall be.
type CollectionRecord struct {
	Collection registry.Collection `json:"collection"`
	Actor      string              `json:"actor"`
}

// ProfileVersionsRequest asks for the versions of a collection's profile.
type ProfileVersionsRequest struct {
	Mnemonic string `json:"mnemonic"`
	Before   int    `json:"before"`
	Limit    int    `json:"limit"`
}

// TokenRecord is a token with its hash.
type TokenRecord struct {
	Token registry.Token `json:"token"`
	Hash  string         `json:"hash"`
}

// RecordOf returns a token as it travels between Holdfast's own processes.
func RecordOf(t registry.Token) TokenRecord { return TokenRecord{Token: t, Hash: t.Hash} }

// Whole returns the token with its hash.
func (r TokenRecord) Whole() registry.Token {
	t := r.Token
	t.Hash = r.Hash
	return t
}

// ByHash names a token.
type ByHash struct {
	Hash string `json:"hash"`
}

// TokenRevocation names a token that is of no use any more.
type TokenRevocation struct {
	ID    string `json:"id"`
	Actor string `json:"actor"`
}

// CredentialRecord is a credential with its sealed secret.
type CredentialRecord struct {
	Credential registry.Credential `json:"credential"`
	Sealed     string              `json:"sealed"`
}

// CredentialRecordOf returns a credential as it travels between Holdfast's own processes.
func CredentialRecordOf(c registry.Credential) CredentialRecord {
	return CredentialRecord{Credential: c, Sealed: c.Sealed}
}

// Whole returns the credential with its sealed secret.
func (r CredentialRecord) Whole() registry.Credential {
	c := r.Credential
	c.Sealed = r.Sealed
	return c
}

// SubscriptionRecord is a subscription as it shall be, with its sealed secrets.
type SubscriptionRecord struct {
	Request     registry.SubscriptionRequest `json:"request"`
	Credentials []CredentialRecord           `json:"credentials"`
}

// SubscriptionRecordOf returns a request as it travels between Holdfast's own processes.
func SubscriptionRecordOf(r registry.SubscriptionRequest) SubscriptionRecord {
	out := SubscriptionRecord{Request: r}
	for _, c := range r.Credentials {
		out.Credentials = append(out.Credentials, CredentialRecordOf(c))
	}
	return out
}

// Whole returns the request with its sealed secrets.
func (r SubscriptionRecord) Whole() registry.SubscriptionRequest {
	out := r.Request
	for _, c := range r.Credentials {
		out.Credentials = append(out.Credentials, c.Whole())
	}
	return out
}

// CredentialRemoval names a credential that is to be forgotten.
type CredentialRemoval struct {
	Collection string `json:"collection"`
	Origin     string `json:"origin"`
	Actor      string `json:"actor"`
}

// Counts are items by the state that people see.
type Counts struct {
	Counts map[registry.State]int64 `json:"counts"`
}

// EventsRequest asks for events of an item, or of all.
type EventsRequest struct {
	ItemID string `json:"item_id"`
	After  int64  `json:"after"`
	Limit  int    `json:"limit"`
}

// Cursor is a place in the feed.
type Cursor struct {
	Seq int64 `json:"seq"`
}

// FeedWait asks to be told of events beyond a cursor.
type FeedWait struct {
	After int64 `json:"after"`
	Wait  int64 `json:"wait_ms" doc:"In milliseconds"`
}

// ReportRequest names a report.
type ReportRequest struct {
	BatchID string `json:"batch_id"`
	Closing int64  `json:"closing"`
}

// ReportsRequest asks for a page of a batch's reports.
type ReportsRequest struct {
	BatchID string `json:"batch_id"`
	Before  int64  `json:"before"`
	Limit   int    `json:"limit"`
}

// PremisRequest asks for a page of an object's events.
type PremisRequest struct {
	ObjectID string `json:"object_id"`
	After    string `json:"after"`
	Limit    int    `json:"limit"`
}

// VersionRef names a version of an object.
type VersionRef struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
}

// FilesRequest asks for a page of a version's state, or of an object's files of all versions, where Version is the one to go on
// after.
type FilesRequest struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
	After    []byte `json:"after" doc:"A path; base64"`
	Limit    int    `json:"limit"`
}
