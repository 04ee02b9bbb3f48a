// Package graphview shows items that wait for each other: as a text tree, as Graphviz DOT, and as the
// layout of a drawing. It reads nothing itself; callers give it the parts of a graph that the
// Registry returned.
package graphview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// View is a graph that was read, in parts, from the Registry. The zero value is empty. It is not safe
// for concurrent use.
type View struct {
	GraphID string               `json:"graph_id,omitempty"`
	Sealed  bool                 `json:"sealed"`
	More    bool                 `json:"more,omitempty"` // it goes on, but this was not read
	Nodes   []registry.GraphNode `json:"nodes"`          // in the order of submission
	Edges   []registry.Edge      `json:"edges"`

	at         map[string]int // the place in Nodes of each item
	requires   [][]link       // what each node requires
	dependents [][]link       // what requires each node
	levels     []int          // of each node: the longest way to it from a node that requires nothing
}

// link is one end of an edge.
type link struct {
	node int
	edge *registry.Edge
}

// Source reads graphs. The Registry is one, and its client.
type Source interface {
	GraphNodes(ctx context.Context, graphID, after string, limit int) (registry.GraphPart, error)
	Around(ctx context.Context, itemID string, limit int) (registry.GraphPart, error)
}

const pageSize = 500

// OfGraph reads a whole graph, page by page.
func OfGraph(ctx context.Context, s Source, graphID string) (*View, error) {
	v := &View{}
	for after := ""; ; {
		p, err := s.GraphNodes(ctx, graphID, after, pageSize)
		if err != nil {
			return nil, err
		}
		v.add(p)
		if after = p.Next; after == "" {
			v.link()
			return v, nil
		}
	}
}

// OfItem reads what an item waits for and what waits for it, up to 500 items each.
func OfItem(ctx context.Context, s Source, itemID string) (*View, error) {
	p, err := s.Around(ctx, itemID, pageSize)
	if err != nil {
		return nil, err
	}
	v := &View{}
	v.add(p)
	v.link()
	return v, nil
}

// add adds a part. The Registry may return an outside item with several parts.
func (v *View) add(p registry.GraphPart) {
	if v.at == nil {
		v.at, v.Nodes, v.Edges = map[string]int{}, []registry.GraphNode{}, []registry.Edge{}
	}
	v.GraphID, v.Sealed, v.More = p.GraphID, p.Sealed, v.More || p.More
	for _, n := range p.Nodes {
		if _, known := v.at[n.ID]; !known {
			v.at[n.ID] = len(v.Nodes)
			v.Nodes = append(v.Nodes, n)
		}
	}
	v.Edges = append(v.Edges, p.Edges...)
}

// link connects the nodes and finds their levels.
func (v *View) link() {
	slices.SortStableFunc(v.Nodes, func(a, b registry.GraphNode) int { return strings.Compare(a.ID, b.ID) }) // ids grow with time
	for i, n := range v.Nodes {
		v.at[n.ID] = i
	}
	v.requires, v.dependents, v.levels = make([][]link, len(v.Nodes)), make([][]link, len(v.Nodes)), make([]int, len(v.Nodes))
	for i := range v.Edges {
		e := &v.Edges[i]
		item, there := v.at[e.ItemID]
		required, also := v.at[e.RequiresID]
		if there && also { // a node may have been purged between two pages
			v.requires[item] = append(v.requires[item], link{required, e})
			v.dependents[required] = append(v.dependents[required], link{item, e})
		}
	}
	byNode := func(a, b link) int { return cmp.Compare(a.node, b.node) }
	open, free := make([]int, len(v.Nodes)), []int{}
	for i := range v.Nodes {
		slices.SortFunc(v.requires[i], byNode)
		slices.SortFunc(v.dependents[i], byNode)
		if open[i] = len(v.requires[i]); open[i] == 0 {
			free = append(free, i)
		}
	}
	// Nodes of a cycle, which only an unsealed graph can have, stay at the level that they reached.
	for ; len(free) > 0; free = free[1:] {
		for _, d := range v.dependents[free[0]] {
			v.levels[d.node] = max(v.levels[d.node], v.levels[free[0]]+1)
			if open[d.node]--; open[d.node] == 0 {
				free = append(free, d.node)
			}
		}
	}
}

