package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of a check. The library has none: it follows references for as long as they lead on, until
// the stack of the process is full.
const (
	mostNested = 200       // levels of a value, if its schema has references
	mostChecks = 1_000_000 // of a value's parts against parts of its schema
)

// top is the path of a whole schema.
const top = "#"

var kinds = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// part is a part of a schema, with its own parts by what they apply to.
type part struct {
	path       string
	of         *jsonschema.Schema
	same       []*part          // to the same value
	properties map[string]*part // to the property of this name
	items      []*part          // to the item of this index
	children   []*part          // to each item or property, or to some that the schema tells
	ref        string           // to the same value: the path of another part
}

// parts reads the parts of a schema, by their paths. It fails for types that do not exist, and for
// references that lead out of the schema or back without an item or a property between.
func parts(s *jsonschema.Schema) (map[string]*part, error) {
	all := map[string]*part{}
	if _, err := collect(s, top, all); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p := all[path]
		if p.ref == "" {
			continue
		}
		to := all[p.ref]
		if to == nil {
			return nil, fmt.Errorf("%s: the $ref %.200q does not lead to a part of this schema, such as #/$defs/name", path, p.of.Ref)
		}
		p.same = append(p.same, to)
	}
	state := map[*part]int{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if err := ends(all[path], state); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// collect adds s and the parts below it.
func collect(s *jsonschema.Schema, path string, all map[string]*part) (*part, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // there is no such part
	}
	p := &part{path: path, of: s, properties: map[string]*part{}}
	all[path] = p
	for _, kind := range append(slices.Clone(s.Types), s.Type) {
		if kind != "" && !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("%s: the type %.100q does not exist; the types are %s", path, kind, strings.Join(kinds, ", "))
		}
	}
	if s.DynamicRef != "" || s.ID != "" && path != top {
		return nil, fmt.Errorf("%s: $dynamicRef, and $id below the top, are not supported; use $ref with a path, such as #/$defs/name", path)
	}
	if s.Ref != "" {
		ref, err := url.PathUnescape(s.Ref)
		if err != nil {
			return nil, fmt.Errorf("%s: the $ref %.200q is not valid: %w", path, s.Ref, err)
		}
		p.ref = ref
	}
	var errs []error
	add := func(at string, s *jsonschema.Schema, to *[]*part) {
		sub, err := collect(s, path+"/"+at, all)
		if err != nil {
			errs = append(errs, err)
		} else if sub != nil && to != nil {
			*to = append(*to, sub)
		}
	}
	list := func(at string, of []*jsonschema.Schema, to *[]*part) {
		for i, s := range of {
			add(at+"/"+strconv.Itoa(i), s, to)
		}
	}
	named := func(at string, of map[string]*jsonschema.Schema, to *[]*part) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			add(at+"/"+escape(name), of[name], to)
		}
	}
	list("allOf", s.AllOf, &p.same)
	list("anyOf", s.AnyOf, &p.same)
	list("oneOf", s.OneOf, &p.same)
	add("not", s.Not, &p.same)
	add("if", s.If, &p.same)
	add("then", s.Then, &p.same)
	add("else", s.Else, &p.same)
	named("dependentSchemas", s.DependentSchemas, &p.same)
	named("dependencies", s.DependencySchemas, &p.same)
	list("prefixItems", s.PrefixItems, &p.items)
	list("items", s.ItemsArray, &p.items)
	add("items", s.Items, &p.children)
	add("additionalItems", s.AdditionalItems, &p.children)
	add("contains", s.Contains, &p.children)
	add("unevaluatedItems", s.UnevaluatedItems, &p.children)
	named("patternProperties", s.PatternProperties, &p.children)
	add("additionalProperties", s.AdditionalProperties, &p.children)
	add("unevaluatedProperties", s.UnevaluatedProperties, &p.children)
	add("propertyNames", s.PropertyNames, &p.children) // to the name, which has no more parts than the value
	add("contentSchema", s.ContentSchema, nil)
	named("$defs", s.Defs, nil)
	named("definitions", s.Definitions, nil)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		at := path + "/properties/" + escape(name)
		sub, err := collect(s.Properties[name], at, all)
		if err != nil {
			errs = append(errs, err)
		} else if sub != nil {
			p.properties[name] = sub
		}
	}
	return p, errors.Join(errs...)
}

// escape writes a name as an element of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

const (
	entered = iota + 1
	left
)

// ends fails if the check of one value against p would never end.
func ends(p *part, state map[*part]int) error {
	switch state[p] {
	case left:
		return nil
	case entered:
		return fmt.Errorf("%s: its references lead back to itself for the same value; put a property or an item between", p.path)
	}
	state[p] = entered
	for _, next := range p.same {
		if err := ends(next, state); err != nil {
			return err
		}
	}
	state[p] = left
	return nil
}

// checks counts how often the parts of a value are checked against parts of its schema.
type checks struct {
	counted map[check]int
	next    int // the number of the next value
}

type check struct {
	part  *part
	value int
}

// numbered is a value whose parts have numbers, so that a count is done once for each.
type numbered struct {
	number     int
	items      []*numbered
	properties map[string]*numbered
}

// errNested, errChecks: the value exceeds a bound.
var (
	errNested = fmt.Errorf("it is nested more than %d levels deep", mostNested)
	errChecks = fmt.Errorf("it takes more than %d checks against the schema, whose alternatives lead to themselves", mostChecks)
)

func (c *checks) number(v any, depth int) (*numbered, error) {
	if depth > mostNested {
		return nil, errNested
	}
	n := &numbered{number: c.next}
	c.next++
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			sub, err := c.number(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, sub)
		}
	case map[string]any:
		n.properties = map[string]*numbered{}
		for name, value := range v {
			sub, err := c.number(value, depth+1)
			if err != nil {
				return nil, err
			}
			n.properties[name] = sub
		}
	}
	return n, nil
}

// of returns the number of checks of a value against p. It is at most a little more than mostChecks.
func (c *checks) of(p *part, v *numbered) int {
	key := check{p, v.number}
	if n, ok := c.counted[key]; ok {
		return n
	}
	if len(c.counted) >= mostChecks {
		return mostChecks + 1
	}
	n := 1
	add := func(p *part, v *numbered) {
		if n <= mostChecks {
			n = min(n+c.of(p, v), mostChecks+1)
		}
	}
	for _, next := range p.same {
		add(next, v)
	}
	for i, item := range v.items {
		if i < len(p.items) {
			add(p.items[i], item)
		}
		for _, next := range p.children {
			add(next, item)
		}
	}
	for name, value := range v.properties {
		if next := p.properties[name]; next != nil {
			add(next, value)
		}
		for _, next := range p.children {
			add(next, value)
		}
	}
	c.counted[key] = n
	return n
}
