package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Graphs adds submissions and tasks that depend on each other.
type Graphs interface {
	// Prepare adds submissions and tasks to a graph that is not sealed, all or none, in status
	// prepare: none of them is dispatched before Seal. With g.Seal the same transaction seals it. A
	// requirement of an existing item is inserted as satisfied if it is satisfied already (R12).
	// Prepare does not look for duplicates: every submission becomes its own batch, as with Force. A
	// repeated idempotency key returns the first answer.
	//
	// *GraphError: a key is used twice or unknown, an item requires itself, a requirement can never
	// be satisfied, the nodes of a sealed graph wait for each other, or [MostNodes], [MostEdges] or [MostItems] is exceeded. ErrNotFound: a graph,
	// item, upload or collection is unknown. ErrSealed: the graph is sealed. *MailRefusedError and
	// *MailLimitError are as for Submit, *UnknownFunctionError and *ArgumentError as for AddTask,
	// in a *NodeError.
	Prepare(ctx context.Context, g Graph) (PreparedGraph, error)
	// Seal makes all items of a graph that are in prepare pending, or none. *CycleError names the
	// items of a cycle. ErrNotFound: the graph is unknown. Items that were cancelled, aborted or
	// deleted stay so. A repeat changes nothing.
	Seal(ctx context.Context, graphID, actor string) error
	// Graph returns the items of a graph with their edges, or ErrNotFound.
	Graph(ctx context.Context, id string) (GraphView, error)
	// GraphNodes lists the nodes of a graph by key: those behind the key after, at most limit (0: 50;
	// 500 at most). Nodes that were purged are left out. ErrNotFound: the graph is unknown.
	GraphNodes(ctx context.Context, graphID, after string, limit int) (GraphPart, error)
	// Around lists an item, all that it waits for, directly or not, and all that waits for it, the
	// nearest first: at most limit items in each direction (0: 50; 500 at most). The jobs of a batch
	// count as required by it. ErrNotFound: the item is unknown.
	Around(ctx context.Context, itemID string, limit int) (GraphPart, error)
	// Edges returns what an item requires and what requires it, or ErrNotFound. It omits a batch's
	// own jobs, which Items lists.
	Edges(ctx context.Context, itemID string) (requires, required []Edge, err error)
}

// Bounds of graphs. They keep transactions that build, seal and abort a graph short.
const (
	MostNodes = 500    // in one call of Prepare
	MostEdges = 2_000  // requirements in one call of Prepare, and of one submission
	MostItems = 20_000 // in one graph
	mostKey   = 200    // bytes of a node's key
)

// ErrSealed says that the graph is sealed, so nothing can be added.
var ErrSealed = errors.New("the graph is sealed")

// WaitFor says when a requirement is satisfied.
type WaitFor string

// The kinds of edges.
const (
	// WaitSuccess is satisfied when the required item has completed. A failed or cancelled item
	// blocks its dependents until it is requeued and completes. An aborted item aborts them.
	WaitSuccess WaitFor = "success"
	// WaitSettled is satisfied when the required item has settled, with any outcome. Aborting does
	// not cascade along it. While a requeued item runs again, the requirement is open again;
	// dependents that have completed stay completed.
	WaitSettled WaitFor = "settled"
	// WaitOver is satisfied when the required item will never run again: it has completed, or was
	// aborted or deleted. Aborting does not cascade along it. Only the Registry makes such edges:
	// from a job to the blocking steps of its profile, see [OutsideStep].
	WaitOver WaitFor = "over"
)

// SatisfiedBy reports whether an item of this status satisfies the requirement.
func (w WaitFor) SatisfiedBy(s Status) bool {
	switch w {
	case WaitSettled:
		return s.Settled()
	case WaitOver:
		return s == Completed || s.gone()
	case WaitSuccess:
	}
	return s == Completed
}

// hopeless reports that an item of this status will never satisfy the requirement.
func (w WaitFor) hopeless(s Status) bool {
	return w != WaitSettled && s.gone()
}

// Requirement is a prerequisite of a node: another node of its graph by Key, or an existing item.
type Requirement struct {
	Key     string  `json:"key,omitempty"`
	ItemID  string  `json:"item_id,omitempty" id:"items"`
	WaitFor WaitFor `json:"wait_for,omitempty"` // "" = success
}

