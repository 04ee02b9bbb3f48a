package page

import (
	"cmp"
	"html/template"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// fieldFaults is what is wrong with a field of a form.
type fieldFaults struct {
	control *html.Node
	said    []template.HTML
	told    bool // the refusal itself says the same
}

// mark says beside the field what is wrong with it.
func (f fieldFaults) mark() error {
	name := attribute(f.control, "name")
	if attribute(f.control, "id") == "" {
		setAttribute(f.control, "id", "field-"+name)
	}
	id := "fault-" + attribute(f.control, "id")
	setAttribute(f.control, "aria-invalid", "true")
	setAttribute(f.control, "aria-describedby", strings.TrimSpace(attribute(f.control, "aria-describedby")+" "+id))
	said := element(atom.Span, html.Attribute{Key: "class", Val: "bad"}, html.Attribute{Key: "id", Val: id})
	if err := f.tellIn(said); err != nil {
		return err
	}
	after := f.control
	if f.control.Parent.DataAtom == atom.Label {
		after = f.control.Parent
	}
	after.Parent.InsertBefore(said, after.NextSibling)
	after.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: " "}, said)
	for at := f.control.Parent; at != nil; at = at.Parent {
		if at.DataAtom == atom.Details {
			setAttribute(at, "open", "")
		}
	}
	return nil
}

// tellIn puts what is wrong at the end of an element.
func (f fieldFaults) tellIn(at *html.Node) error {
	for i, said := range f.said {
		if i > 0 {
			at.AppendChild(&html.Node{Type: html.TextNode, Data: " "})
		}
		parts, err := html.ParseFragment(strings.NewReader(string(said)), element(atom.Span))
		if err != nil {
			return err
		}
		for _, part := range parts {
			at.AppendChild(part)
		}
	}
	return nil
}

// entry is the field in the list of those at fault: a link that leads to it, and what is wrong.
func (f fieldFaults) entry() (*html.Node, error) {
	link := element(atom.A, html.Attribute{Key: "href", Val: "#" + attribute(f.control, "id")})
	link.AppendChild(&html.Node{Type: html.TextNode, Data: f.label()})
	entry := element(atom.Li)
	entry.AppendChild(link)
	if f.told {
		return entry, nil
	}
	entry.AppendChild(&html.Node{Type: html.TextNode, Data: ": "})
	return entry, f.tellIn(entry)
}

// label is what the field is called: by its data-label, else by its label.
func (f fieldFaults) label() string {
	root := f.control
	for root.Parent != nil {
		root = root.Parent
	}
	label := find(root, func(n *html.Node) bool {
		return n.DataAtom == atom.Label && attribute(n, "for") == attribute(f.control, "id")
	})
	for at := f.control.Parent; label == nil && at != nil; at = at.Parent {
		if at.DataAtom == atom.Label {
			label = at
		}
	}
	var text strings.Builder
	if label != nil {
		for n := range label.Descendants() {
			if n.Type == html.TextNode {
				text.WriteString(n.Data)
			}
		}
	}
	return cmp.Or(attribute(f.control, "data-label"), strings.TrimSpace(text.String()), attribute(f.control, "aria-label"), attribute(f.control, "name"))
}

// element returns a new element.
func element(a atom.Atom, attributes ...html.Attribute) *html.Node {
	return &html.Node{Type: html.ElementNode, DataAtom: a, Data: a.String(), Attr: attributes}
}
