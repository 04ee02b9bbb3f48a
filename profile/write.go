package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast/holdfast/registry"
)

// YAML writes a profile as a document that [Parse] reads back, with comment lines at its start.
// Values that are not given are left out.
func YAML(p registry.Profile, comment ...string) ([]byte, error) {
	root, err := nodeOf(p)
	if err != nil {
		return nil, err
	}
	doc := root.yaml()
	for i, line := range comment {
		comment[i] = "# " + line
	}
	doc.HeadComment = strings.Join(comment, "\n")
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	return out.Bytes(), nil
}

// JSON writes a profile in JSON, without comment.
func JSON(p registry.Profile) ([]byte, error) {
	root, err := nodeOf(p)
	if err != nil {
		return nil, err
	}
	return root.json(), nil
}

// nodeOf returns a profile as a document, without values that are not given.
func nodeOf(p registry.Profile) (*node, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode profile: %w", err)
	}
	root, faults := fromJSON(text)
	if faults != nil {
		return nil, fmt.Errorf("encode profile: %w", faults)
	}
	root.fields = slices.DeleteFunc(root.fields, func(f field) bool {
		v := f.value
		return v.kind == nothing || v.kind == written && v.scalar == "" || v.kind == list && len(v.items) == 0
	})
	return root, nil
}

func (n *node) yaml() *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.scalar}
	switch n.kind {
	case mapping:
		y.Kind = yaml.MappingNode
		for _, f := range n.fields {
			y.Content = append(y.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.name}, f.value.yaml())
		}
	case list:
		y.Kind = yaml.SequenceNode
		for _, item := range n.items {
			y.Content = append(y.Content, item.yaml())
		}
	case written:
		y.Tag = "!!str"
	case number, truth, nothing:
	}
	return y
}
