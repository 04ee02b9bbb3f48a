package wire

import (
	"github.com/holdfast/holdfast/registry"
)

// SubscriptionRequest makes a subscription, or changes one.
type SubscriptionRequest struct {
	Target string              `json:"target" maxLength:"2000" doc:"nsq:TOPIC, https://HOST/... or http://HOST/..., without user, password and query"`
	Filter registry.FeedFilter `json:"filter,omitempty" doc:"Which events are told; all without it. actions and states take transitions only, of such items and to such states"`
	From   *int64              `json:"from,omitempty" doc:"The event that a new subscription begins after; 0 begins with the first one, and without it the next one is told first"`
	// SigningKey is set together with the rest, so that nothing is sent unsigned.
	SigningKey string `json:"signing_key,omitempty" maxLength:"200" doc:"whsec_ and base64: what requests to a webhook are signed with. It is sealed before it is kept, as the credential signing:default, and never told again"`
}

// CursorRequest moves the cursor of a subscription.
type CursorRequest struct {
	Cursor *int64 `json:"cursor,omitempty" doc:"The event to go on after: 0 tells everything again, and without it all until now is passed over"`
	Reason string `json:"reason,omitempty" doc:"Why; it is kept with the act"`
}

// PauseRequest has nothing more sent.
type PauseRequest struct {
	Reason string `json:"reason" doc:"Why; whoever wonders where the events are is shown it"`
}
