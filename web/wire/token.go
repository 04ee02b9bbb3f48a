package wire

import (
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TokenRequest makes a bearer token.
type TokenRequest struct {
	Name        string   `json:"name" doc:"Whose it is; it stands in the history with every act, and is never given again" example:"scanner-2"`
	Role        string   `json:"role" doc:"depositor, viewer, operator, admin or worker" example:"depositor"`
	Collections []string `json:"collections,omitempty" doc:"depositor: the collections that the token is good for" example:"[\"maps\"]"`
	// Stages are what a worker's token is good for.
	Stages    []registry.Stage `json:"stages,omitempty" doc:"worker: the stages that the token is good for"`
	ExpiresAt *time.Time       `json:"expires_at,omitempty" doc:"When it ends; never when not given"`
}

// TokenResponse answers it.
type TokenResponse struct {
	Token  registry.Token `json:"token"`
	Secret string         `json:"secret" doc:"What to send as the bearer token. It is told here and never again"`
}

// SignInLink is a link by which a browser signs in once.
type SignInLink struct {
	Path      string    `json:"path" doc:"The link's address below the service's own; it holds a secret"`
	ExpiresAt time.Time `json:"expires_at" doc:"When it ends, if nobody has used it by then"`
}

// Feed is a page of the feed.
type Feed struct {
	Rows []registry.Event `json:"rows"`
	// End is the cursor of the newest event when the page was made, whether it was asked for or
	// not.
	End int64 `json:"end" doc:"The cursor of the newest event of all, whether it is listed here or not"`
	// Next is the cursor to go on with: nothing that was asked for lies between the last row and
	// it.
	Next int64 `json:"next" doc:"The cursor to go on with"`
}
