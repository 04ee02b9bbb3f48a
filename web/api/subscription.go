package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) subscriptionRoutes(api huma.API) {
	const path = "/subscriptions/{name}"
	register(s, api, operation{id: "list-subscriptions", method: http.MethodGet, path: "/subscriptions", summary: "List who is told of events, and how far they are"}, s.subscriptions)
	register(s, api, operation{id: "read-subscription", method: http.MethodGet, path: path, summary: "Show a subscription"}, s.subscription)
	register(s, api, operation{id: "put-subscription", method: http.MethodPut, path: path, summary: "Have a receiver told of events, or change who is told of which"}, s.putSubscription)
	register(s, api, operation{id: "remove-subscription", method: http.MethodDelete, path: path, summary: "End a subscription, and forget its keys"}, s.removeSubscription)
	register(s, api, operation{id: "rewind-subscription", method: http.MethodPut, path: path + "/cursor", summary: "Go on after an earlier event, or a later one"}, s.rewindSubscription)
	register(s, api, operation{id: "pause-subscription", method: http.MethodPut, path: path + "/pause", summary: "Send nothing more for the time being; nothing is lost"}, s.pauseSubscription)
	register(s, api, operation{id: "resume-subscription", method: http.MethodDelete, path: path + "/pause", summary: "Go on after a pause; one that is failing is tried at once"}, s.resumeSubscription)
}

// SubscriptionName names a subscription in a path.
type SubscriptionName struct {
	Name string `path:"name" maxLength:"200"`
}

func (s *server) subscriptions(ctx context.Context, _ *struct{}) (*output[registry.Page[registry.Subscription]], error) {
	all, err := s.registry.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	return listed(all), nil
}

// subscriptionOf returns a subscription, or a problem that names those there are.
func (s *server) subscriptionOf(ctx context.Context, name string) (registry.Subscription, error) {
	all, err := s.registry.Subscriptions(ctx)
	if err != nil {
		return registry.Subscription{}, err
	}
	i := slices.IndexFunc(all, func(b registry.Subscription) bool { return b.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, b := range all {
			names[i] = b.Name
		}
		return registry.Subscription{}, notFound("there is no subscription %q; use one of those there are (%s)", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

func (s *server) subscription(ctx context.Context, in *SubscriptionName) (*output[registry.Subscription], error) {
	b, err := s.subscriptionOf(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &output[registry.Subscription]{Body: b}, nil
}

type putSubscriptionInput struct {
	SubscriptionName
	Body wire.SubscriptionRequest
}

func (s *server) putSubscription(ctx context.Context, in *putSubscriptionInput) (*output[registry.Subscription], error) {
	r := registry.SubscriptionRequest{Name: in.Name, Target: in.Body.Target, Filter: in.Body.Filter, From: registry.FeedNow, Actor: actor(ctx)}
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
	return s.changed(ctx, "set", in.Name, func() (registry.Subscription, error) { return s.registry.PutSubscription(ctx, r) })
}

// defaultKey is the credential that a key becomes that is set together with a subscription.
const defaultKey = "signing:default"

func (s *server) signingKey(ctx context.Context, name string, r wire.SubscriptionRequest) (registry.Credential, error) {
	faults := secretFaults(registry.CredentialSigning, r.SigningKey)
	for i := range faults {
		faults[i].Location = "body.signing_key"
	}
	if _, ok := (registry.Subscription{Target: r.Target}).Topic(); ok {
		faults = append(faults, wire.Fault{Location: "body.signing_key", Message: "messages of NSQ are not signed"})
	}
	if err := invalid("the subscription was not set", faults...); err != nil {
		return registry.Credential{}, err
	}
	c := registry.Credential{Collection: registry.SubscriptionOwner(name), Origin: defaultKey, Kind: registry.CredentialSigning, CreatedBy: actor(ctx)}
	err := s.seal(&c, r.SigningKey)
	return c, err
}

// changed carries out an act on a subscription and shows it as it is then. A webhook's address is not logged: it may hold a
// secret.
func (s *server) changed(ctx context.Context, act, name string, change func() (registry.Subscription, error)) (*output[registry.Subscription], error) {
	b, err := change()
	if errors.Is(err, registry.ErrNotFound) {
		if _, missing := s.subscriptionOf(ctx, name); missing != nil {
			err = missing
		}
	}
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "subscription changed", "subscription", name, "act", act, "actor", actor(ctx))
	return s.subscription(ctx, &SubscriptionName{Name: b.Name})
}

func (s *server) removeSubscription(ctx context.Context, in *SubscriptionName) (*struct{}, error) {
	if _, err := s.subscriptionOf(ctx, in.Name); err != nil {
		return nil, err
	}
	err := s.registry.RemoveSubscription(ctx, in.Name, actor(ctx))
	if err == nil {
		s.log.InfoContext(ctx, "subscription removed", "subscription", in.Name, "actor", actor(ctx))
	}
	return nil, err
}

type rewindSubscriptionInput struct {
	SubscriptionName
	Body wire.CursorRequest
}

func (s *server) rewindSubscription(ctx context.Context, in *rewindSubscriptionInput) (*output[registry.Subscription], error) {
	if err := invalid("nothing was changed", textFault("body.reason", in.Body.Reason, maxText)...); err != nil {
		return nil, err
	}
	cursor := registry.FeedNow
	if in.Body.Cursor != nil {
		if cursor = *in.Body.Cursor; cursor < 0 {
			return nil, invalid("nothing was changed", wire.Fault{Location: "body.cursor", Message: "no event has a number below 0; leave it out for the newest"})
		}
	}
	return s.changed(ctx, "rewind", in.Name, func() (registry.Subscription, error) {
		return s.registry.RewindSubscription(ctx, in.Name, cursor, strings.TrimSpace(in.Body.Reason), actor(ctx))
	})
}

type pauseSubscriptionInput struct {
	SubscriptionName
	Body wire.PauseRequest
}

func (s *server) pauseSubscription(ctx context.Context, in *pauseSubscriptionInput) (*output[registry.Subscription], error) {
	reason := strings.TrimSpace(in.Body.Reason)
	faults := textFault("body.reason", reason, maxText)
	if reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: whoever wonders where the events are is shown it"})
	}
	if err := invalid("nothing was changed", faults...); err != nil {
		return nil, err
	}
	return s.changed(ctx, "pause", in.Name, func() (registry.Subscription, error) {
		return s.registry.PauseSubscription(ctx, in.Name, reason, actor(ctx))
	})
}

func (s *server) resumeSubscription(ctx context.Context, in *SubscriptionName) (*output[registry.Subscription], error) {
	return s.changed(ctx, "resume", in.Name, func() (registry.Subscription, error) {
		return s.registry.ResumeSubscription(ctx, in.Name, actor(ctx))
	})
}
