package registry

import (
	"context"
	"errors"
	"slices"
	"time"
)

// TokenKeeper manages tokens, and records refused requests.
type TokenKeeper interface {
	// AddToken stores a token's hash. Names are never reused, so that an actor in the history is
	// always one token: ErrNameTaken. ErrTaken: there is a token with this id or hash.
	AddToken(ctx context.Context, t Token) error
	// TokenByHash returns the token with this hash. ErrNotFound: it is unknown, revoked or expired. It
	// only reads; NoteTokenUses writes that the token was used.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// Tokens lists all tokens, also revoked ones, oldest first.
	Tokens(ctx context.Context) ([]Token, error)
	// Claimed lists the running items whose attempts a token claimed, by id, at most 100 a call. An
	// unknown token has none.
	Claimed(ctx context.Context, q ClaimedQuery) ([]WorkItem, error)
	// RevokeToken revokes a token at once. A repeat changes nothing. ErrNotFound: there is no such
	// token. ErrLastAdmin: no valid admin token would remain.
	RevokeToken(ctx context.Context, id, actor string) error
	// Refused records a refused request as an event of type refused. The caller must limit their
	// number.
	Refused(ctx context.Context, r Refusal) error
}

// TokenUseNoting records when tokens were last used.
type TokenUseNoting interface {
	// NoteTokenUses writes down which tokens were used since the last call, in this process. Each
	// token is written once an hour at most. After an error the next call writes them, too.
	NoteTokenUses(ctx context.Context) error
}

// Errors about tokens.
var (
	// ErrNameTaken: a token has, or had, this name.
	ErrNameTaken = errors.New("the name belongs to another token; names are never given again")
	// ErrLastAdmin: the token is the last valid admin token, and only admins create tokens.
	ErrLastAdmin = errors.New("this is the last valid admin token; create another one first")
)

// Role says what a token may do.
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

// Token is a bearer token. Only its SHA-256 is stored.
type Token struct {
	ID   string `json:"id"`
	Hash string `json:"-"`
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Collections are the collections of a depositor's token; without any it gives access to
	// nothing. Other roles are not restricted to collections.
	Collections []string `json:"collections,omitempty"`
	// Stages are the stages of a worker's token; none means all, for tokens created before tokens
	// had stages.
	Stages    []Stage    `json:"stages,omitempty"`
	CreatedBy string     `json:"created_by,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	// UsedAt is when it was last used, by a request or a browser that it signed in, to within an hour;
	// nil: not since Holdfast notes this.
	UsedAt *time.Time `json:"used_at,omitempty"`
}

// Within returns the collections that the holder may see; nil: all, empty: none.
func (t Token) Within() []string {
	if t.Role != RoleDepositor {
		return nil
	}
	return append([]string{}, t.Collections...)
}

// Good reports whether the token is valid at a time: neither revoked nor expired.
func (t Token) Good(now time.Time) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || now.Before(*t.ExpiresAt))
}

// MaySee reports whether the holder may see a collection.
func (t Token) MaySee(collection string) bool {
	return t.Role != RoleDepositor || slices.Contains(t.Collections, collection)
}

// Serves reports whether a worker may use the token for something that belongs to these stages;
// nil: to every stage. A family of functions belongs to each of them.
func (t Token) Serves(stages []Stage) bool {
	return stages == nil || len(t.Stages) == 0 || slices.ContainsFunc(t.Stages, func(s Stage) bool {
		return slices.Contains(stages, s) || slices.Contains(stages, s.Family())
	})
}

// ClaimedQuery selects items that a token has claimed.
type ClaimedQuery struct {
	Token      string // id of the token
	Collection string // only items of this collection; "": of all
	After      string // id of the last item of the previous call; "" at first
}

// Refusal is a refused request.
type Refusal struct {
	Actor     string `json:"actor"`     // name of the token; "" without a token
	Operation string `json:"operation"` // method and path
	Code      string `json:"code"`      // code of the problem
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Remote    string `json:"remote"`
	RequestID string `json:"request_id"`
	// Count is how many equal refusals this one represents if there were too many to record; 0
	// means 1.
	Count int64 `json:"count,omitempty"`
}
