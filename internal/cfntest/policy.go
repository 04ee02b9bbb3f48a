package cfntest

import (
	"fmt"
	"path"
	"strings"
)

// Statement is what a role may do, or may not.
type Statement struct {
	Allow     bool
	Actions   []string
	Resources []string
	Condition map[string]any
}

// Allowed returns the statements of a role: those of its own policies, and those of the managed
// policies of the same template.
func (t *Template) Allowed(role string, with Values) (all []Statement, err error) {
	properties, err := t.Resolved(role, with)
	if err != nil {
		return nil, err
	}
	var documents []any
	inline, _ := properties["Policies"].([]any)
	for _, p := range inline {
		documents = append(documents, p.(map[string]any)["PolicyDocument"])
	}
	managed, _ := properties["ManagedPolicyArns"].([]any)
	for _, arn := range managed {
		policy, err := t.Resolved(strings.Trim(arn.(string), "<>"), with)
		if err != nil {
			return nil, err
		}
		documents = append(documents, policy["PolicyDocument"])
	}
	for _, d := range documents {
		for _, s := range d.(map[string]any)["Statement"].([]any) {
			s := s.(map[string]any)
			condition, _ := s["Condition"].(map[string]any)
			all = append(all, Statement{Allow: s["Effect"] == "Allow", Actions: texts(s["Action"]), Resources: texts(s["Resource"]), Condition: condition})
		}
	}
	return all, nil
}

// Allows reports whether statements allow an action on a resource, whatever their conditions say.
func Allows(all []Statement, action, resource string) bool {
	allowed := false
	for _, s := range all {
		if matches(s.Actions, action) && matches(s.Resources, resource) {
			if !s.Allow {
				return false
			}
			allowed = true
		}
	}
	return allowed
}

// matches reports whether one of the patterns matches, whose * stands for any text.
func matches(patterns []string, text string) bool {
	for _, p := range patterns {
		// path.Match stops at slashes, which mean nothing in ARNs.
		if ok, err := path.Match(strings.ReplaceAll(p, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00")); ok && err == nil {
			return true
		}
	}
	return false
}

// texts returns a text or a list of texts.
func texts(v any) (out []string) {
	if list, ok := v.([]any); ok {
		for _, v := range list {
			out = append(out, fmt.Sprint(v))
		}
		return out
	}
	return []string{fmt.Sprint(v)}
}
