package outbound

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) subscriptionRoutes() {
	const path = "/subscriptions/{name}"
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-subscriptions", Method: http.MethodGet, Path: "/subscriptions", Summary: "List subscriptions and their progress"}, s.subscriptions)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-subscription", Method: http.MethodGet, Path: path, Summary: "Show a subscription"}, s.subscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "put-subscription", Method: http.MethodPut, Path: path, Summary: "Create or change a subscription"}, s.putSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-subscription", Method: http.MethodDelete, Path: path, Summary: "Remove a subscription and its keys"}, s.removeSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "rewind-subscription", Method: http.MethodPut, Path: path + "/cursor", Summary: "Move a subscription's cursor back or forward"}, s.rewindSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "pause-subscription", Method: http.MethodPut, Path: path + "/pause", Summary: "Pause a subscription; no event is lost"}, s.pauseSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "resume-subscription", Method: http.MethodDelete, Path: path + "/pause", Summary: "Resume a subscription; a failing one is tried at once"}, s.resumeSubscription)
}

// SubscriptionName names a subscription in a path.
type SubscriptionName struct {
	Name string `path:"name" maxLength:"200"`
}

func (s *Service) subscriptions(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Subscription]], error) {
	all, err := s.Registry.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

// subscriptionOf returns a subscription, or a problem that lists the existing ones.
func (s *Service) subscriptionOf(ctx context.Context, name string) (registry.Subscription, error) {
	all, err := s.Registry.Subscriptions(ctx)
	if err != nil {
		return registry.Subscription{}, err
	}
	i := slices.IndexFunc(all, func(b registry.Subscription) bool { return b.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, b := range all {
			names[i] = b.Name
		}
		if len(names) == 0 {
			return registry.Subscription{}, endpoint.NotFound("subscription %q was not found; there are none", name)
		}
		return registry.Subscription{}, endpoint.NotFound("subscription %q was not found; use one of %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

func (s *Service) subscription(ctx context.Context, in *SubscriptionName) (*endpoint.Output[registry.Subscription], error) {
	return endpoint.Answered(s.subscriptionOf(ctx, in.Name))
}

type putSubscriptionInput struct {
	SubscriptionName
	Body wire.SubscriptionRequest
}

func (s *Service) putSubscription(ctx context.Context, in *putSubscriptionInput) (*endpoint.Output[registry.Subscription], error) {
	r := registry.SubscriptionRequest{Name: in.Name, Target: in.Body.Target, Filter: in.Body.Filter, From: registry.FeedNow, Actor: access.Actor(ctx)}
	if in.Body.From != nil {
		r.From = *in.Body.From
	}
	if in.Body.SigningKey != "" {
		c, err := s.signingKey(ctx, in.Name, in.Body)
		if err != nil {
			return nil, err
		}
		r.Credentials = []registry.Credential{c}
	}
	return s.changed(ctx, "set", in.Name, func() (registry.Subscription, error) { return s.Registry.PutSubscription(ctx, r) })
}

// defaultKey is the origin of a signing key that is set in the request of its subscription.
const defaultKey = "signing:default"

func (s *Service) signingKey(ctx context.Context, name string, r wire.SubscriptionRequest) (registry.Credential, error) {
	faults := secretFaults(registry.CredentialSigning, r.SigningKey)
	for i := range faults {
		faults[i].Location = "body.signing_key"
	}
	if _, ok := (registry.Subscription{Target: r.Target}).Topic(); ok {
		faults = append(faults, wire.Fault{Location: "body.signing_key", Message: "NSQ messages are not signed; leave the key out"})
	}
	if err := endpoint.Invalid("the subscription was not set", faults...); err != nil {
		return registry.Credential{}, err
	}
	c := registry.Credential{Collection: registry.SubscriptionOwner(name), Origin: defaultKey, Kind: registry.CredentialSigning, CreatedBy: access.Actor(ctx)}
	err := s.seal(&c, r.SigningKey)
	return c, err
}

// changed makes a change of a subscription and returns the subscription afterwards. It does not log
// a webhook's address, which may contain a secret.
func (s *Service) changed(ctx context.Context, act, name string, change func() (registry.Subscription, error)) (*endpoint.Output[registry.Subscription], error) {
	b, err := change()
	if errors.Is(err, registry.ErrNotFound) {
		if _, missing := s.subscriptionOf(ctx, name); missing != nil {
			err = missing
		}
	}
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "subscription changed", "subscription", name, "act", act, "actor", access.Actor(ctx))
	return s.subscription(ctx, &SubscriptionName{Name: b.Name})
}

func (s *Service) removeSubscription(ctx context.Context, in *SubscriptionName) (*struct{}, error) {
	if _, err := s.subscriptionOf(ctx, in.Name); err != nil {
		return nil, err
	}
	err := s.Registry.RemoveSubscription(ctx, in.Name, access.Actor(ctx))
	if err == nil {
		s.Log.InfoContext(ctx, "subscription removed", "subscription", in.Name, "actor", access.Actor(ctx))
	}
	return nil, err
}

type rewindSubscriptionInput struct {
	SubscriptionName
	Body wire.CursorRequest
}

func (s *Service) rewindSubscription(ctx context.Context, in *rewindSubscriptionInput) (*endpoint.Output[registry.Subscription], error) {
	if err := endpoint.Invalid("the cursor was not moved", valid.Text("body.reason", in.Body.Reason, valid.MaxText)...); err != nil {
		return nil, err
	}
	cursor := registry.FeedNow
	if in.Body.Cursor != nil {
		if cursor = *in.Body.Cursor; cursor < 0 {
			return nil, endpoint.Invalid("the cursor was not moved", wire.Fault{Location: "body.cursor", Message: "must be 0 or more; leave it out for the newest event"})
		}
	}
	return s.changed(ctx, "rewind", in.Name, func() (registry.Subscription, error) {
		return s.Registry.RewindSubscription(ctx, in.Name, cursor, strings.TrimSpace(in.Body.Reason), access.Actor(ctx))
	})
}

type pauseSubscriptionInput struct {
	SubscriptionName
	Body wire.PauseRequest
}

func (s *Service) pauseSubscription(ctx context.Context, in *pauseSubscriptionInput) (*endpoint.Output[registry.Subscription], error) {
	reason := strings.TrimSpace(in.Body.Reason)
	faults := valid.Text("body.reason", reason, valid.MaxText)
	if reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: give the reason; it is shown with the subscription"})
	}
	if err := endpoint.Invalid("the subscription was not paused", faults...); err != nil {
		return nil, err
	}
	return s.changed(ctx, "pause", in.Name, func() (registry.Subscription, error) {
		return s.Registry.PauseSubscription(ctx, in.Name, reason, access.Actor(ctx))
	})
}

func (s *Service) resumeSubscription(ctx context.Context, in *SubscriptionName) (*endpoint.Output[registry.Subscription], error) {
	return s.changed(ctx, "resume", in.Name, func() (registry.Subscription, error) {
		return s.Registry.ResumeSubscription(ctx, in.Name, access.Actor(ctx))
	})
}
