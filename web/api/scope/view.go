package scope

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// seesView reports whether the caller may see a saved view. The query of another person's may name what
// callers with limited sight may not know of.
func (v sight) seesView(view registry.View) bool {
	return view.Owner == v.token.Name || view.Shared && !v.limited()
}

// Views implements registry.ViewKeeper.
func (s scoped) Views(ctx context.Context, owner string) ([]registry.View, error) {
	v := s.sight(ctx)
	all, err := s.all.Views(ctx, owner)
	return slices.DeleteFunc(all, func(view registry.View) bool { return !v.seesView(view) }), err
}

// View implements registry.ViewKeeper.
func (s scoped) View(ctx context.Context, id string) (registry.View, error) {
	view, err := s.all.View(ctx, id)
	if err == nil && !s.sight(ctx).seesView(view) {
		return registry.View{}, absent("view", id)
	}
	return view, err
}

// AddView implements registry.ViewKeeper.
func (s scoped) AddView(ctx context.Context, view registry.View) (registry.View, error) {
	return s.all.AddView(ctx, view)
}

// EditView implements registry.ViewKeeper.
func (s scoped) EditView(ctx context.Context, view registry.View) (registry.View, error) {
	return s.all.EditView(ctx, view)
}

// RemoveView implements registry.ViewKeeper.
func (s scoped) RemoveView(ctx context.Context, id, actor string) error {
	if _, err := s.View(ctx, id); err != nil {
		return err
	}
	return s.all.RemoveView(ctx, id, actor)
}
