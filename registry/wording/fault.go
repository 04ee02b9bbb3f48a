package wording

import (
	"strconv"

	"github.com/holdfast/holdfast/registry"
)

// faults word each statement of a value that a request cannot have.
var faults = map[registry.Says]func(phrase, registry.Statement) string{
	registry.SaysTooLong: func(p phrase, s registry.Statement) string {
		return p.T("%d bytes long; at most %d are allowed", s.N, s.Of)
	},
	registry.SaysControl: func(p phrase, s registry.Statement) string {
		return p.T("byte %d is a control character (%s)", s.N, p.Name(s.Name))
	},
	registry.SaysNotOneOf: func(p phrase, s registry.Statement) string {
		return p.T("%s is not one of %s", p.quoted(s.Name), p.Name(s.Text))
	},
	registry.SaysNoDigest: func(p phrase, s registry.Statement) string {
		return p.T("a %s digest has %d hex digits", p.Name(s.Name), s.N)
	},
	registry.SaysTooManyMails: func(p phrase, s registry.Statement) string {
		return p.T("%d addresses; at most %d are allowed", s.N, s.Of)
	},
	registry.SaysTooManyIDs: func(p phrase, s registry.Statement) string {
		return p.T("%d local ids; at most %d are allowed", s.N, s.Of)
	},
	registry.SaysTwice: func(p phrase, s registry.Statement) string {
		return p.T("%s is listed twice", p.quoted(s.Name))
	},
	registry.SaysNoScheme: func(p phrase, s registry.Statement) string {
		return p.T("scheme %s is not supported; use http, https or s3, or upload the file first", p.quoted(s.Name))
	},
	registry.SaysPart: func(p phrase, s registry.Statement) string {
		return p.T("names a part of an object; give the object's own ARK, %s", p.Name(s.Name))
	},
	registry.SaysNoARK: func(p phrase, s registry.Statement) string {
		return p.T("%s is not an ARK: %s", p.quoted(s.Name), p.Said(s.Text))
	},
	registry.SaysNoMailTo: func(p phrase, s registry.Statement) string {
		return p.T("mail to %s is not allowed", p.Name(s.Name))
	},
}

// quoted is a name in quotation marks, with what could not be seen of it escaped.
func (p phrase) quoted(name string) string { return p.Name(strconv.Quote(name)) }
