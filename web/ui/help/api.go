package help

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// apiPage is the content of the page about the API.
type apiPage struct {
	Role  registry.Role
	Base  string // of all addresses
	Tags  []tag
	Count int
}

// tag is a part of the API.
type tag struct {
	Name, Description string
	Operations        []operation
}

// operation is an operation of the API.
type operation struct {
	ID, Method, Path, Summary string
	Notes                     string
	Fields                    []field // parameters first, then what the body has
	body                      bool
}

// field is a parameter of an operation, or a field of its body.
type field struct {
	Name, In, Type, Description string
	Required                    bool
}

// api shows the operations that the viewer may call.
func (p pages) api(r *http.Request) (page.Page, error) {
	all, err := p.operations()
	if err != nil {
		return page.Page{}, err
	}
	content := apiPage{Role: p.Caller(r.Context()).Role, Base: baseOf(r) + wire.Base}
	for _, one := range all {
		may := tag{Name: one.Name, Description: one.Description}
		for _, o := range one.Operations {
			if p.May(r.Context(), o.ID) {
				may.Operations = append(may.Operations, o)
			}
		}
		if len(may.Operations) > 0 {
			content.Tags = append(content.Tags, may)
			content.Count += len(may.Operations)
		}
	}
	return page.Page{Name: "api", Title: p.Texts(r).T("API"), Section: "api", Content: content}, nil
}

// baseOf is the address of this server, as the viewer's browser knows it.
func baseOf(r *http.Request) string {
	if webserver.Secure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Curl is a command that calls the operation; base is the API's address.
func (o operation) Curl(base string) string {
	path, query := o.Path, ""
	var body []string
	for _, f := range o.Fields {
		switch {
		case f.In == "path":
			path = strings.ReplaceAll(path, "{"+f.Name+"}", strings.ToUpper(f.Name))
		case f.In == "query" && f.Required:
			query += "&" + f.Name + "=" + strings.ToUpper(f.Name)
		case f.In == "body" && f.Required:
			body = append(body, fmt.Sprintf("%q: %s", f.Name, f.example()))
		}
	}
	if query != "" {
		path += "?" + query[1:]
	}
	command := "curl -H \"Authorization: Bearer $TOKEN\""
	if o.Method != http.MethodGet {
		command += " -X " + o.Method
	}
	if o.body {
		command += " -H \"Content-Type: application/json\" \\\n  -d '{" + strings.Join(body, ", ") + "}'"
	}
	return command + " \\\n  '" + base + path + "'"
}

// example is a value of the field, in JSON.
func (f field) example() string {
	switch {
	case strings.HasPrefix(f.Type, "integer"), strings.HasPrefix(f.Type, "number"):
		return "1"
	case strings.HasPrefix(f.Type, "boolean"):
		return "true"
	case strings.HasPrefix(f.Type, "array"):
		return "[]"
	case strings.HasPrefix(f.Type, "object"):
		return "{}"
	}
	return `"` + strings.ToUpper(f.Name) + `"`
}

// document is what the page shows of the OpenAPI document.
type document struct {
	Tags []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type described struct {
	ID          string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Parameters  []struct {
		Name        string `json:"name"`
		In          string `json:"in"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
		Schema      schema `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type schema struct {
	Ref         string            `json:"$ref"`
	Type        types             `json:"type"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Items       *schema           `json:"items"`
}

// types is the type of a schema. A list of types means that null is allowed, too.
type types string

// UnmarshalJSON implements json.Unmarshaler.
func (t *types) UnmarshalJSON(raw []byte) error {
	var all []string
	if err := json.Unmarshal(raw, &all); err == nil {
		*t = types(strings.Join(slices.DeleteFunc(all, func(one string) bool { return one == "null" }), " or "))
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// read reads the OpenAPI document. Operations are in the order of their tags and addresses.
func read(text []byte) ([]tag, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the specification of the API: %w", err)
	}
	all := make([]tag, len(d.Tags))
	for i, one := range d.Tags {
		all[i] = tag{Name: one.Name, Description: one.Description}
		for path, methods := range d.Paths {
			for method, o := range methods {
				if len(o.Tags) > 0 && o.Tags[0] == one.Name {
					all[i].Operations = append(all[i].Operations, d.operation(strings.ToUpper(method), path, o))
				}
			}
		}
		slices.SortFunc(all[i].Operations, func(a, b operation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
	}
	return all, nil
}

func (d document) operation(method, path string, from described) operation {
	o := operation{ID: from.ID, Method: method, Path: path, Summary: from.Summary, Notes: from.Description}
	for _, f := range from.Parameters {
		if f.Name != "User-Agent" {
			o.Fields = append(o.Fields, field{f.Name, f.In, d.typeOf(f.Schema), f.Description, f.Required})
		}
	}
	if from.Body == nil {
		return o
	}
	of, isJSON := from.Body.Content["application/json"]
	if !isJSON {
		return o
	}
	o.body = true
	whole := d.resolved(of.Schema)
	var fields []field
	for name, s := range whole.Properties {
		fields = append(fields, field{name, "body", d.typeOf(s), s.Description, slices.Contains(whole.Required, name)})
	}
	slices.SortFunc(fields, func(a, b field) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	o.Fields = append(o.Fields, fields...)
	return o
}

func (d document) resolved(s schema) schema {
	name, isRef := strings.CutPrefix(s.Ref, "#/components/schemas/")
	if !isRef {
		return s
	}
	return d.Components.Schemas[name]
}

// typeOf says what a value is, in a few words.
func (d document) typeOf(s schema) string {
	whole := d.resolved(s)
	switch {
	case len(whole.Enum) > 0:
		words := make([]string, len(whole.Enum))
		for i, word := range whole.Enum {
			words[i] = fmt.Sprint(word)
		}
		return "one of " + strings.Join(words, ", ")
	case whole.Type == "array" && whole.Items != nil:
		return "array of " + d.typeOf(*whole.Items)
	case whole.Type == "":
		return "any"
	}
	return string(whole.Type)
}

// lower is a word in lower case.
func lower(word string) string { return strings.ToLower(word) }
