package wire

import (
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TokenRequest creates a bearer token.
type TokenRequest struct {
	Name        string   `json:"name" doc:"Its owner; the history shows it with every act. A name cannot be used twice" example:"scanner-2"`
	Role        string   `json:"role" doc:"depositor, viewer, operator, admin or worker" example:"depositor"`
	Collections []string `json:"collections,omitempty" doc:"depositor: the collections that the token is valid for" example:"[\"maps\"]"`
	// Stages are those of a worker's token.
	Stages    []registry.Stage `json:"stages,omitempty" doc:"worker: the stages that the token is valid for"`
	ExpiresAt *time.Time       `json:"expires_at,omitempty" doc:"When it expires; never when absent"`
}

// TokenResponse answers a TokenRequest.
type TokenResponse struct {
	Token  registry.Token `json:"token"`
	Secret string         `json:"secret" doc:"The bearer token. It is returned only here"`
}

// SignInLink is a link that signs in a browser once.
type SignInLink struct {
	Path      string    `json:"path" doc:"The link's path on this service; it contains a secret"`
	ExpiresAt time.Time `json:"expires_at" doc:"When the link expires if unused"`
}

// Feed is a page of the feed.
type Feed struct {
	Rows []registry.Event `json:"rows"`
	// End is the cursor of the newest event when the page was made, whether the query selects that
	// event or not.
	End int64 `json:"end" doc:"The cursor of the newest event, listed here or not"`
	// Next is the cursor to continue with: the query selects no event between the last row and
	// Next.
	Next int64 `json:"next" doc:"The cursor to continue with"`
}
