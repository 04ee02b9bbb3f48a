package item

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// addTask adds what a task has beside other items: its call, its parents, and why it waits.
func addTask(ctx context.Context, c *client.Client, f *terminal.Facts, it registry.WorkItem) error {
	var spec registry.TaskSpec
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return fmt.Errorf("decode task %s: %w", it.ID, err)
	}
	f.Add("function", spec.Function)
	f.Add("arguments", string(spec.Args))
	f.Add("subject", spec.Subject)
	f.Add("cause", spec.Cause)
	f.Add("returned", string(it.Results[registry.ResultReturned]))
	requires, _, err := c.Edges(ctx, it.ID)
	if err != nil {
		return err
	}
	for _, e := range requires {
		parent, err := c.Item(ctx, e.RequiresID)
		if errors.Is(err, registry.ErrNotFound) {
			parent.State = "removed"
		} else if err != nil {
			return err
		}
		f.Add("parent", strings.TrimSpace(fmt.Sprintf("%s %s %s", e.RequiresID, parent.State, parent.Name)))
	}
	if it.Status != registry.Pending && it.Status != registry.Prepare {
		return nil
	}
	why, err := c.Why(ctx, it.ID)
	if err != nil {
		return err
	}
	f.Add("waits", why.Sentence)
	f.Add("what helps", strings.TrimSpace(why.Act))
	return nil
}

// progressText returns the measures of an attempt's progress.
func progressText(t registry.Attempt) string {
	parts := make([]string, len(t.Progress))
	for i, p := range t.Progress {
		parts[i] = p.Title + " " + registry.CountText(p.Position)
		if p.End >= 0 {
			parts[i] += " of " + registry.CountText(p.End)
		}
		if p.Unit != p.Title {
			parts[i] += " " + p.Unit
		}
		if p.Start != 0 {
			parts[i] += ", from " + registry.CountText(p.Start)
		}
	}
	return strings.Join(parts, ", ")
}
