package signin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// RoleRule gives a role to users with a value of the roles claim.
type RoleRule struct {
	Value       string
	Role        registry.Role
	Collections []string // of a depositor
}

// rank orders roles by what they may do. A user with several roles has the highest.
var rank = []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin}

// ParseRoles parses rules such as "staff=operator; curators=depositor:maps,letters". A value must
// not contain a semicolon.
func ParseRoles(text string) (rules []RoleRule, err error) {
	for rule := range strings.SplitSeq(text, ";") {
		if rule = strings.TrimSpace(rule); rule == "" {
			continue
		}
		at := strings.LastIndex(rule, "=")
		if at < 1 {
			return nil, fmt.Errorf("%q is not VALUE=ROLE", rule)
		}
		role, collections, bound := strings.Cut(rule[at+1:], ":")
		r := RoleRule{Value: strings.TrimSpace(rule[:at]), Role: registry.Role(strings.TrimSpace(role))}
		for c := range strings.SplitSeq(collections, ",") {
			if c = strings.TrimSpace(c); c != "" {
				r.Collections = append(r.Collections, c)
			}
		}
		switch {
		case !slices.Contains(rank, r.Role):
			return nil, fmt.Errorf("%q: the role must be one of %v", rule, registry.OneOf(rank))
		case bound && r.Role != registry.RoleDepositor:
			return nil, fmt.Errorf("%q: only the role depositor takes collections", rule)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// role returns the role that claims give, "" for none, and a depositor's collections.
func (p *provider) role(claims map[string]any) (role registry.Role, collections []string) {
	values := textsOf(claims[p.RolesClaim])
	for _, rule := range p.Roles {
		if !slices.Contains(values, rule.Value) {
			continue
		}
		if slices.Index(rank, rule.Role) > slices.Index(rank, role) {
			role = rule.Role
		}
		collections = append(collections, rule.Collections...)
	}
	if role != registry.RoleDepositor {
		return role, nil
	}
	if p.CollectionsClaim != "" {
		collections = append(collections, textsOf(claims[p.CollectionsClaim])...)
	}
	slices.Sort(collections)
	return role, slices.Compact(collections)
}

// name returns the user's name here.
func (p *provider) name(subject string, claims map[string]any) string {
	const most = 200
	name, _ := claims[p.NameClaim].(string)
	if verified, _ := claims["email_verified"].(bool); p.NameClaim == "email" && !verified {
		name = ""
	}
	if name = strings.TrimSpace(name); name == "" || len(name) > most {
		return subject
	}
	return name
}

// textsOf returns the values of a claim that is a string or a list of strings.
func textsOf(claim any) (values []string) {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			if text, ok := one.(string); ok {
				values = append(values, text)
			}
		}
	}
	return values
}