// name returns the required item's name for people.
func (r Requirement) name() string {
	if r.Key != "" {
		return fmt.Sprintf("node %q", r.Key)
	}
	return "item " + r.ItemID
}

// problem returns what is wrong with the requirement by itself, or "".
func (r Requirement) problem() string {
	switch {
	case !isText(r.Key) || !isText(r.ItemID):
		return fmt.Sprintf("a requirement names %q, which is not valid text", r.Key+r.ItemID)
	case r.Key == "" && r.ItemID == "":
		return "a requirement names nothing: give a key or an item id"
	case r.Key != "" && r.ItemID != "":
		return fmt.Sprintf("a requirement names node %q and item %s; give the one or the other", r.Key, r.ItemID)
	case r.WaitFor != "" && r.WaitFor != WaitSuccess && r.WaitFor != WaitSettled:
		return fmt.Sprintf("%s is waited for until %q; it can be %s or %s", r.name(), r.WaitFor, WaitSuccess, WaitSettled)
	}
	return ""
}

// CheckOn returns what is wrong with requiring an item of this status, or "".
func (r Requirement) CheckOn(s Status) string {
	if r.WaitFor.hopeless(s) {
		return fmt.Sprintf("%s is %v and will never complete; leave the requirement out, or wait for %s", r.name(), s, WaitSettled)
	}
	return ""
}

// isText reports whether every database can store a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Node is a submission or a task in a graph. Its requirements may name keys.
type Node struct {
	Key        string     `json:"key"` // name chosen by the caller, unique in the graph
	Submission Submission `json:"submission,omitzero"`
	Task       *NewTask   `json:"task,omitempty"` // instead of a submission; its actor is the graph's
}

// Requires returns the requirements of the node.
func (n Node) Requires() []Requirement {
	if n.Task != nil {
		return n.Task.Requires
	}
	return n.Submission.Requires
}

