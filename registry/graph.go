package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Graphs is how submissions come in that wait for one another, and who waits for whom.
type Graphs interface {
	// Prepare adds submissions to a graph that is not sealed yet, all of them or none, in status
	// prepare: nothing of it is dispatched before Seal. A requirement of an item that is there
	// already locks and re-checks it: one that is satisfied already is born so (R12). The same
	// content is not looked for: every node becomes a batch of its own, as with Force. With an
	// idempotency key that was used before, the first answer is returned again. *GraphError names a
	// key that is used twice or not known, an item that requires itself, a requirement that can
	// never be satisfied, and what is beyond [MostNodes], [MostEdges] or [MostItems]; ErrNotFound
	// an unknown graph, item, upload or collection; ErrSealed a graph that is sealed;
	// *MailRefusedError and *MailLimitError are as for Submit.
	Prepare(ctx context.Context, g Graph) (PreparedGraph, error)
	// Seal makes every item of a graph that is still in prepare pending in one act, or none:
	// *CycleError names the items of a cycle, ErrNotFound an unknown graph. What was cancelled,
	// aborted or deleted before stays so. A repeat changes nothing.
	Seal(ctx context.Context, graphID, actor string) error
	// Graph returns the items of a graph with their edges, or ErrNotFound.
	Graph(ctx context.Context, id string) (GraphView, error)
	// Edges returns what an item requires and what requires it, or ErrNotFound. A batch's own jobs
	// are not among it: Items lists them.
	Edges(ctx context.Context, itemID string) (requires, required []Edge, err error)
}

// Bounds of graphs. They keep the transactions that build, seal and abort one short.
const (
	MostNodes = 500   // in one call of Prepare
	MostEdges = 2_000 // requirements in one call of Prepare, and of one submission
	MostItems = 5_000 // in one graph
	mostKey   = 200   // bytes of a node's key
)

// ErrSealed refuses to add to a graph that is sealed already.
var ErrSealed = errors.New("the graph is sealed")

// WaitFor says when a requirement is satisfied.
type WaitFor string

// The kinds of edges.
const (
	// WaitSuccess: when the required item completed. A failed or cancelled one keeps its dependents
	// blocked until it is requeued and completes; an aborted one aborts them.
	WaitSuccess WaitFor = "success"
	// WaitSettled: when the required item settled, however it ended. Abort does not cascade along
	// it. While an item that was sent back runs again, the requirement is open again; what has
	// completed meanwhile stays completed.
	WaitSettled WaitFor = "settled"
)

// SatisfiedBy says whether an item of this status satisfies the requirement.
func (w WaitFor) SatisfiedBy(s Status) bool {
	if w == WaitSettled {
		return s.Settled()
	}
	return s == Completed
}

// hopeless says that an item of this status never will satisfy the requirement.
func (w WaitFor) hopeless(s Status) bool {
	return w != WaitSettled && (s == Aborted || s == Deleted)
}

// Requirement is one prerequisite of a node: another node of its graph by Key, or an item that is
// there already.
type Requirement struct {
	Key     string  `json:"key,omitempty"`
	ItemID  string  `json:"item_id,omitempty" id:"items"`
	WaitFor WaitFor `json:"wait_for,omitempty"` // "" = success
}

// name is how people know the required item.
func (r Requirement) name() string {
	if r.Key != "" {
		return fmt.Sprintf("node %q", r.Key)
	}
	return "item " + r.ItemID
}

// problem is what is wrong with a requirement taken by itself, or "".
func (r Requirement) problem() string {
	switch {
	case !isText(r.Key) || !isText(r.ItemID):
		return fmt.Sprintf("a requirement names %q, which is no text", r.Key+r.ItemID)
	case r.Key == "" && r.ItemID == "":
		return "a requirement names nothing: give a key or an item id"
	case r.Key != "" && r.ItemID != "":
		return fmt.Sprintf("a requirement names node %q and item %s; give the one or the other", r.Key, r.ItemID)
	case r.WaitFor != "" && r.WaitFor != WaitSuccess && r.WaitFor != WaitSettled:
		return fmt.Sprintf("%s is waited for until %q; it can be %s or %s", r.name(), r.WaitFor, WaitSuccess, WaitSettled)
	}
	return ""
}

