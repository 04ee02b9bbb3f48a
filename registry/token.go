package registry

import (
	"context"
	"errors"
	"slices"
	"time"
)

// TokenKeeper is who may ask, who works under whose name, and who was refused.
type TokenKeeper interface {
	// AddToken stores a bearer token's hash. A name is given once and never again, so that an actor
	// in the history is one token for ever: ErrNameTaken. ErrTaken when there is a token with this
	// id or hash.
	AddToken(ctx context.Context, t Token) error
	// TokenByHash returns the token with this hash, or ErrNotFound when there is none or it was
	// revoked or has expired.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// Tokens lists all tokens, revoked ones too, oldest first.
	Tokens(ctx context.Context) ([]Token, error)
	// Claimed lists items that run under attempts which a token claimed, by their ids, at most 100
	// a call; none of a token that nobody heard of.
	Claimed(ctx context.Context, q ClaimedQuery) ([]WorkItem, error)
	// RevokeToken makes a token useless from now on. A repeat changes nothing; ErrNotFound when
	// there is none, ErrLastAdmin when nobody could make another token afterwards.
	RevokeToken(ctx context.Context, id, actor string) error
	// Refused notes that somebody was refused something: an event of its own, type refused.
	// Bounding how many is the caller's care.
	Refused(ctx context.Context, r Refusal) error
}

// Errors about tokens.
var (
	// ErrNameTaken: there is or was a token of this name.
	ErrNameTaken = errors.New("the name belongs to another token; names are never given again")
	// ErrLastAdmin: the token is the last admin's that is good, and only an admin makes tokens.
	ErrLastAdmin = errors.New("this is the last admin token that is good; make another one first")
)

// Role is what a token may do.
type Role string

// The roles.
const (
	RoleDepositor Role = "depositor" // submits to its collections and sees what is in them
	RoleViewer    Role = "viewer"
	RoleOperator  Role = "operator"
	RoleAdmin     Role = "admin"
	RoleWorker    Role = "worker"
)

// Roles returns every role in a fixed order.
func Roles() []Role { return []Role{RoleDepositor, RoleViewer, RoleOperator, RoleAdmin, RoleWorker} }

// Token is a bearer token; only its SHA-256 is stored.
type Token struct {
	ID   string `json:"id"`
	Hash string `json:"-"`
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Collections are those that a depositor's token is good for; a depositor without any sees
	// nothing. The other roles are not bound to collections.
	Collections []string `json:"collections,omitempty"`
	// Stages are those that a worker's token is good for. None is every stage: such tokens were
	// made before tokens had stages.
	Stages    []Stage    `json:"stages,omitempty"`
	CreatedBy string     `json:"created_by,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

// Within is what the token's holder sees: nil for all collections, otherwise those named, which may
// be none.
func (t Token) Within() []string {
	if t.Role != RoleDepositor {
		return nil
	}
	return append([]string{}, t.Collections...)
}

// Good says whether the token can be used at this time: it was not revoked and has not expired.
func (t Token) Good(now time.Time) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || now.Before(*t.ExpiresAt))
}

// MaySee says whether the token's holder may see what is in a collection.
func (t Token) MaySee(collection string) bool {
	return t.Role != RoleDepositor || slices.Contains(t.Collections, collection)
}

// Serves says whether a worker may do with the token what is done in one of these stages; nil is
// what is done in every one.
func (t Token) Serves(stages []Stage) bool {
	return stages == nil || len(t.Stages) == 0 || slices.ContainsFunc(stages, func(s Stage) bool { return slices.Contains(t.Stages, s) })
}

// ClaimedQuery selects items that a token has claimed.
type ClaimedQuery struct {
	Token      string // its id
	Collection string // only items of this one; "": of any
	After      string // the id of the last item of the call before; "" at first
}

// Refusal is something that somebody was refused.
type Refusal struct {
	Actor     string `json:"actor"`     // the token's name; "" when there was none
	Operation string `json:"operation"` // method and path
	Code      string `json:"code"`      // of the problem
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Remote    string `json:"remote"`
	RequestID string `json:"request_id"`
	// Count is how many alike this one stands for, when more came than are written one by one; 0 is
	// one.
	Count int64 `json:"count,omitempty"`
}
