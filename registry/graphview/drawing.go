package graphview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// Sizes of a drawing, in pixels.
const (
	BoxWidth              = 190
	BoxHeight             = 46
	columnPitch, rowPitch = 250, 62
	margin                = 12
	longestName           = 22 // characters
	sweeps                = 6  // passes that reduce the crossings of lines
)

// Drawing is the layout of a graph: what requires nothing stands left, and what waits stands right of
// what it waits for.
type Drawing struct {
	Width, Height int
	Boxes         []Box
	Lines         []Line
}

// Box is a node of a drawing.
type Box struct {
	registry.GraphNode

	X, Y     int    // of its left upper corner
	Label    string // its name, cut to fit
	Name     string // the whole name
	Standing Standing
}

// Line is an edge of a drawing.
type Line struct {
	Path    string // in the syntax of SVG
	Open    bool   // the requirement is not satisfied yet
	Settled bool   // any end of the required item satisfies it
}

// point is a place in a column: of a node, or of a line that passes by.
type point struct {
	node          int // -1: a line
	left, right   []int
	column, order int
}

// Draw lays the graph out.
func (v *View) Draw() Drawing {
	points, columns, ways := v.points()
	for sweep := range sweeps {
		for i := range columns {
			column, near := columns[i], func(p int) []int { return points[p].left }
			if sweep%2 == 1 {
				column, near = columns[len(columns)-1-i], func(p int) []int { return points[p].right }
			}
			untangle(points, column, near)
		}
	}
	tallest := 0
	for _, c := range columns {
		tallest = max(tallest, len(c))
	}
	d := Drawing{Width: 2*margin + max(0, len(columns)-1)*columnPitch + BoxWidth, Height: 2*margin + max(0, tallest-1)*rowPitch + BoxHeight}
	place := func(p int) (x, y int) {
		at := points[p]
		return margin + at.column*columnPitch, margin + at.order*rowPitch + (tallest-len(columns[at.column]))*rowPitch/2
	}
	for i, n := range v.Nodes {
		x, y := place(i)
		d.Boxes = append(d.Boxes, Box{GraphNode: n, X: x, Y: y, Label: cut(Name(n), longestName), Name: Name(n), Standing: v.Standing(n)})
	}
	for _, w := range ways {
		x, y := place(w.points[0])
		path := fmt.Sprintf("M%d %d", x+BoxWidth, y+BoxHeight/2)
		x += BoxWidth
		for _, p := range w.points[1:] {
			toX, toY := place(p)
			middle := (x + toX) / 2
			path += fmt.Sprintf(" C%d %d %d %d %d %d", middle, y+BoxHeight/2, middle, toY+BoxHeight/2, toX, toY+BoxHeight/2)
			if x, y = toX, toY; points[p].node < 0 {
				x += BoxWidth
				path += fmt.Sprintf(" L%d %d", x, y+BoxHeight/2)
			}
		}
		d.Lines = append(d.Lines, Line{Path: path, Open: w.edge.SatisfiedAt == nil, Settled: w.edge.WaitFor == registry.WaitSettled})
	}
	return d
}

// way is the points through which the line of an edge goes.
type way struct {
	edge   *registry.Edge
	points []int
}

// points returns the nodes and the places that lines pass, by column.
func (v *View) points() (points []point, columns [][]int, ways []way) {
	add := func(node, column int) int {
		for len(columns) <= column {
			columns = append(columns, nil)
		}
		points = append(points, point{node: node, column: column, order: len(columns[column])})
		columns[column] = append(columns[column], len(points)-1)
		return len(points) - 1
	}
	for i := range v.Nodes {
		add(i, v.levels[i])
	}
	for i := range v.Nodes {
		for _, l := range v.requires[i] {
			w := way{l.edge, []int{l.node}}
			for column := v.levels[l.node] + 1; column < v.levels[i]; column++ {
				w.points = append(w.points, add(-1, column))
			}
			w.points = append(w.points, i)
			for at := 1; at < len(w.points); at++ {
				before, after := w.points[at-1], w.points[at]
				points[before].right = append(points[before].right, after)
				points[after].left = append(points[after].left, before)
			}
			ways = append(ways, w)
		}
	}
	return points, columns, ways
}

// untangle orders a column by the middle of what each point is connected to.
func untangle(points []point, column []int, near func(point int) []int) {
	middle := func(p int) float64 {
		all := near(p)
		if len(all) == 0 {
			return float64(points[p].order)
		}
		sum := 0
		for _, n := range all {
			sum += points[n].order
		}
		return float64(sum) / float64(len(all))
	}
	slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(middle(a), middle(b)) })
	for order, p := range column {
		points[p].order = order
	}
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
