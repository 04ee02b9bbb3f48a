package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

type commandInput struct {
	ItemID
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.CommandRequest
}

func (s *server) command(ctx context.Context, in *commandInput) (*output[registry.WorkItem], error) {
	it, err := s.registry.Item(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if registry.Act(in.Body.Act) == registry.ActAbandon {
		if err := s.permit(ctx, abandonOperation); err != nil {
			return nil, err
		}
	}
	faults := checkCommand(in.Body)
	if route, ok := it.Route(); ok && in.Body.From != "" {
		if stages := route.UpTo(it.Stage); !slices.Contains(stages, registry.Stage(in.Body.From)) {
			faults = append(faults, wire.Fault{Location: "body.from", Message: fmt.Sprintf(
				"%q is no stage that the item has been in; it may start again at one of %v", in.Body.From, stages)})
		}
	}
	if err := invalid(fmt.Sprintf("item %s was left as it is", it.ID), faults...); err != nil {
		return nil, err
	}
	it, err = s.registry.Command(ctx, registry.Command{
		ItemID: it.ID, Act: registry.Act(in.Body.Act), From: registry.Stage(in.Body.From), Priority: in.Body.Priority,
		Reason: in.Body.Reason, Confirmed: in.Body.Confirm, AgreesTo: in.Body.AgreesTo, Actor: actor(ctx), IdempotencyKey: in.Key,
	})
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "item commanded", "item", it.ID, "act", in.Body.Act, "state", string(it.State), "actor", actor(ctx))
	return shown(it)
}

// checkCommand says what is wrong with an act whatever it is asked of.
func checkCommand(c wire.CommandRequest) []wire.Fault {
	act := registry.Act(c.Act)
	var faults []wire.Fault
	fault := func(field, format string, args ...any) {
		faults = append(faults, wire.Fault{Location: "body." + field, Message: fmt.Sprintf(format, args...)})
	}
	if acts := registry.AdminActs(); !slices.Contains(acts, act) {
		fault("act", "%q is not one of %v", act, acts)
	}
	if c.AgreesTo != "" && act != registry.ActAbandon {
		fault("agrees_to", "only abandon is agreed to")
	}
	if c.From != "" && act != registry.ActRequeue {
		fault("from", "only requeue starts at a stage")
	}
	switch {
	case act == registry.ActPriority && c.Priority == nil:
		fault("priority", "missing: the new priority, lower first")
	case act != registry.ActPriority && c.Priority != nil:
		fault("priority", "only act priority sets one")
	}
	if act == registry.ActHold && strings.TrimSpace(c.Reason) == "" {
		fault("reason", "missing: whoever finds an item held is shown why")
	}
	faults = append(faults, expressFault("body.priority", c.Priority)...)
	faults = append(faults, textFault("body.agrees_to", c.AgreesTo, maxText)...)
	return append(faults, textFault("body.reason", c.Reason, maxText)...)
}

type bulkInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.BulkRequest
}

func (s *server) bulk(ctx context.Context, in *bulkInput) (*output[registry.WorkItem], error) {
	b := in.Body
	match, faults := queryOf("body.query", b.Query)
	faults = append(faults, checkCommand(b.CommandRequest)...)
	if registry.Act(b.Act) == registry.ActAbandon {
		faults = append(faults, wire.Fault{Location: "body.act", Message: registry.AbandonOneByOne})
	}
	faults = append(faults, oneOf("body.from", registry.Stage(b.From), registry.Stages())...)
	if err := invalid("nothing was begun", faults...); err != nil {
		return nil, err
	}
	it, err := s.registry.Bulk(ctx, registry.BulkRequest{
		Match: match, Act: registry.Act(b.Act), From: registry.Stage(b.From), Priority: b.Priority, Reason: b.Reason,
		Confirmed: b.Confirm, Actor: actor(ctx), IdempotencyKey: in.Key,
	})
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "bulk act begun", "item", it.ID, "act", b.Act, "actor", actor(ctx))
	return shown(it)
}

// queryOf reads a query that must not be empty: nothing is done to everything by mistake.
func queryOf(location, text string) (registry.Query, []wire.Fault) {
	q, faults := readQuery(location, text)
	if len(faults) == 0 && len(q.Terms) == 0 {
		faults = []wire.Fault{{Location: location, Message: "missing: which items are meant?"}}
	}
	return q, faults
}
