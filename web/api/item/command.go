package item

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

type commandInput struct {
	lookup.ItemID
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.ItemCommandRequest
}

func (s *Service) command(ctx context.Context, in *commandInput) (*endpoint.Output[registry.WorkItem], error) {
	it, err := s.Registry.Item(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if registry.Act(in.Body.Act) == registry.ActAbandon {
		if err := s.Permit(ctx, access.Abandon); err != nil {
			return nil, err
		}
	}
	faults := checkCommand(in.Body.CommandRequest)
	if route, ok := it.Route(); ok && in.Body.From != "" {
		if stages := route.UpTo(it.Stage); !slices.Contains(stages, registry.Stage(in.Body.From)) {
			faults = append(faults, wire.Fault{Location: "body.from", Message: fmt.Sprintf(
				"the item has not been in stage %q; it can restart at one of %v", in.Body.From, registry.OneOf(stages))})
		}
	}
	if err := endpoint.Invalid(fmt.Sprintf("item %s was not changed", it.ID), faults...); err != nil {
		return nil, err
	}
	it, err = s.Registry.Command(ctx, registry.Command{
		ItemID: it.ID, Act: registry.Act(in.Body.Act), From: registry.Stage(in.Body.From), Priority: in.Body.Priority,
		Reason: in.Body.Reason, Confirmed: in.Body.Confirm, AgreesTo: in.Body.AgreesTo, Actor: access.Actor(ctx), IdempotencyKey: in.Key,
		DryRun: in.Body.DryRun,
	})
	if err != nil {
		return nil, err
	}
	if in.Body.DryRun {
		return endpoint.Item(it)
	}
	s.Log.InfoContext(ctx, "item commanded", "item", it.ID, "act", in.Body.Act, "state", string(it.State), "actor", access.Actor(ctx))
	return endpoint.Item(it)
}

// checkCommand returns the faults of a command that do not depend on the item.
func checkCommand(c wire.CommandRequest) []wire.Fault {
	act := registry.Act(c.Act)
	var faults []wire.Fault
	fault := func(field, format string, args ...any) {
		faults = append(faults, wire.Fault{Location: "body." + field, Message: fmt.Sprintf(format, args...)})
	}
	if acts := registry.AdminActs(); !slices.Contains(acts, act) {
		fault("act", "%q is not one of %v", act, registry.OneOf(acts))
	}
	if c.AgreesTo != "" && act != registry.ActAbandon {
		fault("agrees_to", "only act abandon takes agrees_to")
	}
	if c.From != "" && act != registry.ActRequeue {
		fault("from", "only act requeue takes from")
	}
	switch {
	case act == registry.ActPriority && c.Priority == nil:
		fault("priority", "missing: give the new priority (lower first)")
	case act != registry.ActPriority && c.Priority != nil:
		fault("priority", "only act priority takes a priority")
	}
	if act == registry.ActHold && strings.TrimSpace(c.Reason) == "" {
		fault("reason", "missing: give the reason; it is shown with the held item")
	}
	faults = append(faults, valid.Express("body.priority", c.Priority)...)
	faults = append(faults, valid.Text("body.agrees_to", c.AgreesTo, valid.MaxText)...)
	return append(faults, valid.Text("body.reason", c.Reason, valid.MaxText)...)
}

type bulkInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.BulkRequest
}

// request returns the request of a body, or a problem that begins with title.
func (in *bulkInput) request(ctx context.Context, title string) (registry.BulkRequest, error) {
	b := in.Body
	match, faults := queryOf("body.query", b.Query)
	faults = append(faults, checkCommand(b.CommandRequest)...)
	if registry.Act(b.Act) == registry.ActAbandon {
		faults = append(faults, wire.Fault{Location: "body.act", Message: registry.AbandonOneByOne})
	}
	faults = append(faults, valid.Stage("body.from", registry.Stage(b.From))...)
	return registry.BulkRequest{
		Match: match, Act: registry.Act(b.Act), From: registry.Stage(b.From), Priority: b.Priority, Reason: b.Reason,
		Confirmed: b.Confirm, Actor: access.Actor(ctx), IdempotencyKey: in.Key, GraceSeconds: b.GraceSeconds,
	}, endpoint.Invalid(title, faults...)
}

func (s *Service) bulk(ctx context.Context, in *bulkInput) (*endpoint.Output[registry.WorkItem], error) {
	b, err := in.request(ctx, "the bulk act was not started")
	if err != nil {
		return nil, err
	}
	it, err := s.Registry.Bulk(ctx, b)
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "bulk act started", "item", it.ID, "act", string(b.Act), "actor", b.Actor, "grace_seconds", b.GraceSeconds)
	return endpoint.Item(it)
}

// previewBulk needs no reason: it is asked before the reason is given.
func (s *Service) previewBulk(ctx context.Context, in *bulkInput) (*endpoint.Output[registry.BulkPreview], error) {
	if in.Body.Reason == "" {
		in.Body.Reason = "preview"
	}
	if in.Body.Priority == nil && registry.Act(in.Body.Act) == registry.ActPriority {
		in.Body.Priority = new(int)
	}
	b, err := in.request(ctx, "there is no preview of this act")
	if err != nil {
		return nil, err
	}
	return endpoint.Answered(s.Registry.PreviewBulk(ctx, b))
}

// queryOf parses a query that must not be empty, so that nobody acts on all items by mistake.
func queryOf(location, text string) (registry.Query, []wire.Fault) {
	q, faults := valid.Query(location, text)
	if len(faults) == 0 && len(q.Terms) == 0 {
		faults = []wire.Fault{{Location: location, Message: "missing: select the items, for example by state:failed"}}
	}
	return q, faults
}