// CheckOn says what is wrong with requiring r of an item that has this status, or "".
func (r Requirement) CheckOn(s Status) string {
	if r.WaitFor.hopeless(s) {
		return fmt.Sprintf("%s is %s and will never complete; leave the requirement out, or wait for %s", r.name(), s, WaitSettled)
	}
	return ""
}

// isText says that every database can keep it.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Node is a submission in a graph. The requirements of its Submission may name keys.
type Node struct {
	Key        string     `json:"key"` // the caller's own name for it, unique in the graph
	Submission Submission `json:"submission"`
}

// Graph is submissions that depend on each other. It is built by one or more calls of Prepare and
// started by Seal.
type Graph struct {
	ID             string `json:"id"`    // "" makes a new graph; otherwise nodes are added to one that is not sealed yet
	Nodes          []Node `json:"nodes"` // at most [MostNodes] a call
	Actor          string `json:"actor"`
	IdempotencyKey string `json:"idempotency_key"`
}

// Problems returns everything that is wrong with a call of Prepare and can be told without looking
// at what is there already.
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
			add(n.Key, "its key is no text")
		case len(n.Key) > mostKey:
			add(n.Key, "its key is longer than %d bytes", mostKey)
		case seen[n.Key]:
			add(n.Key, "the key is used twice")
		}
		seen[n.Key] = true
		edges += len(n.Submission.Requires)
		for _, p := range requirementProblems(n.Submission.Requires) {
			add(n.Key, "%s", p)
		}
		if slices.ContainsFunc(n.Submission.Requires, func(r Requirement) bool { return r.Key != "" && r.Key == n.Key }) {
			add(n.Key, "it requires itself")
		}
	}
	switch {
	case !isText(g.ID):
		add("", "the graph's id is no text")
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

// Problems returns everything that is wrong with the requirements of a plain submission: they name
// items, not keys.
func (s Submission) Problems() []*GraphError {
	var all []*GraphError
	problems := requirementProblems(s.Requires)
	if len(s.Requires) > MostEdges {
		problems = append(problems, fmt.Sprintf("%d requirements; the limit is %d", len(s.Requires), MostEdges))
	}
	for _, r := range s.Requires {
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
	Items   map[string]string `json:"items"` // node key -> item id, of this call's nodes
}

// Edge is one requirement as it stands.
type Edge struct {
	ItemID      string     `json:"item_id"`     // what waits
	RequiresID  string     `json:"requires_id"` // for this
	WaitFor     WaitFor    `json:"wait_for"`
	SatisfiedAt *time.Time `json:"satisfied_at,omitempty"`
}

// GraphView is a graph as it stands.
type GraphView struct {
	ID     string            `json:"id"`
	Sealed bool              `json:"sealed"`
	Keys   map[string]string `json:"keys"`  // item id -> node key
	Items  []WorkItem        `json:"items"` // in the order in which they were prepared
	Edges  []Edge            `json:"edges"` // what these items require, items of other graphs among it
}

// GraphError says what is wrong with a graph that is being built, or with a submission's
// requirements.
type GraphError struct {
	Key     string `json:"key"` // the node; "" for the graph as a whole, and for a plain submission
	Problem string `json:"problem"`
}

// Error names the node.
func (e *GraphError) Error() string {
	if e.Key == "" {
		return e.Problem
	}
	return fmt.Sprintf("node %q: %s", e.Key, e.Problem)
}

// CycleError refuses to seal a graph whose items wait for each other.
type CycleError struct {
	Items []string `json:"items"` // ids, each waiting for the next, the last for the first
}

// Error names the whole cycle.
func (e *CycleError) Error() string {
	return fmt.Sprintf("cycle: %s -> %s; abort one of these, which ends them all, and prepare them anew without one of these requirements",
		strings.Join(e.Items, " -> "), e.Items[0])
}
