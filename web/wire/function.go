package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Function is a [registry.Function] in JSON: its times are in seconds, as in a [FunctionRequest].
type Function struct {
	Name   string          `json:"name"`
	Title  string          `json:"title" doc:"For people"`
	Args   json.RawMessage `json:"args,omitempty" doc:"JSON Schema (2020-12) of the arguments; anything is taken when absent"`
	Result json.RawMessage `json:"result,omitempty" doc:"JSON Schema (2020-12) of the result; anything may be returned when absent"`
	Policy FunctionPolicy  `json:"policy" doc:"What holds where the program that serves it decides nothing itself"`
	SeenAt time.Time       `json:"seen_at,omitzero" doc:"The last announcement"`
}

// FunctionPolicy is a [registry.FunctionPolicy] in JSON.
type FunctionPolicy struct {
	MaxAttempts  int     `json:"max_attempts,omitempty" doc:"Counted failures after which a task fails; 5 when absent"`
	FirstSeconds float64 `json:"first_seconds,omitempty" doc:"Wait before the first retry; 60 when absent"`
	Factor       float64 `json:"factor,omitempty" doc:"Each later wait is this times longer; 2 when absent"`
	MostSeconds  float64 `json:"most_seconds,omitempty" doc:"The longest wait; 3600 when absent"`
	AtOnce       int     `json:"at_once,omitempty" doc:"How many may run at once, in all programs together, unless an admin sets another limit; any number when absent"`
}

// FunctionOf converts a function to JSON's form.
func FunctionOf(f registry.Function) Function {
	return Function{Name: f.Name, Title: f.Title, Args: f.Args, Result: f.Result, Policy: policyOf(f.Policy), SeenAt: f.SeenAt}
}

// Registry is the inverse of FunctionOf.
func (f Function) Registry() registry.Function {
	return registry.Function{Name: f.Name, Title: f.Title, Args: f.Args, Result: f.Result, Policy: f.Policy.registry(), SeenAt: f.SeenAt}
}

func policyOf(p registry.FunctionPolicy) FunctionPolicy {
	return FunctionPolicy{MaxAttempts: p.MaxAttempts, FirstSeconds: p.First.Seconds(), Factor: p.Factor, MostSeconds: p.Most.Seconds(), AtOnce: p.AtOnce}
}

func (p FunctionPolicy) registry() registry.FunctionPolicy {
	return registry.FunctionPolicy{MaxAttempts: p.MaxAttempts, First: duration(p.FirstSeconds), Factor: p.Factor, Most: duration(p.MostSeconds), AtOnce: p.AtOnce}
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// Namespace is a [registry.Namespace] in JSON: its times are in seconds.
type Namespace struct {
	Name   string          `json:"name"`
	Title  string          `json:"title" doc:"For people"`
	Policy NamespacePolicy `json:"policy" doc:"How a failed timer is tried again"`
	SeenAt time.Time       `json:"seen_at,omitzero" doc:"The last announcement"`
}

// NamespacePolicy is a [registry.NamespacePolicy] in JSON.
type NamespacePolicy struct {
	FunctionPolicy

	Final       []string `json:"final,omitempty" doc:"Codes of errors that are not tried again"`
	StepSeconds float64  `json:"step_seconds,omitempty" doc:"How long a step may go without progress; 600 when absent"`
}

// NamespaceOf converts a namespace to JSON's form.
func NamespaceOf(n registry.Namespace) Namespace {
	return Namespace{Name: n.Name, Title: n.Title, SeenAt: n.SeenAt, Policy: NamespacePolicy{
		FunctionPolicy: policyOf(n.Policy.FunctionPolicy), Final: n.Policy.Final, StepSeconds: n.Policy.StepTime.Seconds(),
	}}
}

// Registry is the inverse of NamespaceOf.
func (n Namespace) Registry() registry.Namespace {
	return registry.Namespace{Name: n.Name, Title: n.Title, SeenAt: n.SeenAt, Policy: registry.NamespacePolicy{
		FunctionPolicy: n.Policy.registry(), Final: n.Policy.Final, StepTime: duration(n.Policy.StepSeconds),
	}}
}

// Each converts the rows of a list.
func Each[T, U any](rows []T, convert func(T) U) []U {
	out := make([]U, len(rows))
	for i, r := range rows {
		out[i] = convert(r)
	}
	return out
}
