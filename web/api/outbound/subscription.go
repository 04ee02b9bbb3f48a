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
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-subscriptions", Method: http.MethodGet, Path: "/subscriptions", Summary: "List who is told of events, and how far they are"}, s.subscriptions)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-subscription", Method: http.MethodGet, Path: path, Summary: "Show a subscription"}, s.subscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "put-subscription", Method: http.MethodPut, Path: path, Summary: "Have a receiver told of events, or change who is told of which"}, s.putSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-subscription", Method: http.MethodDelete, Path: path, Summary: "End a subscription, and forget its keys"}, s.removeSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "rewind-subscription", Method: http.MethodPut, Path: path + "/cursor", Summary: "Go on after an earlier event, or a later one"}, s.rewindSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "pause-subscription", Method: http.MethodPut, Path: path + "/pause", Summary: "Send nothing more for the time being; nothing is lost"}, s.pauseSubscription)
	endpoint.Register(s.Server, endpoint.Operation{ID: "resume-subscription", Method: http.MethodDelete, Path: path + "/pause", Summary: "Go on after a pause; one that is failing is tried at once"}, s.resumeSubscription)
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

// subscriptionOf returns a subscription, or a problem that names those there are.
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
		return registry.Subscription{}, endpoint.NotFound("there is no subscription %q; use one of those there are (%s)", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

func (s *Service) subscription(ctx context.Context, in *SubscriptionName) (*endpoint.Output[registry.Subscription], error) {
	b, err := s.subscriptionOf(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &endpoint.Output[registry.Subscription]{Body: b}, nil
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

// defaultKey is the credential that a key becomes that is set together with a subscription.
const defaultKey = "signing:default"

func (s *Service) signingKey(ctx context.Context, name string, r wire.SubscriptionRequest) (registry.Credential, error) {
	faults := secretFaults(registry.CredentialSigning, r.SigningKey)
	for i := range faults {
		faults[i].Location = "body.signing_key"
	}
	if _, ok := (registry.Subscription{Target: r.Target}).Topic(); ok {
		faults = append(faults, wire.Fault{Location: "body.signing_key", Message: "messages of NSQ are not signed"})
	}
	if err := endpoint.Invalid("the subscription was not set", faults...); err != nil {
		return registry.Credential{}, err
	}
	c := registry.Credential{Collection: registry.SubscriptionOwner(name), Origin: defaultKey, Kind: registry.CredentialSigning, CreatedBy: access.Actor(ctx)}
	err := s.seal(&c, r.SigningKey)
	return c, err
}

// changed carries out an act on a subscription and shows it as it is then. A webhook's address is
// not logged: it may hold a secret.
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
	if err := endpoint.Invalid("nothing was changed", valid.Text("body.reason", in.Body.Reason, valid.MaxText)...); err != nil {
		return nil, err
	}
	cursor := registry.FeedNow
	if in.Body.Cursor != nil {
		if cursor = *in.Body.Cursor; cursor < 0 {
			return nil, endpoint.Invalid("nothing was changed", wire.Fault{Location: "body.cursor", Message: "no event has a number below 0; leave it out for the newest"})
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
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: whoever wonders where the events are is shown it"})
	}
	if err := endpoint.Invalid("nothing was changed", faults...); err != nil {
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
