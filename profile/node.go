package profile

import (
	"encoding/json"
	"strings"
)

// kind is the kind of a node.
type kind string

// The kinds, in words for people.
const (
	mapping kind = "a list of names with values"
	list    kind = "a list"
	written kind = "text"
	number  kind = "a number"
	truth   kind = "true or false"
	nothing kind = "null"
)

// node is a part of a document in either language.
type node struct {
	Place
	kind   kind
	scalar string // the text, or the JSON of other values
	fields []field
	items  []*node
}

// field is a name with a value.
type field struct {
	Place // of the name
	name  string
	value *node
}

// json returns the node in JSON, with its fields in their order.
func (n *node) json() []byte {
	switch n.kind {
	case mapping:
		parts := make([]string, len(n.fields))
		for i, f := range n.fields {
			parts[i] = quoted(f.name) + ":" + string(f.value.json())
		}
		return []byte("{" + strings.Join(parts, ",") + "}")
	case list:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = string(item.json())
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	case written:
		return []byte(quoted(n.scalar))
	case number, truth, nothing:
	}
	return []byte(n.scalar)
}

func quoted(s string) string {
	out, _ := json.Marshal(s) // cannot fail for text
	return string(out)
}
