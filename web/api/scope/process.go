package scope

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// Namespaces implements registry.Processing. The names of namespaces are no secret.
func (s scoped) Namespaces(ctx context.Context) ([]registry.Namespace, error) {
	return s.all.Namespaces(ctx)
}

// Process implements registry.Processing.
func (s scoped) Process(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (registry.ProcessInfo, error) {
	p, err := s.all.Process(ctx, key, r)
	if err == nil && !s.sight(ctx).sees(p.Collection) {
		return registry.ProcessInfo{}, absent("process", key.String())
	}
	return p, err
}

// Processes implements registry.Processing.
func (s scoped) Processes(ctx context.Context, q registry.ProcessQuery) (registry.Page[registry.ProcessInfo], error) {
	q.Within = s.sight(ctx).narrow(q.Within)
	return s.all.Processes(ctx, q)
}

// TraceProcess implements registry.Processing. The steps are items of the process's collection.
func (s scoped) TraceProcess(ctx context.Context, q registry.TraceQuery) (registry.Page[registry.TracedStep], error) {
	v := s.sight(ctx)
	p, err := s.all.TraceProcess(ctx, q)
	if err != nil || !v.limited() {
		return p, err
	}
	if len(p.Rows) == 0 {
		return p, absent("process", q.ProcessKey.String())
	}
	if _, err := v.item(ctx, p.Rows[0].ItemID); err != nil {
		return registry.Page[registry.TracedStep]{}, absent("process", q.ProcessKey.String())
	}
	return p, nil
}

// AwaitAnswer implements registry.Processing.
func (s scoped) AwaitAnswer(ctx context.Context, itemID string) (registry.Answer, error) {
	a, err := s.all.AwaitAnswer(ctx, itemID)
	if v := s.sight(ctx); err == nil && v.limited() {
		if _, err := v.item(context.WithoutCancel(ctx), itemID); err != nil {
			return registry.Answer{}, err
		}
	}
	return a, err
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
		return registry.Answer{}, absent("process", n.ProcessKey.String())
	}
	return s.all.CallProcess(ctx, n)
}

// RepairProcess implements registry.Processing, as CallProcess does.
func (s scoped) RepairProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	if s.sight(ctx).limited() {
		return registry.Answer{}, absent("process", n.ProcessKey.String())
	}
	return s.all.RepairProcess(ctx, n)
}

// RetryProcess implements registry.Processing, as CallProcess does.
func (s scoped) RetryProcess(ctx context.Context, a registry.ProcessAct) (registry.ProcessInfo, error) {
	if s.sight(ctx).limited() {
		return registry.ProcessInfo{}, absent("process", a.ProcessKey.String())
	}
	return s.all.RetryProcess(ctx, a)
}

// RemoveProcess implements registry.Processing, as CallProcess does.
func (s scoped) RemoveProcess(ctx context.Context, a registry.ProcessAct) error {
	if s.sight(ctx).limited() {
		return absent("process", a.ProcessKey.String())
	}
	return s.all.RemoveProcess(ctx, a)
}