// StateCount is how many nodes are in a state.
type StateCount struct {
	State registry.State
	Count int64
}

// Counts returns how many nodes are in each state, those of other graphs left out.
func (v *View) Counts() []StateCount { return v.counts(func(int) bool { return true }) }

func (v *View) counts(of func(node int) bool) (out []StateCount) {
	for i, n := range v.Nodes {
		if n.Outside || !of(i) {
			continue
		}
		at := slices.IndexFunc(out, func(c StateCount) bool { return c.State == n.State })
		if at < 0 {
			at = len(out)
			out = append(out, StateCount{State: n.State})
		}
		out[at].Count++
	}
	slices.SortStableFunc(out, func(a, b StateCount) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	return out
}

// rank orders states: what needs people first, what is done last.
func rank(s registry.State) int {
	return slices.Index([]string{Bad, Active, Waiting, Still, Good}, Tone(s))
}

// CountsText formats counts: 2 Failed, 5 Completed.
func CountsText(counts []StateCount) string {
	parts := make([]string, len(counts))
	for i, c := range counts {
		parts[i] = registry.CountText(c.Count) + " " + string(c.State)
	}
	return strings.Join(parts, ", ")
}

// Level is the nodes that are equally far from the start of a graph.
type Level struct {
	First, Last int // counted from 1; several levels with the same single state stand together
	Nodes       int64
	Counts      []StateCount
}

// Levels sums the graph up by level.
func (v *View) Levels() (out []Level) {
	by := map[int][]int{}
	for i, level := range v.levels {
		by[level] = append(by[level], i)
	}
	for level := 0; len(by[level]) > 0; level++ {
		l := Level{First: level + 1, Last: level + 1, Nodes: int64(len(by[level]))}
		states := map[registry.State]int64{}
		for _, i := range by[level] {
			states[v.Nodes[i].State]++
		}
		for s, n := range states {
			l.Counts = append(l.Counts, StateCount{s, n})
		}
		slices.SortFunc(l.Counts, func(a, b StateCount) int {
			return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), strings.Compare(string(a.State), string(b.State)))
		})
		if n := len(out); n > 0 && len(l.Counts) == 1 && len(out[n-1].Counts) == 1 && l.Counts[0].State == out[n-1].Counts[0].State {
			out[n-1].Last = l.Last
			out[n-1].Nodes += l.Nodes
			out[n-1].Counts[0].Count += l.Nodes
			continue
		}
		out = append(out, l)
	}
	return out
}

// Failed returns the nodes that failed, and so keep others waiting until people act.
func (v *View) Failed() []registry.GraphNode { return v.in(registry.Failed) }

// Running returns the nodes that run.
func (v *View) Running() []registry.GraphNode { return v.in(registry.Running) }

func (v *View) in(s registry.Status) (out []registry.GraphNode) {
	for _, n := range v.Nodes {
		if n.Status == s && !n.Outside {
			out = append(out, n)
		}
	}
	return out
}

// Name returns what people call a node: its key, else its name, else its id.
func Name(n registry.GraphNode) string {
	if n.Outside || n.Key == "" {
		return n.Heading()
	}
	return n.Key
}

// Title returns what else people call a node, unless [Name] has it already: its title where the name
// is a key, the name of its file where that is a title.
func Title(n registry.GraphNode) string {
	for _, title := range []string{n.Title, n.Name} {
		if title != Name(n) && title != "" {
			return title
		}
	}
	return ""
}

// Standing is how far a node is, or why it does not go on, as facts.
type Standing struct {
	Progress []registry.Progress  // of a running node
	Repair   bool                 // it failed: people must act
	Note     string               // why it failed or was cancelled; "" if nothing was recorded
	HoldsUp  int                  // how many nodes cannot start before it completes
	Held     *registry.Hold       // nil: nothing holds it
	Waits    []registry.GraphNode // what it still waits for, the first ones
	More     int                  // how many more
}

