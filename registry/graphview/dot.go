package graphview

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// look is how DOT shows the nodes of a tone: the shape tells them apart without colours.
var look = []struct{ tone, shape, style, fill, means string }{
	{Good, "box", "filled,rounded", "#d7efdd", "completed"},
	{Active, "box", "filled,bold", "#d3e9f3", "running"},
	{Waiting, "box", "filled,dashed", "#efefec", "pending"},
	{Still, "hexagon", "filled", "#f8e7c4", "held, cancelled, deleted or in preparation"},
	{Bad, "octagon", "filled", "#f6d3cf", "failed or aborted"},
}

// WriteDOT writes the graph in the language of Graphviz, with a legend. Arrows go from a required
// item to the item that waits for it: bold while the requirement is open, dashed if any end of the
// required item satisfies it.
func (v *View) WriteDOT(w io.Writer, now time.Time) error {
	b := bufio.NewWriter(w)
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format, args...) } // Flush has the error
	write("digraph %s {\n  rankdir=LR;\n  node [fontname=\"sans-serif\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=9];\n", quoted("graph "+v.GraphID))
	for _, n := range v.Nodes {
		label := Name(n)
		if title := Title(n); title != "" {
			label += "\n" + title
		}
		label += "\n" + Mark(n.State) + " " + stateText(n, now)
		if n.Status == registry.Running && len(n.Progress) > 0 {
			label += "\n" + ProgressText(n.Progress)
		}
		write("  %s [label=%s, tooltip=%s, %s];\n", quoted(n.ID), quoted(label), quoted(n.ID+" "+v.Detail(n)), lookOf(Tone(n.State)))
	}
	for _, e := range v.Edges {
		style := "solid"
		if e.WaitFor == registry.WaitSettled {
			style = "dashed"
		}
		width := "2"
		if e.SatisfiedAt != nil {
			width = "1, color=\"#808080\""
		}
		write("  %s -> %s [style=%s, penwidth=%s];\n", quoted(e.RequiresID), quoted(e.ItemID), style, width)
	}
	write("  subgraph cluster_legend {\n    label=\"Legend\"; fontname=\"sans-serif\"; fontsize=11; color=\"#808080\";\n")
	for _, l := range look {
		write("    %s [label=%s, %s];\n", quoted("legend "+l.tone), quoted(l.means), lookOf(l.tone))
	}
	write("    \"legend from\" [label=\"required\", shape=plaintext]; \"legend to\" [label=\"waits\", shape=plaintext];\n" +
		"    \"legend from\" -> \"legend to\" [label=\"open\", penwidth=2];\n" +
		"    \"legend from\" -> \"legend to\" [label=\"satisfied\", color=\"#808080\"];\n" +
		"    \"legend from\" -> \"legend to\" [label=\"any end is enough\", style=dashed];\n  }\n}\n")
	return b.Flush()
}

func lookOf(tone string) string {
	for _, l := range look {
		if l.tone == tone {
			return fmt.Sprintf("shape=%s, style=%q, fillcolor=%q", l.shape, l.style, l.fill)
		}
	}
	return ""
}

// quoted returns a text as a string of DOT. Backslashes are doubled, because labels know escapes
// such as \N; control characters become spaces.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
