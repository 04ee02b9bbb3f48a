package scope

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// Namespaces implements registry.Processing. The names of namespaces are no secret.
func (s scoped) Namespaces(ctx context.Context) ([]registry.Namespace, error) {
	return s.all.Namespaces(ctx)
}

// sees returns ErrNotFound for a process that the caller may not see. It does not wait, so the time
// of an answer tells nothing either.
func (s scoped) sees(ctx context.Context, key registry.ProcessKey) error {
	v := s.sight(ctx)
	if !v.limited() {
		return nil
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // by contract, nothing waits for the first step then
	p, err := s.all.Process(now, key, registry.HistoryRange{None: true})
	if errors.Is(err, registry.ErrNotFound) || err == nil && !v.sees(p.Collection) {
		return absent("process", key.String())
	}
	return err
}

// Process implements registry.Processing.
func (s scoped) Process(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (registry.ProcessInfo, error) {
	if err := s.sees(ctx, key); err != nil {
		return registry.ProcessInfo{}, err
	}
	return s.all.Process(ctx, key, r)
}

// Processes implements registry.Processing.
func (s scoped) Processes(ctx context.Context, q registry.ProcessQuery) (registry.Page[registry.ProcessInfo], error) {
	q.Within = s.sight(ctx).narrow(q.Within)
	return s.all.Processes(ctx, q)
}

// TraceProcess implements registry.Processing.
func (s scoped) TraceProcess(ctx context.Context, q registry.TraceQuery) (registry.Page[registry.TracedStep], error) {
	if err := s.sees(ctx, q.ProcessKey); err != nil {
		return registry.Page[registry.TracedStep]{}, err
	}
	return s.all.TraceProcess(ctx, q)
}

// AwaitAnswer implements registry.Processing.
func (s scoped) AwaitAnswer(ctx context.Context, itemID string) (registry.Answer, error) {
	if v := s.sight(ctx); v.limited() {
		if _, err := v.item(context.WithoutCancel(ctx), itemID); err != nil { // ctx ends with the wait
			return registry.Answer{}, err
		}
	}
	return s.all.AwaitAnswer(ctx, itemID)
}

// InitProcess implements registry.Processing.
func (s scoped) InitProcess(ctx context.Context, n registry.NewProcess) (registry.Answer, error) {
	if v := s.sight(ctx); !v.sees(n.Collection) {
		return registry.Answer{}, absent("collection", n.Collection)
	}
	return s.all.InitProcess(ctx, n)
}

// PutProcess implements registry.Processing.
func (s scoped) PutProcess(ctx context.Context, p registry.PutProcess) (registry.ProcessInfo, error) {
	if v := s.sight(ctx); !v.sees(p.Collection) {
		return registry.ProcessInfo{}, absent("collection", p.Collection)
	}
	return s.all.PutProcess(ctx, p)
}

// CallProcess implements registry.Processing. Only those who see all collections may call it.
func (s scoped) CallProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	if s.sight(ctx).limited() {
		return registry.Answer{}, absent("process", n.String())
	}
	return s.all.CallProcess(ctx, n)
}

// RepairProcess implements registry.Processing, as CallProcess does.
func (s scoped) RepairProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	if s.sight(ctx).limited() {
		return registry.Answer{}, absent("process", n.String())
	}
	return s.all.RepairProcess(ctx, n)
}

// RetryProcess implements registry.Processing, as CallProcess does.
func (s scoped) RetryProcess(ctx context.Context, a registry.ProcessAct) (registry.ProcessInfo, error) {
	if s.sight(ctx).limited() {
		return registry.ProcessInfo{}, absent("process", a.String())
	}
	return s.all.RetryProcess(ctx, a)
}

// RemoveProcess implements registry.Processing, as CallProcess does.
func (s scoped) RemoveProcess(ctx context.Context, a registry.ProcessAct) error {
	if s.sight(ctx).limited() {
		return absent("process", a.String())
	}
	return s.all.RemoveProcess(ctx, a)
}
