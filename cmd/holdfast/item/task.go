package item

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// shownTask is what `task show` prints as JSON: the task as the API returns it, and more.
type shownTask struct {
	wire.Item
	Parents  []parent           `json:"parents"`
	Why      *registry.Why      `json:"why,omitempty"` // of a task that waits
	Attempts []registry.Attempt `json:"attempts"`
	Log      []registry.LogLine `json:"log"` // the newest lines, oldest first
}

// parent is an item that a task requires.
type parent struct {
	ID    string         `json:"id"`
	State registry.State `json:"state"`
	Name  string         `json:"name,omitempty"`
}

// readTask reads what a task has beside other items.
func readTask(ctx context.Context, c *client.Client, it wire.Item, attempts []registry.Attempt) (t shownTask, err error) {
	t = shownTask{Item: it, Parents: []parent{}, Attempts: attempts}
	if t.Log, err = newestLog(ctx, c, it.ID); err != nil {
		return t, err
	}
	requires, _, err := c.Edges(ctx, it.ID)
	if err != nil {
		return t, err
	}
	for _, e := range requires {
		above, err := c.Item(ctx, e.RequiresID)
		if errors.Is(err, registry.ErrNotFound) {
			above.State = "removed"
		} else if err != nil {
			return t, err
		}
		t.Parents = append(t.Parents, parent{ID: e.RequiresID, State: above.State, Name: above.Name})
	}
	t.Why, err = whyWaits(ctx, c, it.WorkItem)
	return t, err
}

// whyWaits returns why an item waits; nil if it does not.
func whyWaits(ctx context.Context, c *client.Client, it registry.WorkItem) (*registry.Why, error) {
	if it.Status != registry.Pending && it.Status != registry.Prepare {
		return nil, nil //nolint:nilnil // it does not wait
	}
	why, err := c.Why(ctx, it.ID)
	return &why, err
}

// addWhy adds why an item waits, and what helps.
func addWhy(f *terminal.Facts, why *registry.Why) {
	if why != nil {
		f.Add("waits", why.Sentence)
		f.Add("what helps", strings.TrimSpace(why.Act))
	}
}

// add adds a task's call, its parents, and why it waits.
func (t shownTask) add(f *terminal.Facts) error {
	it := t.WorkItem
	var spec registry.TaskSpec
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return fmt.Errorf("decode task %s: %w", it.ID, err)
	}
	f.Add("function", spec.Function)
	f.Add("arguments", string(spec.Args))
	f.Add("subject", spec.Subject)
	f.Add("cause", spec.Cause)
	f.Add("returned", string(it.Results[registry.ResultReturned]))
	for _, p := range t.Parents {
		f.Add("parent", strings.TrimSpace(fmt.Sprintf("%s %s %s", p.ID, p.State, p.Name)))
	}
	addWhy(f, t.Why)
	return nil
}

// stepText describes an outside step of a job in one line.
func stepText(s registry.StepRun, now time.Time) string {
	text := fmt.Sprintf("%s after %s: %s", s.Function, s.After, registry.StateText(s.State, s.NextTry, now))
	if s.Blocking {
		text = "blocking " + text
	}
	if s.Attempts > 0 {
		text += ", " + terminal.Plural(s.Attempts, "attempt", "attempts")
	}
	if progress := graphview.ProgressText(s.Progress); progress != "" {
		text += ", " + progress
	}
	text += " (" + s.TaskID + ")"
	if s.Error != "" {
		text += ": " + s.Error
	}
	return text
}
