package registry

import (
	"context"
	"time"
)

// Types of events about signing in. They tell who, how and from where, and no secret.
const (
	EventSignedIn     = "signed-in"
	EventSignedOut    = "signed-out"
	EventSessionEnded = "session-ended" // by another session than itself, or by a further one than there may be
	EventLinkMade     = "sign-in-link"  // by which somebody can sign in as a token's holder
)

// SignInMethod is how somebody proved who they are.
type SignInMethod string

// The ways to sign in.
const (
	SignInToken SignInMethod = "token" // pasted into the form
	SignInLink  SignInMethod = "link"  // a one-time link, made with a token
	SignInOIDC  SignInMethod = "oidc"  // at an OpenID provider
)

// Session is a browser that has signed in. Its secret is in the browser's cookie; only the SHA-256
// is stored.
type Session struct {
	ID   string `json:"id"`
	Hash string `json:"-"`
	// TokenID is the token that it was signed in with: the session ends with it. "" of an OpenID
	// provider's.
	TokenID string `json:"token_id,omitempty"`
	// Subject is who it is at an OpenID provider; "" of a token's.
	Subject string `json:"subject,omitempty"`
	// Name is the actor of what is done in the session. Role and Collections are as they were when
	// it began.
	Name        string       `json:"name"`
	Role        Role         `json:"role"`
	Collections []string     `json:"collections,omitempty"`
	Method      SignInMethod `json:"method"`
	Agent       string       `json:"agent,omitempty"`   // the browser, by its own words
	Address     string       `json:"address,omitempty"` // that it signed in from
	CreatedAt   time.Time    `json:"created_at"`
	// SeenAt is when it was last used, a minute more or less.
	SeenAt    time.Time     `json:"seen_at"`
	ExpiresAt time.Time     `json:"expires_at"` // whatever is done
	Idle      time.Duration `json:"-"`          // how long it may go unused
}

// Lifetime is how long sessions last.
type Lifetime struct {
	Idle time.Duration // without being used
	Most time.Duration // whatever is done
}

// MostSessions is how many sessions one token, or one subject of an OpenID provider, can have. A
// further one ends the one that was unused for longest.
const MostSessions = 50

// MostLinks is how many one-time links of one token can be open. A further one ends the oldest.
const MostLinks = 10

// Token is the right that a session gives, as a token would.
func (s Session) Token() Token {
	return Token{ID: s.TokenID, Name: s.Name, Role: s.Role, Collections: s.Collections}
}

// Same says whether two sessions are the same person's: of one token, or of one subject.
func (s Session) Same(other Session) bool {
	return s.TokenID == other.TokenID && s.Subject == other.Subject
}

// Signing is how people sign in to the pages. Only the process that serves the pages asks it, next
// to the database. Compared times come from the database's clock.
type Signing interface {
	// AddLink stores the hash of a one-time link by which a browser signs in as the holder of a
	// token, for this long.
	AddLink(ctx context.Context, hash, tokenID string, good time.Duration) error
	// LinkToken returns the token of a link that can be used, and uses nothing up. ErrNotFound as
	// of AddLinkedSession.
	LinkToken(ctx context.Context, link string) (Token, error)
	// AddLinkedSession uses a link up and adds the session that comes of it, in one transaction: of
	// two calls at once one wins. The caller fills in ID, Hash, Agent and Address. ErrNotFound when
	// there is no such link any more, or its token is not good any more.
	AddLinkedSession(ctx context.Context, link string, s Session, l Lifetime) (Session, error)
	// AddSession adds a session. With a TokenID its name, role and collections are the token's;
	// ErrNotFound when that is not good any more. A session never outlives its token.
	AddSession(ctx context.Context, s Session, l Lifetime) (Session, error)
	// SessionByHash returns a session that is good, or ErrNotFound: it was never begun, was ended,
	// went unused for too long, has expired, or its token is not good any more. active says that it
	// is being used, which keeps it from ending unused; this is written at most once a minute.
	SessionByHash(ctx context.Context, hash string, active bool) (Session, error)
	// Sessions lists the sessions that are good, the last used first.
	Sessions(ctx context.Context) ([]Session, error)
	// EndSession ends a session: its browser has to sign in again. kind is EventSignedOut or
	// EventSessionEnded. ErrNotFound when it has ended already.
	EndSession(ctx context.Context, id, kind, actor string) error
}
