package registry

import (
	"context"
	"time"
)

// Types of events about signing in. They say who signed in, how and from where, and contain no
// secret.
const (
	EventSignedIn     = "signed-in"
	EventSignedOut    = "signed-out"
	EventSessionEnded = "session-ended" // ended by another session, or because there were too many
	EventLinkMade     = "sign-in-link"  // a link with which somebody can sign in as a token's holder
)

// SignInMethod is how a person authenticated.
type SignInMethod string

// The ways to sign in.
const (
	SignInToken SignInMethod = "token" // pasted into the form
	SignInLink  SignInMethod = "link"  // a one-time link, made with a token
	SignInOIDC  SignInMethod = "oidc"  // at an OpenID provider
)

// Session is a signed-in browser. The browser's cookie contains the secret; only its SHA-256 is
// stored.
type Session struct {
	ID   string `json:"id"`
	Hash string `json:"-"`
	// TokenID is the token used to sign in: the session ends with it. "" for OpenID.
	TokenID string `json:"token_id,omitempty"`
	// Subject is the user at an OpenID provider; "" for tokens.
	Subject string `json:"subject,omitempty"`
	// Name is the actor of acts in the session. Role and Collections stay as they were when it
	// began.
	Name        string       `json:"name"`
	Role        Role         `json:"role"`
	Collections []string     `json:"collections,omitempty"`
	Method      SignInMethod `json:"method"`
	Agent       string       `json:"agent,omitempty"`   // browser, as it identifies itself
	Address     string       `json:"address,omitempty"` // address it signed in from
	CreatedAt   time.Time    `json:"created_at"`
	// SeenAt is when it was last used, to within a minute.
	SeenAt    time.Time     `json:"seen_at"`
	ExpiresAt time.Time     `json:"expires_at"` // even if it is used
	Idle      time.Duration `json:"-"`          // how long it may be unused
}

// Lifetime limits sessions.
type Lifetime struct {
	Idle time.Duration // unused
	Most time.Duration // even if it is used
}

// MostSessions is how many sessions a token, or an OpenID subject, can have. A further one ends the
// longest unused.
const MostSessions = 50

// MostLinks is how many unused links a token can have. A further one removes the oldest.
const MostLinks = 10

// Token returns the rights of the session as a token.
func (s Session) Token() Token {
	return Token{ID: s.TokenID, Name: s.Name, Role: s.Role, Collections: s.Collections}
}

// Same reports whether two sessions belong to the same token or subject.
func (s Session) Same(other Session) bool {
	return s.TokenID == other.TokenID && s.Subject == other.Subject
}

// Signing manages sessions and sign-in links. Only the process that serves the pages uses it,
// directly on the database. Times are compared by the database's clock.
type Signing interface {
	// AddLink stores the hash of a one-time link. For this time a browser can sign in with it as
	// the holder of a token.
	AddLink(ctx context.Context, hash, tokenID string, good time.Duration) error
	// LinkToken returns the token of a valid link without using the link up. ErrNotFound as for
	// AddLinkedSession.
	LinkToken(ctx context.Context, link string) (Token, error)
	// AddLinkedSession uses a link up and adds its session in one transaction: of two concurrent
	// calls one succeeds. The caller sets ID, Hash, Agent and Address. ErrNotFound: the link was
	// used or has expired, or its token is no longer valid.
	AddLinkedSession(ctx context.Context, link string, s Session, l Lifetime) (Session, error)
	// AddSession adds a session. With a TokenID it gets the token's name, role and collections, and
	// never outlives the token; ErrNotFound: the token is not valid.
	AddSession(ctx context.Context, s Session, l Lifetime) (Session, error)
	// SessionByHash returns a valid session. ErrNotFound: it is unknown, ended, expired or was
	// unused for too long, or its token is not valid. active marks it as used, which is written at
	// most once a minute.
	SessionByHash(ctx context.Context, hash string, active bool) (Session, error)
	// Sessions lists the valid sessions, last used first.
	Sessions(ctx context.Context) ([]Session, error)
	// EndSession ends a session: its browser must sign in again. kind is EventSignedOut or
	// EventSessionEnded. ErrNotFound: it has ended already.
	EndSession(ctx context.Context, id, kind, actor string) error
}
