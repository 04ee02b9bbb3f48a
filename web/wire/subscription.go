package wire

import (
	"github.com/holdfast/holdfast/registry"
)

// SubscriptionRequest creates or changes a subscription.
type SubscriptionRequest struct {
	Target string              `json:"target" maxLength:"2000" doc:"nsq:TOPIC, https://HOST/... or http://HOST/..., without user, password and query"`
	Filter registry.FeedFilter `json:"filter,omitempty" doc:"Selects events; all when absent. actions and states select transitions of such items and to such states only"`
	From   *int64              `json:"from,omitempty" doc:"The event after which a new subscription starts; 0 starts at the first event; when absent, only new events are sent"`
	// SigningKey is set in the same request, so that no event is ever sent unsigned.
	SigningKey string `json:"signing_key,omitempty" maxLength:"200" doc:"whsec_ and base64: the key that signs requests to a webhook. Stored encrypted, as the credential signing:default, and never returned"`
}

// CursorRequest moves the cursor of a subscription.
type CursorRequest struct {
	Cursor *int64 `json:"cursor,omitempty" doc:"The event to continue after: 0 sends everything again; when absent, all events until now are skipped"`
	Reason string `json:"reason,omitempty" doc:"Why; kept in the history"`
}

// PauseRequest pauses a subscription.
type PauseRequest struct {
	Reason string `json:"reason" doc:"Why; shown with the subscription"`
}
