package cfntest

import (
	"fmt"
	"maps"
	"strings"
)

// Values are what a stack is made with. A parameter that is not named has its default.
type Values struct {
	Parameters map[string]any
	Imports    map[string]string // by the end of the export's name, such as StagingBucket
}

// pseudo are the pseudo parameters of every stack in these tests.
var pseudo = map[string]any{
	"AWS::Partition": "aws", "AWS::Region": "eu-central-1", "AWS::AccountId": "123456789012", "AWS::StackName": "stack",
	"AWS::NoValue": absent{},
}

// absent is AWS::NoValue: what has it is left out.
type absent struct{}

// Resolved returns the properties of a resource with all functions resolved. What only AWS knows, as
// an ARN, is named: <Cluster>, <Queue.Arn>. It returns an error for a resource that the template does
// not have, or that its condition leaves out.
func (t *Template) Resolved(id string, with Values) (properties map[string]any, err error) {
	r, ok := t.Resources[id]
	if !ok {
		return nil, fmt.Errorf("there is no resource %s", id)
	}
	s := &stack{Template: t, values: with}
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("resource %s: %v", id, failed)
		}
	}()
	if r.Condition != "" && !s.holds(r.Condition) {
		return nil, fmt.Errorf("resource %s is left out", id)
	}
	properties, _ = s.resolve(r.Properties, nil).(map[string]any)
	return properties, nil
}

// stack resolves functions. It panics where the template is wrong.
type stack struct {
	*Template
	values Values
}

func (s *stack) holds(condition string) bool {
	c, ok := s.Conditions[condition]
	if !ok {
		panic("there is no condition " + condition)
	}
	return s.resolve(c, nil).(bool)
}

func (s *stack) name(name string, own map[string]any) any {
	if v, ok := own[name]; ok {
		return v
	}
	if v, ok := pseudo[name]; ok {
		return v
	}
	if p, ok := s.Parameters[name]; ok {
		v, given := s.values.Parameters[name]
		if !given {
			v, given = p["Default"]
		}
		if !given {
			panic("the parameter " + name + " has no value")
		}
		if text, isText := v.(string); isText && p["Type"] == "CommaDelimitedList" {
			var list []any
			for word := range strings.SplitSeq(text, ",") {
				list = append(list, word)
			}
			return list
		}
		return v
	}
	resource, _, _ := strings.Cut(name, ".")
	if _, ok := s.Resources[resource]; !ok {
		panic("nothing is called " + name)
	}
	return "<" + name + ">"
}

func (s *stack) resolve(v any, own map[string]any) any {
	fn, argument := function(v)
	words, _ := argument.([]any)
	switch fn {
	case "Ref":
		return s.name(argument.(string), own)
	case "Condition":
		return s.holds(argument.(string))
	case "Fn::GetAtt":
		return s.name(words[0].(string)+"."+words[1].(string), nil)
	case "Fn::If":
		if s.holds(words[0].(string)) {
			return s.resolve(words[1], own)
		}
		return s.resolve(words[2], own)
	case "Fn::Equals":
		return fmt.Sprint(s.resolve(words[0], own)) == fmt.Sprint(s.resolve(words[1], own))
	case "Fn::Not":
		return !s.resolve(words[0], own).(bool)
	case "Fn::Join":
		var texts []string
		for _, word := range s.resolve(words[1], own).([]any) {
			texts = append(texts, fmt.Sprint(word))
		}
		return strings.Join(texts, words[0].(string))
	case "Fn::ImportValue":
		name := s.resolve(argument, own).(string)
		for end, value := range s.values.Imports {
			if strings.HasSuffix(name, "-"+end) {
				return value
			}
		}
		panic("nothing is exported as " + name)
	case "Fn::Sub":
		text, more := substitution(argument)
		inner := maps.Clone(own)
		for name, v := range more {
			if inner == nil {
				inner = map[string]any{}
			}
			inner[name] = s.resolve(v, own)
		}
		for _, name := range variables(text) {
			text = strings.ReplaceAll(text, "${"+name+"}", fmt.Sprint(s.name(name, inner)))
		}
		return text
	case "":
	default:
		panic("the function " + fn + " is unknown here")
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, below := range v {
			if r := s.resolve(below, own); r != (absent{}) {
				out[key] = r
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, below := range v {
			if r := s.resolve(below, own); r != (absent{}) {
				out = append(out, r)
			}
		}
		return out
	}
	return v
}