// problem returns what is wrong with the node's task by itself, or "".
func (n Node) problem() string {
	switch {
	case n.Task == nil:
		return ""
	case n.Task.IdempotencyKey != "" || n.Task.Actor != "":
		return "a task in a graph has neither an idempotency key nor an actor of its own; give them for the graph"
	}
	if err := n.Task.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// Graph is submissions and tasks that depend on each other. One or more calls of Prepare build it;
// Seal starts it.
type Graph struct {
	ID             string `json:"id"`    // "": make a new graph; otherwise add nodes to a graph that is not sealed
	Nodes          []Node `json:"nodes"` // at most [MostNodes] a call
	Actor          string `json:"actor"`
	IdempotencyKey string `json:"idempotency_key"`
	Seal           bool   `json:"seal,omitempty"` // the graph is complete with these nodes
}

// Problems returns all problems of a call of Prepare that can be found without the database.
func (g Graph) Problems() []*GraphError {
	var all []*GraphError
	add := func(key, format string, args ...any) {
		all = append(all, &GraphError{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	edges, seen := 0, map[string]bool{}
	for i, n := range g.Nodes {
		switch {
		case n.Key == "":
			add("", "node %d has no key", i+1)
		case !isText(n.Key):
			add(n.Key, "its key is not valid text")
		case len(n.Key) > mostKey:
			add(n.Key, "its key is longer than %d bytes", mostKey)
		case seen[n.Key]:
			add(n.Key, "the key is used twice")
		}
		seen[n.Key] = true
		if p := n.problem(); p != "" {
			add(n.Key, "%s", p)
		}
		edges += len(n.Requires())
		for _, p := range requirementProblems(n.Requires()) {
			add(n.Key, "%s", p)
		}
		if slices.ContainsFunc(n.Requires(), func(r Requirement) bool { return r.Key != "" && r.Key == n.Key }) {
			add(n.Key, "it requires itself")
		}
	}
	switch {
	case !isText(g.ID):
		add("", "the graph's id is not valid text")
	case len(g.Nodes) == 0:
		add("", "the graph has no nodes")
	case len(g.Nodes) > MostNodes:
		add("", "%d nodes in one call; at most %d are taken: send the rest in another call for the same graph", len(g.Nodes), MostNodes)
	}
	if edges > MostEdges {
		add("", "%d requirements in one call; the limit is %d", edges, MostEdges)
	}
	return all
}

// RequirementProblems returns all problems of the requirements of a submission or task outside a
// graph, which name items and not keys.
func RequirementProblems(rs []Requirement) []*GraphError {
	var all []*GraphError
	problems := requirementProblems(rs)
	if len(rs) > MostEdges {
		problems = append(problems, fmt.Sprintf("%d requirements; the limit is %d", len(rs), MostEdges))
	}
	for _, r := range rs {
		if r.Key != "" {
			problems = append(problems, fmt.Sprintf("it requires node %q, but is in no graph; name an item id", r.Key))
		}
	}
	for _, p := range problems {
		all = append(all, &GraphError{Problem: p})
	}
	return all
}

func requirementProblems(rs []Requirement) []string {
	var all []string
	seen := map[string]bool{}
	for _, r := range rs {
		p := r.problem()
		if p == "" && seen[r.name()] {
			p = r.name() + " is required twice"
		}
		if p != "" {
			all = append(all, p)
		}
		seen[r.name()] = true
	}
	return all
}

// PreparedGraph answers Prepare.
type PreparedGraph struct {
	GraphID string            `json:"graph_id"`
	Items   map[string]string `json:"items"` // node key -> item id, for this call's nodes
}

// Edge is one requirement in its present condition.
type Edge struct {
	ItemID      string     `json:"item_id"`     // the item that waits
	RequiresID  string     `json:"requires_id"` // the required item
	WaitFor     WaitFor    `json:"wait_for"`
	SatisfiedAt *time.Time `json:"satisfied_at,omitempty"`
	// Job: the required item is a job of the waiting batch. Only Around lists these.
	Job bool `json:"job,omitempty"`
}

// GraphView is a graph in its present condition.
type GraphView struct {
	ID     string            `json:"id"`
	Sealed bool              `json:"sealed"`
	Keys   map[string]string `json:"keys"`  // item id -> node key
	Items  []WorkItem        `json:"items"` // in the order of preparation
	Edges  []Edge            `json:"edges"` // requirements of these items, also of other graphs' items
}

// GraphPart is a bounded part of a graph.
type GraphPart struct {
	GraphID string `json:"graph_id,omitempty"`
	Sealed  bool   `json:"sealed"`
	// Nodes are the nodes of this part. Those that are Outside follow the others.
	Nodes []GraphNode `json:"nodes"`
	// Edges are the requirements of the nodes that are not outside. Nodes has both ends.
	Edges []Edge `json:"edges"`
	Next  string `json:"next,omitempty"` // the key behind which the graph goes on; "": this is the end
	More  bool   `json:"more,omitempty"` // Around: there are more items than these
}

// GraphNode is an item of a graph, without its spec and its results.
type GraphNode struct {
	WorkItem

	Key     string `json:"key,omitempty"`     // in its graph
	Title   string `json:"title,omitempty"`   // that the spec gives; "" if that is only its batch's
	Outside bool   `json:"outside,omitempty"` // it is of another graph, or of none, and a node requires it
	// Progress is what the live attempt has reported; nil if the item is not running.
	Progress []Progress `json:"progress,omitempty"`
}

// Heading is as of [WorkItem].
func (n GraphNode) Heading() string { return cmp.Or(n.Title, n.WorkItem.Heading()) }

// GraphError is a problem of a graph that is being built, or of a submission's requirements.
type GraphError struct {
	Key     string `json:"key"` // node; "" for the graph as a whole and for a plain submission
	Problem string `json:"problem"`
}

// Error names the node.
func (e *GraphError) Error() string {
	if e.Key == "" {
		return e.Problem
	}
	return fmt.Sprintf("node %q: %s", e.Key, e.Problem)
}

// NodeError says which node of a graph could not be added, and why.
type NodeError struct {
	Key string
	Err error
}

// Error names the node.
func (e *NodeError) Error() string { return fmt.Sprintf("node %q: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// CycleError says that the items of the graph wait for each other, so it cannot be sealed.
type CycleError struct {
	Items []string `json:"items"` // ids: each waits for the next, and the last for the first
}

// Error names the whole cycle.
func (e *CycleError) Error() string {
	return fmt.Sprintf("cycle: %s -> %s; abort one of them, which aborts them all, and prepare them again without one of these requirements",
		strings.Join(e.Items, " -> "), e.Items[0])
}
