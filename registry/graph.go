package registry

import (
	"fmt"
	"strings"
	"time"
)

// WaitFor says when a requirement is satisfied.
type WaitFor string

// The kinds of edges.
const (
	// WaitSuccess: when the required item completed. A failed or cancelled one keeps its dependents blocked until it is
	// requeued and completes; an aborted one aborts them.
	WaitSuccess WaitFor = "success"
	// WaitSettled: when the required item settled, however it ended. Abort does not cascade along it.
	WaitSettled WaitFor = "settled"
)

// Requirement is one prerequisite of a node: another node of its graph by Key, or an item that is there already.
type Requirement struct {
	Key     string  `json:"key,omitempty"`
	ItemID  string  `json:"item_id,omitempty"`
	WaitFor WaitFor `json:"wait_for,omitempty"` // "" = success
}

// Node is a submission in a graph. The requirements of its Submission may name keys.
type Node struct {
	Key        string     `json:"key"` // the caller's own name for it, unique in the graph
	Submission Submission `json:"submission"`
}

// Graph is submissions that depend on each other. It is built by one or more calls of Prepare and started by Seal.
type Graph struct {
	ID             string `json:"id"`    // "" makes a new graph; otherwise nodes are added to one that is not sealed yet
	Nodes          []Node `json:"nodes"` // at most 500 a call
	Actor          string `json:"actor"`
	IdempotencyKey string `json:"idempotency_key"`
}

// PreparedGraph answers Prepare.
type PreparedGraph struct {
	GraphID string            `json:"graph_id"`
	Items   map[string]string `json:"items"` // node key -> item id
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
	ID     string     `json:"id"`
	Sealed bool       `json:"sealed"`
	Items  []WorkItem `json:"items"`
	Edges  []Edge     `json:"edges"`
}

// GraphError says what is wrong with a graph that is being built.
type GraphError struct {
	Key     string `json:"key"` // the node
	Problem string `json:"problem"`
}

// Error names the node.
func (e *GraphError) Error() string { return fmt.Sprintf("node %q: %s", e.Key, e.Problem) }

// CycleError refuses to seal a graph whose items wait for each other.
type CycleError struct {
	Items []string `json:"items"` // ids, each waiting for the next, the last for the first
}

// Error names the whole cycle.
func (e *CycleError) Error() string {
	return fmt.Sprintf("cycle: %s -> %s; take one of these requirements away", strings.Join(e.Items, " -> "), e.Items[0])
}
