package graphview

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
)

// Text says how a graph is written as text.
type Text struct {
	Most  int                 // a larger graph is summed up by level
	Now   time.Time           // in the reader's zone
	Clean func(string) string // makes texts of others safe to print
}

// listed is how many nodes a list of a summary names.
const listed = 20

// deepest is the depth at which a tree stops, so that lines stay readable.
const deepest = 24

// WriteTree writes the graph as a tree: a node stands below one that it requires. A node that
// requires several is written once, and mentioned below the others. A graph of more than t.Most nodes
// is summed up by level, with the nodes that failed and those that run.
func (v *View) WriteTree(w io.Writer, t Text) error {
	b := &strings.Builder{}
	t.heading(b, v)
	if len(v.Nodes) > t.Most {
		t.summary(b, v)
	} else {
		t.tree(b, v)
	}
	if v.More {
		b.WriteString("\nThere are more items than these: show one of the last for what is around it.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Text) heading(b *strings.Builder, v *View) {
	if v.GraphID != "" {
		fmt.Fprintf(b, "graph %s", v.GraphID)
		if !v.Sealed {
			b.WriteString(", not sealed: its items start once it is")
		}
		b.WriteString("\n")
	}
	counts := v.Counts()
	var n int64
	for _, c := range counts {
		n += c.Count
	}
	fmt.Fprintf(b, "nodes %s: %s\n\n", registry.CountText(n), CountsText(counts))
}

// row is a line of a tree before its columns are aligned.
type row struct{ head, tail string }

func (t Text) tree(b *strings.Builder, v *View) {
	var rows []row
	written, cut := make([]bool, len(v.Nodes)), make([]bool, len(v.Nodes))
	var place func(node, depth int, branch, below string)
	place = func(node, depth int, branch, below string) {
		n := v.Nodes[node]
		name := t.Clean(Name(n))
		if written[node] {
			rows = append(rows, row{branch + "↑ " + name, "see above"})
			return
		}
		written[node] = true
		if title := Title(n); title != "" && n.Key != "" && !n.Outside {
			name += " " + t.Clean(title)
		}
		rows = append(rows, row{branch + Mark(n.State) + " " + name, t.tail(v, n)})
		all := v.dependents[node]
		if depth == deepest && len(all) > 0 {
			rows = append(rows, row{below + "└─ more below: show item " + n.ID, ""})
			v.mark(node, cut)
			return
		}
		for i, d := range all {
			if i == len(all)-1 {
				place(d.node, depth+1, below+"└─ ", below+"   ")
			} else {
				place(d.node, depth+1, below+"├─ ", below+"│  ")
			}
		}
	}
	for i := range v.Nodes {
		if len(v.requires[i]) == 0 {
			place(i, 0, "", "")
		}
	}
	for i := range v.Nodes { // of cycles
		if !written[i] && !cut[i] {
			place(i, 0, "", "")
		}
	}
	const widest = 60
	width := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r.head); r.tail != "" && n <= widest {
			width = max(width, n)
		}
	}
	for _, r := range rows {
		b.WriteString(r.head)
		if r.tail != "" {
			b.WriteString(strings.Repeat(" ", max(0, width-utf8.RuneCountInString(r.head))+2) + r.tail)
		}
		b.WriteString("\n")
	}
}

// mark marks what is below a node.
func (v *View) mark(node int, marked []bool) {
	for todo := []int{node}; len(todo) > 0; todo = todo[1:] {
		for _, d := range v.dependents[todo[0]] {
			if !marked[d.node] {
				marked[d.node] = true
				todo = append(todo, d.node)
			}
		}
	}
}

func (t Text) tail(v *View, n registry.GraphNode) string {
	text := stateText(n, t.Now)
	if d := v.Detail(n); d != "" {
		text += ": " + t.Clean(d)
	}
	if n.Outside {
		text += " (not of this graph)"
	}
	return text
}

func (t Text) summary(b *strings.Builder, v *View) {
	const most = 40
	levels := v.Levels()
	for i, l := range levels {
		if i == most {
			fmt.Fprintf(b, "… and %d more levels\n", levels[len(levels)-1].Last-l.First+1)
			break
		}
		name := fmt.Sprintf("level %d", l.First)
		if l.Last > l.First {
			name = fmt.Sprintf("levels %d to %d", l.First, l.Last)
		}
		fmt.Fprintf(b, "%-20s %s\n", name, CountsText(l.Counts))
	}
	shown := t.list(b, v, "Failed, awaiting repair", v.Failed()) + t.list(b, v, "Running", v.Running())
	fmt.Fprintf(b, "\n%s nodes are not shown. For what is around one: holdfast task graph ITEM. For all: --limit %d\n",
		registry.CountText(int64(len(v.Nodes)-shown)), len(v.Nodes))
}

// list writes the first nodes of a list and returns their number.
func (t Text) list(b *strings.Builder, v *View, title string, nodes []registry.GraphNode) int {
	if len(nodes) == 0 {
		return 0
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, n := range nodes[:min(listed, len(nodes))] {
		fmt.Fprintf(b, "  %s %s %s  %s\n", Mark(n.State), n.ID, t.Clean(Name(n)), t.tail(v, n))
	}
	if more := len(nodes) - listed; more > 0 {
		fmt.Fprintf(b, "  … and %s more\n", registry.CountText(int64(more)))
	}
	return min(listed, len(nodes))
}
