package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func fromYAML(text []byte) (*node, Faults) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return nil, Faults{{Place{1, 1}, "the document is empty"}}
	case err != nil:
		return nil, Faults{syntaxFault(err)}
	}
	switch err := d.Decode(&more); {
	case err == nil:
		return nil, Faults{{Place{more.Line, more.Column}, "a second document begins here; give one profile"}}
	case !errors.Is(err, io.EOF):
		return nil, Faults{syntaxFault(err)}
	}
	var r yamlReader
	n := r.node(doc.Content[0], 0)
	return n, r.faults
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxFault converts an error of the parser, which may contain a line.
func syntaxFault(err error) Fault {
	f := Fault{Place{Line: 1}, err.Error()}
	if m := yamlError.FindStringSubmatch(f.Message); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			f.Line = line
		}
		f.Message = m[2]
	}
	f.Message = "not valid YAML: " + f.Message
	return f
}

// yamlReader converts YAML nodes. It accepts only notations that mean the same to everybody.
type yamlReader struct{ faults Faults }

func (r *yamlReader) fault(at *yaml.Node, format string, args ...any) *node {
	r.faults = append(r.faults, Fault{Place{at.Line, at.Column}, fmt.Sprintf(format, args...)})
	return &node{Place: Place{at.Line, at.Column}, kind: nothing, scalar: "null"}
}

func (r *yamlReader) node(y *yaml.Node, depth int) *node {
	n := &node{Place: Place{y.Line, y.Column}}
	switch {
	case depth > maxDepth:
		return r.fault(y, "lists are nested too deep")
	case y.Anchor != "" || y.Kind == yaml.AliasNode:
		return r.fault(y, "anchors and aliases are not supported; write the value out")
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mapping
		for i := 0; i+1 < len(y.Content); i += 2 {
			name := y.Content[i]
			if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" {
				r.fault(name, "want a name here")
				continue
			}
			n.fields = append(n.fields, field{Place{name.Line, name.Column}, name.Value, r.node(y.Content[i+1], depth+1)})
		}
	case yaml.SequenceNode:
		n.kind = list
		for _, item := range y.Content {
			n.items = append(n.items, r.node(item, depth+1))
		}
	default:
		return r.scalar(y, n)
	}
	return n
}

var (
	aDecimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	aNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

func (r *yamlReader) scalar(y *yaml.Node, n *node) *node {
	n.scalar = y.Value
	switch tag := y.ShortTag(); {
	case tag == "!!str", tag == "!!timestamp": // dates are text here
		n.kind = written
	case tag == "!!int" && aDecimal.MatchString(y.Value), tag == "!!float" && aNumber.MatchString(y.Value):
		n.kind = number
	case tag == "!!int", tag == "!!float":
		return r.fault(y, "%s can be read in several ways; write a number in decimal, or text in quotes", y.Value)
	case tag == "!!bool":
		n.kind, n.scalar = truth, strings.ToLower(y.Value)
	case tag == "!!null":
		n.kind, n.scalar = nothing, "null"
	default:
		return r.fault(y, "%s is not supported; write the value out", y.Tag)
	}
	return n
}
