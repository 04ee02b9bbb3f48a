package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// check compares a document with the structure of a type, and returns the place of each part and all
// faults.
func check(root *node, of reflect.Type) (map[string]Place, Faults) {
	c := checker{places: map[string]Place{}}
	if root.kind != mapping {
		return nil, Faults{{root.Place, fmt.Sprintf("it is %s; it must consist of names with values, such as owner: ark:/99999/example", root.kind)}}
	}
	c.compare(root, of, "")
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return c.places, c.faults
}

type checker struct {
	places map[string]Place
	faults Faults
}

func (c *checker) fault(at Place, format string, args ...any) {
	c.faults = append(c.faults, Fault{at, fmt.Sprintf(format, args...)})
}

// compare checks that a node fits a type.
func (c *checker) compare(n *node, t reflect.Type, path string) {
	c.places[path] = n.Place
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		c.free(n, path)
	case n.kind == nothing: // not given
	case t.Kind() == reflect.Struct && n.kind == mapping:
		c.fields(n, t, path)
	case t.Kind() == reflect.Slice && n.kind == list:
		for i, item := range n.items {
			at := fmt.Sprintf("%s[%d]", path, i)
			if item.kind == nothing {
				c.fault(item.Place, "%s is empty", at)
			}
			c.compare(item, t.Elem(), at)
		}
	case n.kind != wanted(t):
		c.fault(n.Place, "%s is %s; want %s%s", path, n.kind, wanted(t), advice(n, t))
	case wanted(t) == number && !fits(n.scalar):
		c.fault(n.Place, "%s is %s; want a whole number", path, n.scalar)
	}
}

// fields checks the fields of a node against those of a struct.
func (c *checker) fields(n *node, t reflect.Type, path string) {
	known := map[string]reflect.Type{}
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = t.Field(i).Type
		names = append(names, name)
	}
	c.once(n)
	for _, f := range n.fields {
		at := strings.TrimPrefix(path+"."+f.name, ".")
		if of, ok := known[f.name]; ok {
			c.compare(f.value, of, at)
			continue
		}
		if near := registry.Nearest(strings.ToLower(f.name), names); near != "" {
			c.fault(f.Place, "%s is unknown; did you mean %s?", at, near)
		} else {
			c.fault(f.Place, "%s is unknown; there are %s", at, strings.Join(names, ", "))
		}
	}
}

// once reports names that occur twice in a node.
func (c *checker) once(n *node) {
	first := map[string]Place{}
	for _, f := range n.fields {
		if at, ok := first[f.name]; ok {
			c.fault(f.Place, "%s is already on line %d; write it once", f.name, at.Line)
			continue
		}
		first[f.name] = f.Place
	}
}

// free records the places of an embedded document, which may have any names, each once.
func (c *checker) free(n *node, path string) {
	c.places[path] = n.Place
	c.once(n)
	for _, f := range n.fields {
		c.free(f.value, path+"."+f.name)
	}
	for i, item := range n.items {
		c.free(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// wanted returns the kind of node for a type.
func wanted(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Struct:
		return mapping
	case reflect.Slice:
		return list
	case reflect.Bool:
		return truth
	case reflect.Int, reflect.Int64:
		return number
	default:
		return written
	}
}

// advice returns how to correct a value of the wrong kind, or "".
func advice(n *node, t reflect.Type) string {
	switch {
	case wanted(t) == written && (n.kind == number || n.kind == truth):
		return "; put it into quotes"
	case wanted(t) == list && n.kind == written:
		return ", even for one value: [" + n.scalar + "]"
	}
	return ""
}

// fits reports whether a number is an integer of 64 bits.
func fits(number string) bool { return json.Unmarshal([]byte(number), new(int64)) == nil }