// Standing returns how far a node is, or why it does not go on. It is zero for nodes of which the
// state says all.
func (v *View) Standing(n registry.GraphNode) (s Standing) {
	switch n.Status {
	case registry.Running:
		s.Progress = n.Progress
	case registry.Failed, registry.Cancelled:
		s.Repair, s.Note, s.HoldsUp = n.Status == registry.Failed, n.Note, v.Waiting(n.ID)
	case registry.Prepare, registry.Pending:
		s.Held = n.HeldBy
		const named = 3
		for _, l := range v.requires[v.at[n.ID]] {
			switch {
			case l.edge.SatisfiedAt != nil:
			case len(s.Waits) == named:
				s.More++
			default:
				s.Waits = append(s.Waits, v.Nodes[l.node])
			}
		}
	case registry.Completed, registry.Aborted, registry.Deleted:
	}
	return s
}

// Stopped reports that a node does not go on by itself, which matters to those that wait for it.
func Stopped(n registry.GraphNode) bool {
	return n.Status == registry.Failed || n.Status == registry.Cancelled
}

// Detail words a node's [Standing] in English; "" if that is zero.
func (v *View) Detail(n registry.GraphNode) string {
	s := v.Standing(n)
	text := ProgressText(s.Progress)
	switch {
	case s.Repair:
		text = "awaits repair: " + cmp.Or(s.Note, "no error was recorded")
	case s.Note != "":
		text = s.Note
	case s.Held != nil:
		text = "held: " + s.Held.Reason
	}
	if s.HoldsUp > 0 {
		text = join(text, "holds up "+registry.CountText(int64(s.HoldsUp)))
	}
	return join(text, s.waitText())
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// waitText names the open requirements of a node.
func (s Standing) waitText() string {
	open := make([]string, len(s.Waits))
	for i, n := range s.Waits {
		if open[i] = Name(n); Stopped(n) {
			open[i] += " (" + string(n.Status) + ")"
		}
	}
	switch {
	case s.More > 0:
		return fmt.Sprintf("waits for %s and %d more", strings.Join(open, ", "), s.More)
	case len(open) > 0:
		return "waits for " + strings.Join(open, ", ")
	}
	return ""
}

// Waiting returns how many nodes cannot start before an item completes, directly or not.
func (v *View) Waiting(itemID string) int {
	start, ok := v.at[itemID]
	if !ok {
		return 0
	}
	seen := map[int]bool{start: true}
	for todo := []int{start}; len(todo) > 0; todo = todo[1:] {
		for _, d := range v.dependents[todo[0]] {
			if d.edge.SatisfiedAt == nil && !seen[d.node] {
				seen[d.node] = true
				todo = append(todo, d.node)
			}
		}
	}
	return len(seen) - 1
}

// ProgressText formats the measures of an attempt: pages 40 of 100, from 20.
func ProgressText(all []registry.Progress) string {
	parts := make([]string, len(all))
	for i, p := range all {
		parts[i] = p.Title + " " + registry.CountText(p.Position)
		if p.End >= 0 {
			parts[i] += " of " + registry.CountText(p.End)
		}
		if p.Unit != p.Title && p.Unit != "" {
			parts[i] += " " + p.Unit
		}
		if p.Start != 0 {
			parts[i] += ", from " + registry.CountText(p.Start)
		}
	}
	return strings.Join(parts, ", ")
}

// The tones of states. Each has a mark, for readers who see no colour.
const (
	Good    = "good"
	Bad     = "bad"
	Still   = "still"
	Waiting = "waiting"
	Active  = "active"
)

// Tone returns what people should think of a state. It is also the CSS class of its badge.
func Tone(s registry.State) string {
	switch s {
	case registry.StateCompleted:
		return Good
	case registry.StateFailed, registry.StateAborted:
		return Bad
	case registry.StateHeld, registry.StateCancelled, registry.StateDeleted, registry.StatePrepare:
		return Still
	case registry.StatePending:
		return Waiting
	default:
		return Active
	}
}

// Mark returns the symbol of a state.
func Mark(s registry.State) string {
	return map[string]string{Good: "✓", Bad: "✗", Still: "‖", Waiting: "…", Active: "▸"}[Tone(s)]
}

// stateText is the state of a node for people.
func stateText(n registry.GraphNode, now time.Time) string { return n.StateText(now) }
