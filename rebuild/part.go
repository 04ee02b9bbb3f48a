package rebuild

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// rowsAtOnce is how many rows of files and events are entered in one transaction (R25).
const rowsAtOnce = 500

// part gathers what is entered of an object in one transaction: of most objects that is everything.
type part struct {
	to   entry
	next registry.Entered
	rows int // of files and events in next
}

// entry is the Registry that objects are entered into.
type entry interface {
	EnteredFiles(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error)
	Enter(ctx context.Context, e registry.Entered) (taken []registry.TakenID, err error)
}

// file adds a row of a version, whose files count as checked at a time.
func (p *part) file(ctx context.Context, of registry.EnteredFiles, row registry.File) error {
	if n := len(p.next.Files); n == 0 || p.next.Files[n-1].Version != of.Version {
		p.next.Files = append(p.next.Files, of)
	}
	last := &p.next.Files[len(p.next.Files)-1]
	last.Rows = append(last.Rows, row)
	return p.added(ctx)
}

func (p *part) event(ctx context.Context, e registry.Premis) error {
	p.next.Events = append(p.next.Events, e)
	return p.added(ctx)
}

// added enters the part when it is full.
func (p *part) added(ctx context.Context) error {
	if p.rows++; p.rows < rowsAtOnce {
		return nil
	}
	return p.enter(ctx)
}

// enter enters what was gathered. More may follow.
func (p *part) enter(ctx context.Context) error {
	if p.rows == 0 && len(p.next.Versions) == 0 {
		return nil
	}
	_, err := p.end(ctx)
	return err
}

// end enters what was gathered. If that has the object, nothing follows.
func (p *part) end(ctx context.Context) (taken []registry.TakenID, err error) {
	taken, err = p.to.Enter(ctx, p.next)
	p.next, p.rows = registry.Entered{ObjectID: p.next.ObjectID}, 0
	return taken, err
}
