// Package cfntest reads CloudFormation templates for tests: it finds what they refer to, resolves
// their functions, says what their roles allow, and compares their properties with CloudFormation's
// own schema.
package cfntest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Template is a template as it was written. Its functions have their long form: {"Ref": NAME}.
type Template struct {
	Text        []byte
	Description string
	Metadata    map[string]any
	Parameters  map[string]map[string]any
	Conditions  map[string]any
	Resources   map[string]Resource
	Outputs     map[string]map[string]any
}

// Resource is one resource.
type Resource struct {
	Type                string
	Condition           string
	DependsOn           []string
	DeletionPolicy      string
	UpdateReplacePolicy string
	Properties          map[string]any
}

// Load reads a template. A key that CloudFormation does not know fails the test, and so does a key
// that is there twice.
func Load(t testing.TB, path string) *Template {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if err := lengthen(&document); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	long, err := yaml.Marshal(&document)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var parts struct {
		Version     string                    `yaml:"AWSTemplateFormatVersion"`
		Description string                    `yaml:"Description"`
		Metadata    map[string]any            `yaml:"Metadata"`
		Parameters  map[string]map[string]any `yaml:"Parameters"`
		Conditions  map[string]any            `yaml:"Conditions"`
		Resources   map[string]Resource       `yaml:"Resources"`
		Outputs     map[string]map[string]any `yaml:"Outputs"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(long)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&parts); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return &Template{
		Text: text, Description: parts.Description, Metadata: parts.Metadata, Parameters: parts.Parameters, Conditions: parts.Conditions,
		Resources: parts.Resources, Outputs: parts.Outputs,
	}
}

// UnmarshalYAML implements yaml.Unmarshaler: resources have CloudFormation's own keys.
func (r *Resource) UnmarshalYAML(node *yaml.Node) error {
	for i := 0; i < len(node.Content); i += 2 {
		into := map[string]any{
			"Type": &r.Type, "Condition": &r.Condition, "DependsOn": &r.DependsOn, "Properties": &r.Properties,
			"DeletionPolicy": &r.DeletionPolicy, "UpdateReplacePolicy": &r.UpdateReplacePolicy,
		}[node.Content[i].Value]
		if into == nil {
			return fmt.Errorf("line %d: a resource has no %s", node.Line, node.Content[i].Value)
		}
		if err := node.Content[i+1].Decode(into); err != nil {
			return err
		}
	}
	return nil
}

// functions are the functions that templates here use, by tag.
var functions = map[string]string{
	"!Ref": "Ref", "!GetAtt": "Fn::GetAtt", "!Sub": "Fn::Sub", "!If": "Fn::If", "!Equals": "Fn::Equals", "!Not": "Fn::Not",
	"!Join": "Fn::Join", "!ImportValue": "Fn::ImportValue",
}

// lengthen gives the functions below a node their long form.
func lengthen(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return fmt.Errorf("line %d: CloudFormation takes no anchors", node.Line)
	}
	for _, below := range node.Content {
		if err := lengthen(below); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(node.Tag, "!") || strings.HasPrefix(node.Tag, "!!") {
		return nil
	}
	name := functions[node.Tag]
	if name == "" {
		return fmt.Errorf("line %d: %s is unknown here", node.Line, node.Tag)
	}
	argument := *node
	argument.Tag, argument.Style = "", argument.Style&^yaml.TaggedStyle
	if node.Kind == yaml.ScalarNode {
		argument.Tag = "!!str"
		if name == "Fn::GetAtt" {
			resource, attribute, _ := strings.Cut(node.Value, ".")
			argument = yaml.Node{Kind: yaml.SequenceNode, Line: node.Line, Content: []*yaml.Node{
				{Kind: yaml.ScalarNode, Tag: "!!str", Value: resource}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: attribute},
			}}
		}
	}
	*node = yaml.Node{Kind: yaml.MappingNode, Line: node.Line, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, &argument}}
	return nil
}

// function returns the name and the argument of a function; "" if v is none.
func function(v any) (name string, argument any) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", nil
	}
	for name, argument := range m {
		if name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::") {
			return name, argument
		}
	}
	return "", nil
}

// Reference is one use of a name.
type Reference struct {
	Where     string // such as Resources.Cluster.Properties.Name
	Name      string // a parameter, resource, condition or pseudo parameter
	Attribute string // of a resource; "" for its Ref
	Condition bool   // Name is a condition
}

// References returns all uses of names, in all branches of conditions, and the names of imports as
// they are written.
func (t *Template) References() (used []Reference, imports []string) {
	var walk func(where string, v any, local map[string]any)
	name := func(where, text string, local map[string]any) {
		if _, ok := local[text]; !ok {
			name, attribute, _ := strings.Cut(text, ".")
			used = append(used, Reference{Where: where, Name: name, Attribute: attribute})
		}
	}
	walk = func(where string, v any, local map[string]any) {
		switch fn, argument := function(v); fn {
		case "Ref":
			name(where, argument.(string), local)
			return
		case "Condition":
			used = append(used, Reference{Where: where, Name: argument.(string), Condition: true})
			return
		case "Fn::GetAtt":
			words := argument.([]any)
			used = append(used, Reference{Where: where, Name: words[0].(string), Attribute: words[1].(string)})
			return
		case "Fn::If":
			words := argument.([]any)
			used = append(used, Reference{Where: where, Name: words[0].(string), Condition: true})
			walk(where, words[1], local)
			walk(where, words[2], local)
			return
		case "Fn::ImportValue":
			text, _ := argument.(map[string]any)["Fn::Sub"].(string)
			imports = append(imports, text)
		case "Fn::Sub":
			text, own := substitution(argument)
			for _, own := range own {
				walk(where, own, local)
			}
			for _, word := range variables(text) {
				name(where, word, own)
			}
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				walk(where+"."+key, below, local)
			}
		case []any:
			for i, below := range v {
				walk(fmt.Sprintf("%s.%d", where, i), below, local)
			}
		}
	}
	walk("Conditions", t.Conditions, nil)
	for id, r := range t.Resources {
		where := "Resources." + id
		walk(where, r.Properties, nil)
		if r.Condition != "" {
			used = append(used, Reference{Where: where, Name: r.Condition, Condition: true})
		}
		for _, name := range r.DependsOn {
			used = append(used, Reference{Where: where, Name: name})
		}
	}
	for id, o := range t.Outputs {
		walk("Outputs."+id, o, nil)
	}
	slices.Sort(imports)
	return used, slices.Compact(imports)
}

// substitution returns the text of Fn::Sub and the variables of its own.
func substitution(argument any) (text string, own map[string]any) {
	switch v := argument.(type) {
	case string:
		return v, nil
	case []any:
		return v[0].(string), v[1].(map[string]any)
	}
	panic(fmt.Sprintf("Fn::Sub of %v", argument))
}

// variables returns the names in ${...} of a text.
func variables(text string) (names []string) {
	for {
		_, after, ok := strings.Cut(text, "${")
		if !ok {
			return names
		}
		name, rest, _ := strings.Cut(after, "}")
		names, text = append(names, name), rest
	}
}
